package plan_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/plantest"
)

// served is a cluster in which a scope with two Roles is served in the namespaces a and b.
func served() (scope.Scope, *facts.Facts) {
	f, s := cluster(), newScope("s", "a", "b")
	namespaces(f, "a", "b")

	ops := &f.OperatorNamespace
	ops.Accounts["op"] = struct{}{}
	ops.Workloads = []facts.Workload{{Kind: facts.Deployment, Name: "op", Template: facts.Template{
		Labels: labels.Set{"intent": "projected"}, Account: "op",
	}}}

	for _, name := range []string{"one", "two"} {
		ops.Roles[name] = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{name}, Verbs: []string{"get"}}}
		ops.Bindings[name] = facts.Binding{
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "op"}},
		}
	}

	p := plan.New([]scope.Scope{s}, f)
	carryOut(f, &p)

	return s, f
}

// TestWhatIsKnownToBeGoneTakesAMemberOut holds when a listed member leaves because something was refused there.
func TestWhatIsKnownToBeGoneTakesAMemberOut(t *testing.T) {
	t.Parallel()

	deleteAll := func(f *facts.Facts, kind projected.Kind, slots ...string) {
		for key, live := range f.Projected["a"] {
			for _, slot := range slots {
				if key.Kind == kind && projected.Prefix(kind, live.Slot) == slot+"-" {
					delete(f.Projected["a"], key)
				}
			}
		}
	}

	for name, tc := range map[string]struct {
		reason string
		change func(*facts.Facts)
		want   string
	}{
		"a change": {
			"what is refused now was never there",
			func(f *facts.Facts) { deleteAll(f, projected.RoleBinding, "one") }, "a,b,ops",
		},
		"all bindings": {
			"nobody holds anything there", func(f *facts.Facts) { deleteAll(f, projected.RoleBinding, "one", "two") }, "b,ops",
		},
		"all roles": {
			"a binding without its Role gives nothing", func(f *facts.Facts) { deleteAll(f, projected.Role, "one", "two") }, "b,ops",
		},
		"one role": {
			"the binding that is there gave something before", func(f *facts.Facts) { deleteAll(f, projected.Role, "two") }, "b,ops",
		},
		"a part, seen": {
			"somebody was seen to delete it",
			func(f *facts.Facts) {
				for key, live := range f.Projected["a"] {
					if key.Kind == projected.RoleBinding && projected.Prefix(key.Kind, live.Slot) == "one-" {
						f.Lost = map[string]map[facts.Slot]struct{}{"a": {{ScopeHash: live.ScopeHash, Kind: key.Kind, Slot: live.Slot}: {}}}
					}
				}

				deleteAll(f, projected.RoleBinding, "one")
			}, "b,ops",
		},
		"taken over": {
			"what IBM's operator projected is in its place",
			func(f *facts.Facts) {
				deleteAll(f, projected.RoleBinding, "one", "two")
				f.Legacy = map[string]map[facts.ProjectedKey]facts.Legacy{"a": {{Kind: projected.Role, Name: "x"}: {}}}
			}, "a,b,ops",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s, f := served()
			tc.change(f)

			p := plan.New([]scope.Scope{s}, f)
			inA := those(&p, func(_ int, namespace string) bool { return namespace == "a" })

			if w := plan.ResolveList(&p.Lists[0], inA, inA); w.Value != tc.want {
				t.Errorf("%s: the list becomes %q, want %q", tc.reason, w.Value, tc.want)
			}

			if w := plan.ResolveList(&p.Lists[0], inA, nil); w.Value != "a,b,ops" {
				t.Errorf("%s: what fails for a moment takes it out: %q", tc.reason, w.Value)
			}
		})
	}
}

