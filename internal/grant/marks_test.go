package grant_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestUseSaysWhoMayDoWhat: an owner who finds a grant among other Roles reads there what it is for.
func TestUseSaysWhoMayDoWhat(t *testing.T) {
	t.Parallel()

	s := scopes("s")[0].Owner

	for reason, tc := range map[string]struct {
		grant grant.Grant
		want  string
	}{
		"a member": {grant.Grant{Namespace: "member", Scope: s}, "write here what NamespaceScope ops/s projects"},
		"the operator namespace": {
			grant.Grant{Namespace: "ops", Scope: s},
			"write the watch list of NamespaceScope ops/s here, and change and restart its readers",
		},
		"no scope": {grant.Grant{Namespace: "member"}, "write roles and rolebindings in this namespace"},
		"installs": {
			grant.Grant{Namespace: "member", Installs: true}, "write here what operators of namespace ops are permitted",
		},
	} {
		tc.grant.To, tc.grant.Account = "ops", "ambit"

		if got := tc.grant.RoleBinding().Annotations[grant.AnnotationUse]; got != "service account ops/ambit may "+tc.want {
			t.Errorf("%s: the grant says %q", reason, got)
		}
	}
}

// TestGrantToInstallsIsNoScopes: whoever takes back one of the two keeps the other.
func TestGrantToInstallsIsNoScopes(t *testing.T) {
	t.Parallel()

	rules := []rbacv1.PolicyRule{{Verbs: []string{"get"}}}

	for reason, tc := range map[string]struct {
		grant grant.Grant
		is    bool
	}{
		"to installs":                        {grant.Grant{Installs: true}, true},
		"a part to installs":                 {grant.Grant{Installs: true, Part: true, Rules: rules}, true},
		"to no scope":                        {grant.Grant{}, false},
		"a part to no scope":                 {grant.Grant{Part: true, Rules: rules}, false},
		"to a scope":                         {grant.Grant{Scope: scopes("installs")[0].Owner}, false},
		"to installs of a namespace besides": {grant.Grant{To: "ops2", Installs: true}, false},
	} {
		if tc.grant.To == "" {
			tc.grant.To = "ops"
		}

		if got := grant.IsForInstalls(tc.grant.Role(), "ops"); got != tc.is {
			t.Errorf("%s: a grant called %s is for installs in ops: %t", reason, tc.grant.Name(), got)
		}
	}

	foreign := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: (&grant.Grant{To: "ops", Installs: true}).Name() + "s"}}
	if grant.IsForInstalls(foreign, "ops") {
		t.Errorf("%s is called so by somebody else", foreign.Name)
	}
}

// TestPartsStandBesideEachOther: a part adds to what was granted before, so it never has the name of another grant. The same
// part has the same name, or granting twice would leave two.
func TestPartsStandBesideEachOther(t *testing.T) {
	t.Parallel()

	get, list := []rbacv1.PolicyRule{{Verbs: []string{"get"}}}, []rbacv1.PolicyRule{{Verbs: []string{"list"}}}
	whole := grant.Grant{To: "ops", Account: "a", Scope: scopes("s")[0].Owner, Rules: get}

	part := whole
	part.Part = true
	names := []string{whole.Name(), part.Name()}

	for _, change := range []func(*grant.Grant){
		func(g *grant.Grant) { g.Rules = list },
		func(g *grant.Grant) { g.Account = "b" },
		func(g *grant.Grant) { g.Installs = true },
	} {
		other := part
		change(&other)

		if slices.Contains(names, other.Name()) {
			t.Errorf("%+v is called as another grant", other)
		}

		names = append(names, other.Name())
	}

	again := part
	if again.Rules = slices.Clone(get); again.Name() != part.Name() {
		t.Errorf("granted twice, it is called %s and %s", part.Name(), again.Name())
	}
}

