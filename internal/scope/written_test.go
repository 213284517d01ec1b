package scope_test

import (
	"reflect"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestHashesAreWrittenAsEver: these are stored in clusters, where another version of Ambit, or a reader, compares them.
func TestHashesAreWrittenAsEver(t *testing.T) {
	t.Parallel()

	owner := scope.Owner{Group: "operator.ibm.com", Kind: "NamespaceScope", Namespace: "ops", Name: "s"}
	other := owner
	other.Group = "namespacescope.ibm.com"

	for want, got := range map[string]string{
		"e364d9ca1b08eecb": owner.Hash(), "db3909717a13ca71": other.Hash(),
		"b85d3125f1d731da": scope.ListHash("a,b", 1), "0843fd52ff60893d": scope.ListHash("a,b", 12),
		"a7fe94779ad7f5a1": scope.AbsentListHash(time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("", 3600))),
		"1eb7c54d52831bbfe8942af0b1c56b7409523a59ed6ca99c1174fef7eb32c1b5": scope.TakenIn("a,b"),
		"watchlist-uid":        scope.FollowerLease("uid"),
		"NamespaceScope/ops/s": owner.String(),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestDigest: words that run together are told apart, and so is their order.
func TestDigest(t *testing.T) {
	t.Parallel()

	seen := map[string][]string{}

	for _, parts := range [][]string{{}, {""}, {"", ""}, {"ab"}, {"a", "b"}, {"b", "a"}, {"a", "b", ""}, {"ab", ""}} {
		digest := scope.Digest(10, parts...)
		if before, is := seen[digest]; is || len(digest) != 10 {
			t.Errorf("%q has the digest %s, as %q", parts, digest, before)
		}

		seen[digest] = parts
	}
}

// TestParseOwner: the annotation is read back, and whatever else it holds cannot pass for a name.
func TestParseOwner(t *testing.T) {
	t.Parallel()

	owner := scope.Owner{Kind: "NamespaceScope", Namespace: "ops", Name: "s.v1-2"}
	if got := scope.ParseOwner(owner.String()); got != owner {
		t.Errorf("read back, it is %v", got)
	}

	for annotation, want := range map[string]scope.Owner{
		"":                           {},
		"A/b/c/d":                    {Kind: "A", Namespace: "b", Name: `"c/d"`},
		"NamespaceScope/ops/a\nb":    {Kind: "NamespaceScope", Namespace: "ops", Name: `"a\nb"`},
		"Namespace Scope/o\u202es/é": {Kind: `"Namespace Scope"`, Namespace: `"o\u202es"`, Name: `"\u00e9"`},
	} {
		if got := scope.ParseOwner(annotation); got != want {
			t.Errorf("%q is read as %v, want %v", annotation, got, want)
		}
	}
}

// TestAuthorizationFor: an authorization without a group is for a scope of the usual one, and one without a name for none.
func TestAuthorizationFor(t *testing.T) {
	t.Parallel()

	for value, want := range map[string][2]string{
		"": {}, "s": {"operator.ibm.com", "s"}, "namespacescope.ibm.com/s": {"namespacescope.ibm.com", "s"},
		"namespacescope.ibm.com/": {},
	} {
		if group, name := scope.AuthorizationFor(value); [2]string{group, name} != want {
			t.Errorf("%q is for %s of %s, want %v", value, name, group, want)
		}
	}
}

// TestWrittenBy: the API server's record says who wrote an object and what of it.
func TestWrittenBy(t *testing.T) {
	t.Parallel()

	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		e := metav1.ManagedFieldsEntry{Manager: manager}
		if fields != "" {
			e.FieldsV1 = &metav1.FieldsV1{}
			e.FieldsV1.SetRawString(fields)
		}

		return e
	}
	made := `{"f:spec":{"f:selector":{}}}`
	by := func(entries ...metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry { return entries }

	for reason, tc := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		field   string
		want    bool
	}{
		"nobody":                      {nil, "", false},
		"Ambit":                       {by(entry("kubectl", made), entry("ambit", "")), "", true},
		"somebody else":               {by(entry("ambit-authorize", made)), "", false},
		"Ambit, this field":           {by(entry("ambit", made)), scope.MadeDeployment, true},
		"Ambit, another field":        {by(entry("ambit", `{"f:spec":{"f:selectors":{}}}`)), scope.MadeDeployment, false},
		"Ambit, nothing":              {by(entry("ambit", "")), scope.MadeDeployment, false},
		"somebody else, this field":   {by(entry("kubectl", made), entry("ambit", "")), scope.MadeDeployment, false},
		"Ambit, in the second record": {by(entry("ambit", ""), entry("ambit", made)), scope.MadeDeployment, true},
	} {
		if got := scope.WrittenByAmbit(tc.entries, tc.field); got != tc.want {
			t.Errorf("%s: %t", reason, got)
		}
	}

	for fields, want := range map[string]bool{
		"": false, `{"f:data":{"f:namespaces":{}}}`: true, `{"f:data":{"f:other":{}}}`: false,
		`{"f:metadata":{"f:annotations":{"f:ambit.dev/namespaces":{}}}}`: false,
	} {
		if got := scope.HasList(new(entry("any", fields))); got != want {
			t.Errorf("%s has the list: %t", fields, got)
		}
	}
}

// TestSystemNamespaces: labels never choose these.
func TestSystemNamespaces(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]bool{
		"kube-system": true, "kube-public": true, "openshift": true, "openshift-operators": true, "ambit-system": true,
		"kube": false, "kubernetes": false, "openshifty": false, "my-kube-system": false, "ambit": false, "": false,
	} {
		if got := scope.IsSystemNamespace(name, "ambit-system"); got != want {
			t.Errorf("%q is one of the system's: %t", name, got)
		}
	}

	if scope.IsSystemNamespace("", "") {
		t.Error("where nobody knows in which namespace Ambit runs, none is its own")
	}

	for text, want := range map[string]uint64{"17": 17, "": 0, "-1": 0, "x": 0, "18446744073709551615": 1<<64 - 1} {
		if got := scope.ParseVersion(text); got != want {
			t.Errorf("version %q is %d, want %d", text, got, want)
		}
	}
}