// TestCopiesBelongToTheirAuthorization holds to which authorization, and that whatever else owns them is replaced.
func TestCopiesBelongToTheirAuthorization(t *testing.T) {
	t.Parallel()

	s, f := served()
	s.Delegate = "writer"
	mine := facts.Authorization{Name: "x.s", UID: "mine", Account: "writer", ScopeGroup: "operator.ibm.com", ScopeName: "s"}
	f.Authorizations = map[string][]facts.Authorization{"a": {
		{Name: "a", UID: "another's", Account: "another"},
		{Name: "b.t", UID: "for another", Account: "writer", ScopeGroup: "operator.ibm.com", ScopeName: "t"},
		{Name: "c", UID: "for all", Account: "writer"},
		{Name: "d.s+1", UID: "a part", Account: "writer", ScopeGroup: "operator.ibm.com", ScopeName: "s"},
		mine,
	}}

	p := plan.New([]scope.Scope{s}, f)

	for i := range p.Scopes[0].Grant {
		if c := &p.Scopes[0].Grant[i]; c.Namespace != "a" || c.Action != plan.Update || ownersOf(c) != mine.UID {
			t.Errorf("%s %s in %s goes with %+v", c.Action, c.Key.Name, c.Namespace, c.Owners)
		}
	}

	if n := len(p.Scopes[0].Grant); n != 4 {
		t.Errorf("%d copies come to belong to the authorization, want 4", n)
	}

	carryOut(f, &p)

	if p := plan.New([]scope.Scope{s}, f); !plantest.IsEmpty(&p) {
		t.Errorf("it does not come to rest: %+v", p.Scopes[0].Grant)
	}

	// Without a delegate, the copies are not to go when somebody takes that authorization back.
	own := s
	own.Delegate = ""
	p = plan.New([]scope.Scope{own}, f)

	if g, r := len(p.Scopes[0].Grant), len(p.Scopes[0].Retire); g != 4 || r != 0 {
		t.Errorf("%d copies come in the place of those that belong to an authorization, and %d go, want 4 and none yet", g, r)
	}

	for i := range p.Scopes[0].Grant {
		if c := &p.Scopes[0].Grant[i]; c.Action != plan.Create || c.Owners != nil {
			t.Errorf("%s %s goes with %+v", c.Action, c.Key.Name, c.Owners)
		}
	}

	// The authorization is gone, and garbage collection about to take what belongs to it: nothing unties it.
	f.Authorizations = nil

	if p := plan.New([]scope.Scope{s}, f); !plantest.IsEmpty(&p) {
		t.Errorf("copies are untied from an authorization that is gone: %+v", p.Scopes[0].Grant)
	}
}

// TestCopiesBelongToEachAuthorizationThatAllowsThem holds which of several authorizations own a copy: those by each of which
// alone the account may write it, and where there is none, the first one.
func TestCopiesBelongToEachAuthorizationThatAllowsThem(t *testing.T) {
	t.Parallel()

	const (
		writes  = `{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings"],"verbs":["create","patch"]}`
		gets    = `{"apiGroups":[""],"resources":["one"],"verbs":["get"]}`
		getsTwo = `{"apiGroups":[""],"resources":["two"],"verbs":["*"]}`
		hands   = `{"apiGroups":["*"],"resources":["roles"],"verbs":["escalate","bind"]}`
		binds   = `{"apiGroups":["*"],"resources":["roles"],"verbs":["bind"]}`
	)

	for name, tc := range map[string]struct {
		// rules are those of the authorization for the scope, and of the one for no scope in particular.
		rules [2][]string
		// one and two are the owners of the copies of these Roles, and of the bindings to them.
		one, two         string
		bindOne, bindTwo string
	}{
		"both allow all": {
			[2][]string{{writes, gets, getsTwo}, {writes, hands}}, "all,scope", "all,scope", "all,scope", "all,scope",
		},
		"each allows something": {
			[2][]string{{writes, gets}, {writes, getsTwo}}, "scope", "all", "scope", "all",
		},
		"one allows nothing": {
			[2][]string{{writes, gets, getsTwo}, {gets, getsTwo}}, "scope", "scope", "scope", "scope",
		},
		"they allow all together": {
			[2][]string{{writes}, {gets, getsTwo}}, "scope", "scope", "scope", "scope",
		},
		"the first allows nothing": {
			[2][]string{{gets}, {writes, gets, getsTwo}}, "all", "all", "all", "all",
		},
		"one may bind": {
			[2][]string{{writes, gets, getsTwo}, {writes, binds}}, "scope", "scope", "all,scope", "all,scope",
		},
		"what one grants is not known": {
			[2][]string{{writes, gets, getsTwo}, nil}, "scope", "scope", "scope", "scope",
		},
		"what they grant is not known": {[2][]string{nil, nil}, "scope", "scope", "scope", "scope"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s, f := served()
			s.Delegate = "writer"
			there := []facts.Authorization{
				{Name: "x.s", UID: "scope", Account: "writer", ScopeGroup: "operator.ibm.com", ScopeName: "s"},
				{Name: "a", UID: "all", Account: "writer"},
			}

			for i, rules := range tc.rules {
				if rules != nil {
					there[i].Rules = "[" + strings.Join(rules, ",") + "]"
				}
			}

			f.Authorizations = map[string][]facts.Authorization{"a": there}
			p := plan.New([]scope.Scope{s}, f)
			want := map[string]string{
				"Role one": tc.one, "Role two": tc.two, "RoleBinding one": tc.bindOne, "RoleBinding two": tc.bindTwo,
			}

			for i := range p.Scopes[0].Grant {
				c := &p.Scopes[0].Grant[i]
				of := string(c.Key.Kind) + " " + c.Copy.SourceRole

				if is := ownersOf(c); is != want[of] {
					t.Errorf("the owners of %s are %q, want %q", of, is, want[of])
				}

				delete(want, of)
			}

			if len(want) > 0 {
				t.Errorf("no owners are written of %v", want)
			}

			carryOut(f, &p)

			if p := plan.New([]scope.Scope{s}, f); !plantest.IsEmpty(&p) {
				t.Errorf("it does not come to rest: %+v", p.Scopes[0].Grant)
			}
		})
	}
}