// TestScopeOfAGrant: the annotation may be anybody's words, and a grant for no scope is taken back with any.
func TestScopeOfAGrant(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]scope.Owner{
		"s": scopes("s")[0].Owner, old + "s": scopes(old + "s")[0].Owner,
		"": {}, "S": {}, "s/t": {}, "example.com/s": {}, old: {}, "s; rm": {}, "../s": {},
	} {
		role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{grant.AnnotationScope: text}}}
		if got := grant.ScopeOf(role, "ops"); got != want {
			t.Errorf("%q means %v, want %v", text, got, want)
		}
	}

	role := &rbacv1.Role{}
	if got := (&grant.Grant{To: "ops"}).Role(); got.Annotations[grant.AnnotationScope] != role.Annotations[grant.AnnotationScope] {
		t.Errorf("a grant for no scope names %q", got.Annotations[grant.AnnotationScope])
	}

	if _, is := (&grant.Grant{To: "ops"}).Role().Annotations[grant.AnnotationScope]; is {
		t.Error("a grant for no scope says that it is for one without a name")
	}
}

// TestGoesWithItsRole: deleting the Role of a grant takes back its binding, and what was projected with it.
func TestGoesWithItsRole(t *testing.T) {
	t.Parallel()

	role := (&grant.Grant{To: "ops", Account: "a"}).Role()
	role.UID = "uid"

	want := metav1.OwnerReference{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role", Name: role.Name, UID: "uid"}
	if got := grant.GoesWith(role); len(got) != 1 || got[0] != want {
		t.Errorf("owners are %v, want %v", got, want)
	}
}

// TestWordsOfAGrant: whoever authorizes decides by these words, so that nothing may pass for less than it is.
func TestWordsOfAGrant(t *testing.T) {
	t.Parallel()

	l := func(words ...string) []string { return words }

	for reason, tc := range map[string]struct {
		rule rbacv1.PolicyRule
		want string
	}{
		"the core group is not said": {
			rbacv1.PolicyRule{APIGroups: l(""), Resources: l("pods", "secrets"), Verbs: l("get", "list")}, "get, list: pods, secrets",
		},
		"other groups are": {
			rbacv1.PolicyRule{APIGroups: l("", "apps"), Resources: l("deployments"), Verbs: l("get")}, `get: deployments of "", apps`,
		},
		"everything of a group": {
			rbacv1.PolicyRule{APIGroups: l("apps"), Resources: l("*"), Verbs: l("*")}, "*: everything of apps",
		},
		"everything":            {rbacv1.PolicyRule{APIGroups: l("*"), Resources: l("*"), Verbs: l("*")}, "*: everything"},
		"everything and a kind": {rbacv1.PolicyRule{APIGroups: l("*"), Resources: l("*", "pods"), Verbs: l("*")}, "*: *, pods"},
		"names": {
			rbacv1.PolicyRule{APIGroups: l(""), Resources: l("secrets"), Verbs: l("get"), ResourceNames: l("a", "b")},
			"get: secrets named a, b",
		},
		"the empty name is that of all": {
			rbacv1.PolicyRule{APIGroups: l(""), Resources: l("secrets"), Verbs: l("list"), ResourceNames: l("")},
			"list: secrets in requests that name none",
		},
		"the empty name among others": {
			rbacv1.PolicyRule{APIGroups: l(""), Resources: l("secrets"), Verbs: l("list"), ResourceNames: l("", "a")},
			"list: secrets named a, and requests that name none",
		},
		"a kind of every group": {
			rbacv1.PolicyRule{APIGroups: l("*"), Resources: l("roles"), Verbs: l("get")}, "get: roles of every API group",
		},
		"what may be bound": {
			rbacv1.PolicyRule{APIGroups: l("x"), Resources: l("clusterroles"), Verbs: l("bind"), ResourceNames: l("a")},
			"bind: clusterroles named a of x, so all that these allow here, later too",
		},
		"a name that looks like two": {
			rbacv1.PolicyRule{APIGroups: l(""), Resources: l("pods, secrets"), Verbs: l("get: x")}, `"get: x": "pods, secrets"`,
		},
	} {
		if got := grant.Words([]rbacv1.PolicyRule{tc.rule}); !slices.Equal(got, l(tc.want)) {
			t.Errorf("%s: %q, want %q", reason, got, tc.want)
		}
	}
}
