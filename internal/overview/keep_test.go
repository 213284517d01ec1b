package overview_test

import (
	"slices"
	"testing"

	"github.com/ambit-k8s/ambit/internal/overview"
)

func shown(o *overview.Overview) (out []string) {
	for i := range o.Services {
		out = append(out, o.Services[i].Operator.String()+" "+o.Services[i].Namespace)
	}

	return out
}

// TestFilters: a filter keeps what it is for, the whole cluster with each namespace, and each namespace that it names even if
// nobody serves it.
func TestFilters(t *testing.T) {
	t.Parallel()

	services := []overview.Service{
		service("a", "", "S", overview.Served), service("a", "m", "S", overview.Served), service("a", "n", "S", overview.Failed),
		service("b", "m", "S", overview.Partial), service("b", "n", "S", overview.Unknown), service("c", "m", "S", overview.Unknown),
		service("c", "n", "S", overview.Idle), service("c", "ops", "S", overview.OwnNamespace),
	}
	services[0].Besides = true
	services[4].Reason, services[5].Reason = "AuthorizationRequired", overview.NotRead

	all := overview.New([]overview.Scope{{Name: "S"}}, services, []string{"lonely", "m", "n"})
	is := func(names ...string) func(string) bool {
		return func(name string) bool { return slices.Contains(names, name) }
	}

	for reason, tc := range map[string]struct {
		filter     overview.Filter
		services   []string
		namespaces []string
	}{
		"nothing is filtered": {overview.Filter{}, []string{
			"ops/a ", "ops/a m", "ops/a n", "ops/b m", "ops/b n", "ops/c m", "ops/c n", "ops/c ops",
		}, []string{"lonely", "m", "n", "ops"}},
		"an operator": {
			overview.Filter{Operator: is("ops/a")}, []string{"ops/a ", "ops/a m", "ops/a n"}, []string{"lonely", "m", "n", "ops"},
		},
		"a namespace": {
			overview.Filter{Namespace: is("m")}, []string{"ops/a ", "ops/a m", "ops/b m", "ops/c m"}, []string{"m"},
		},
		"one that nobody serves": {overview.Filter{Namespace: is("lonely")}, []string{"ops/a "}, []string{"lonely"}},
		"both":                   {overview.Filter{Operator: is("ops/b"), Namespace: is("n")}, []string{"ops/b n"}, []string{"n"}},
		"what failed, as far as that is known": {
			overview.Filter{OnlyFailed: true}, []string{"ops/a n", "ops/b m", "ops/b n"}, []string{"lonely", "m", "n", "ops"},
		},
		"what serves": {
			overview.Filter{OnlyServing: true, Operator: is("ops/a")}, []string{"ops/a m", "ops/a n"},
			[]string{"lonely", "m", "n", "ops"},
		},
	} {
		got := all.Keep(tc.filter)
		if !slices.Equal(shown(got), tc.services) || !slices.Equal(got.Namespaces, tc.namespaces) || len(got.Scopes) != 1 {
			t.Errorf("%s: kept %q in %q of %d scopes, want %q in %q",
				reason, shown(got), got.Namespaces, len(got.Scopes), tc.services, tc.namespaces)
		}
	}
}

// TestFailuresOfWhatIsNotRead: of the namespaces that may not be read, those failed of which the status says so. Everything else
// is still there for who looks at all of it.
func TestFailuresOfWhatIsNotRead(t *testing.T) {
	t.Parallel()

	all := overview.New([]overview.Scope{{
		Name: "S", NotRead: []string{"bad", "fine"}, Failed: []overview.FailedNamespace{{Namespace: "bad", Reason: "Refused"}},
		Empty: []overview.MemberTree{{Namespace: "idle"}},
	}}, nil, nil)
	failed := all.Keep(overview.Filter{OnlyFailed: true})

	if s := failed.Scopes[0]; !slices.Equal(s.NotRead, []string{"bad"}) || len(s.Failed) != 1 || len(s.Empty) != 0 {
		t.Errorf("what failed is %+v", s)
	}

	if s := all.Scopes[0]; !slices.Equal(s.NotRead, []string{"bad", "fine"}) || len(s.Empty) != 1 {
		t.Errorf("to ask what failed has changed the rest: %+v", s)
	}
}

// TestServicesAreAddedOnce: what is known already is not shown twice, and stays as it is.
func TestServicesAreAddedOnce(t *testing.T) {
	t.Parallel()

	first := []overview.Service{service("op", "m", "S", overview.Served)}
	got := overview.Add(first, []overview.Service{
		service("op", "m", "S", overview.Failed), service("op", "n", "S", overview.Failed),
		service("op", "m", "T", overview.Failed), service("other", "m", "S", overview.Failed),
	})

	names := shown(&overview.Overview{Services: got})
	if want := []string{"ops/op m", "ops/op n", "ops/op m", "ops/other m"}; !slices.Equal(names, want) ||
		got[0].State != overview.Served || got[2].Scope != "T" {
		t.Errorf("services are %+v", got)
	}
}

// TestScopesAreSorted: what is printed does not depend on the order in which things were read.
func TestScopesAreSorted(t *testing.T) {
	t.Parallel()

	got := overview.New([]overview.Scope{{Name: "b"}, {Name: "a", Group: "y"}, {Name: "a", Group: "x"}}, nil, nil)
	for i, want := range []string{"a x", "a y", "b "} {
		if s := got.Scopes[i]; s.Name+" "+s.Group != want {
			t.Errorf("scope %d is %s of %s, want %s", i, s.Name, s.Group, want)
		}
	}
}