// TestWithoutGuard takes away the rule that grants nothing, and no other.
func TestWithoutGuard(t *testing.T) {
	t.Parallel()

	more := scope.GuardRule()
	more.Verbs = append(more.Verbs, "get")
	rules := []rbacv1.PolicyRule{scope.GuardRule(), more}

	if got := scope.WithoutGuard(rules); !reflect.DeepEqual(got, []rbacv1.PolicyRule{more}) || len(rules) != 2 ||
		!reflect.DeepEqual(rules[0], scope.GuardRule()) {
		t.Errorf("got %v of %v", got, rules)
	}
}

// TestWatchLists: several scopes of a namespace may share a list, and those of templates have none.
func TestWatchLists(t *testing.T) {
	t.Parallel()

	scopes := []scope.Scope{{WatchList: "b"}, {WatchList: "a"}, {}, {WatchList: "b"}}
	if got := scope.WatchLists(scopes); !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Errorf("the lists are %v", got)
	}
}

// TestWhatAScopeDoes: what was injected has to be taken back, also where nothing is injected any more.
func TestWhatAScopeDoes(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		scope             scope.Scope
		touches, explicit bool
		deleting          bool
	}{
		"a NamespaceScope":      {scope.Scope{Key: scope.NamespaceScopes.In("ops")}, false, false, false},
		"one that injects":      {scope.Scope{Key: scope.NamespaceScopes.In("ops"), InjectCSVs: true}, true, false, false},
		"one that did":          {scope.Scope{Key: scope.NamespaceScopes.In("ops"), Injected: true}, true, false, false},
		"one that goes":         {scope.Scope{Key: scope.NamespaceScopes.In("ops"), Deleted: time.Unix(0, 0)}, false, false, true},
		"an install":            {scope.Scope{Key: scope.Installs.In("ops")}, false, true, false},
		"what has no namespace": {scope.Scope{Key: scope.TemplatesKey()}, false, true, false},
	} {
		if s := &tc.scope; s.TouchesCSVs() != tc.touches || s.Explicit() != tc.explicit || s.Deleting() != tc.deleting {
			t.Errorf("%s: %t, %t, %t", reason, s.TouchesCSVs(), s.Explicit(), s.Deleting())
		}
	}

	for family, want := range map[scope.Family]string{
		scope.NamespaceScopes: "namespacescope", scope.Templates: "template", scope.Catalogs: "catalog",
		scope.Installs: "operatorgroup", 0: "",
	} {
		if got := family.String(); got != want {
			t.Errorf("metrics are called %q, want %q", got, want)
		}
	}

	if !(scope.Key{}).IsZero() || scope.NamespaceScopes.In("").IsZero() || (scope.Key{Namespace: "a"}).IsZero() {
		t.Error("only the zero key is none")
	}
}