// ownersOf are the UIDs of the owners that a change gives, sorted.
func ownersOf(c *plan.Change) string {
	var uids []string
	for i := range c.Owners {
		uids = append(uids, c.Owners[i].UID)
	}

	return facts.OwnersOf(uids)
}

// TestManyAuthorizations holds that their number is bounded by which the owner of a namespace makes every plan compare rules.
func TestManyAuthorizations(t *testing.T) {
	t.Parallel()

	s, f := served()
	s.Delegate = "writer"

	for i := range 50 {
		f.Authorizations = map[string][]facts.Authorization{"a": append(f.Authorizations["a"], facts.Authorization{
			Name: fmt.Sprintf("n%02d", i), UID: strconv.Itoa(i), Account: "writer",
			Rules: `[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]`,
		})}
	}

	p := plan.New([]scope.Scope{s}, f)
	if n := len(p.Scopes[0].Grant); n != 4 {
		t.Fatalf("%d copies change, want 4", n)
	}

	for i := range p.Scopes[0].Grant {
		if is := ownersOf(&p.Scopes[0].Grant[i]); is != "0,1,2,3,4" {
			t.Errorf("the owners are %s", is)
		}
	}
}

// TestTerminatingMemberWithoutAuthorizationKeepsNothing holds that the end of a namespace does not outlast its owner's
// authorization.
func TestTerminatingMemberWithoutAuthorizationKeepsNothing(t *testing.T) {
	t.Parallel()

	s, f := served()
	s.Delegate = "writer"
	f.Authorizations = map[string][]facts.Authorization{"a": {{Name: "c", UID: "u", Account: "writer"}}}
	p := plan.New([]scope.Scope{s}, f)
	carryOut(f, &p)

	f.Namespaces["a"] = facts.Namespace{Terminating: true}

	if p := plan.New([]scope.Scope{s}, f); len(p.Scopes[0].Prune) != 0 {
		t.Errorf("operators lose what they need to finish: %+v", p.Scopes[0].Prune)
	}

	for _, live := range f.Projected["a"] {
		content := *live.Content
		content.Owners, live.Content = "gone,u", &content
	}

	if p := plan.New([]scope.Scope{s}, f); len(p.Scopes[0].Prune) != 0 {
		t.Errorf("copies go of which an owner remains: %+v", p.Scopes[0].Prune)
	}

	f.Authorizations = nil

	if p := plan.New([]scope.Scope{s}, f); len(p.Scopes[0].Prune) != 4 {
		t.Errorf("of four copies, %d go", len(p.Scopes[0].Prune))
	}
}

// TestSeveralAuthorizationsTakeLittle holds that the owners of a copy are looked at without making anything: a plan does that for
// each copy in ten thousand members. No other test runs beside this one, since it counts.
func TestSeveralAuthorizationsTakeLittle(t *testing.T) {
	const members = 300

	names := make([]string, 0, members)
	for i := range members {
		names = append(names, fmt.Sprint("n", i))
	}

	made := func(each int) int {
		_, f := served()
		s := newScope("s", names...)
		s.Delegate = "writer"
		namespaces(f, names...)

		f.Authorizations = map[string][]facts.Authorization{}

		for _, name := range names {
			for i := range each {
				f.Authorizations[name] = append(f.Authorizations[name], facts.Authorization{
					Name: fmt.Sprint("of", i), UID: fmt.Sprint(name, "-", i), Account: "writer",
					Rules: `[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]`,
				})
			}
		}

		p := plan.New([]scope.Scope{s}, f)
		carryOut(f, &p)

		return int(testing.AllocsPerRun(1, func() { p = plan.New([]scope.Scope{s}, f) }))
	}

	// Some for each member, and none for each of its copies, of which there are four.
	if one, several := made(1), made(3); several-one > 10*members {
		t.Errorf("with one authorization a plan makes %d things, and %d with three", one, several)
	}
}
