package authority_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	"pgregory.net/rapid"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

var (
	verbs     = []string{"get", "create", "bind", "escalate"}
	groups    = []string{"", "apps", rbacv1.GroupName}
	resources = []string{"secrets", "secrets/status", "roles", "rolebindings", "clusterroles", "*/status"}
	names     = []string{"a", "b"}
)

// covers compares as the API server does when it decides whether somebody may grant rules.
func covers(t interface {
	Errorf(format string, values ...any)
}, reason string, owner, servant []rbacv1.PolicyRule) {
	if ok, missing := validation.Covers(owner, servant); !ok {
		t.Errorf("%s: %+v\nin %+v", reason, missing, owner)
	}
}

func inOps(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "ops", Name: name} }

// planned is what the manager would project for a scope of ops, which holds some objects, where every ClusterRole exists.
func planned(s scope.Scope, objects ...scope.Object) *plan.ScopePlan {
	once := read.NewOnce([]string{s.Key.Namespace})
	for _, obj := range objects {
		once.Add(obj)
	}

	f, _ := once.Store.Facts(s.Key, time.Now())
	f.ClusterRoles = nil
	p := plan.New([]scope.Scope{s}, f)

	return &p.Scopes[0]
}

// TestGrantIsExact holds that a grant allows what the fixed part, the Roles that the scope projects, and the binding of the
// ClusterRoles that it projects allow together, and nothing else.
func TestGrantIsExact(t *testing.T) {
	t.Parallel()

	some := func(values []string) *rapid.Generator[[]string] {
		return rapid.SliceOfN(rapid.SampledFrom(append([]string{"*"}, values...)), 1, 3)
	}
	anyRule := rapid.Custom(func(t *rapid.T) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			Verbs: some(verbs).Draw(t, "verbs"), APIGroups: some(groups).Draw(t, "groups"),
			Resources:     some(resources).Draw(t, "resources"),
			ResourceNames: rapid.SliceOfN(rapid.SampledFrom(names), 0, 2).Draw(t, "names"),
		}
	})
	fixed := []rbacv1.PolicyRule{{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"},
		Verbs: []string{"get", "list", "watch", "create", "patch", "delete"},
	}}

	rapid.Check(t, func(t *rapid.T) {
		objects := []scope.Object{
			&corev1.ServiceAccount{ObjectMeta: inOps("in")}, &corev1.ServiceAccount{ObjectMeta: inOps("out")},
		}
		wanted := slices.Clone(fixed)

		for _, role := range []string{"a", "b", "c"} {
			rules := rapid.SliceOfN(anyRule, 0, 3).Draw(t, "rules")
			objects = append(objects, &rbacv1.Role{ObjectMeta: inOps(role), Rules: rules})

			for _, kind := range []string{"Role", "ClusterRole"} {
				account := rapid.SampledFrom([]string{"in", "out", "missing"}).Draw(t, "account")
				objects = append(objects, &rbacv1.RoleBinding{
					ObjectMeta: inOps(kind + role),
					RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
					Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: account}},
				})

				switch {
				case account != "in":
				case kind == "Role":
					wanted = append(wanted, rules...)
				default:
					wanted = append(wanted, rbacv1.PolicyRule{
						Verbs: []string{"bind"}, APIGroups: []string{rbacv1.GroupName},
						Resources: []string{"clusterroles"}, ResourceNames: []string{role},
					})
				}
			}
		}

		nss := &operatorv1.NamespaceScope{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "scope"},
			Spec:       operatorv1.NamespaceScopeSpec{ServiceAccountMembers: []string{"in", "missing"}},
		}
		p := planned(compile.NamespaceScope(nss), objects...)
		granted := authority.GrantFor(p)

		covers(t, "what the scope needs is not granted", granted, wanted)
		covers(t, "more is granted than the scope needs", wanted, granted)
	})
}

// TestAuthorizationIsNoSource holds that what an operator namespace's owner grants in the operator namespace goes nowhere else,
// also where every account of the operator namespace is projected.
func TestAuthorizationIsNoSource(t *testing.T) {
	t.Parallel()

	s := scope.Scope{Owner: grant.Wanted{Name: "s"}.Owner("ops"), Key: scope.NamespaceScopes.In("ops"), WatchList: "list"}
	s.Accounts.All = true

	g := grant.Grant{Namespace: "ops", To: "ops", Account: "ambit", Scope: s.Owner, Rules: authority.GrantInOperatorNamespace(&s)}

	if p := planned(s, &corev1.ServiceAccount{ObjectMeta: inOps("ambit")}, g.Role(), g.RoleBinding()); len(p.Copies) > 0 {
		t.Errorf("an authorization is projected: %+v", p.Copies)
	}
}

func TestGrantInOperatorNamespace(t *testing.T) {
	t.Parallel()

	rules := authority.GrantInOperatorNamespace(&scope.Scope{WatchList: "list"})
	one := func(group, resource, name string, verbs ...string) []rbacv1.PolicyRule {
		r := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
		if name != "" {
			r.ResourceNames = []string{name}
		}

		return []rbacv1.PolicyRule{r}
	}

	covers(t, "the list is written and deleted", rules, one("", "configmaps", "list", "create", "patch", "delete"))
	covers(t, "its readers restart", rules, one("apps", "deployments", "", "patch"))
	covers(t, "pods are evicted", rules, one("", "pods/eviction", "", "create"))

	for reason, beyond := range map[string][]rbacv1.PolicyRule{
		"the list is not read":                       one("", "configmaps", "list", "get"),
		"another ConfigMap is not changed":           one("", "configmaps", "other", "patch"),
		"nor deleted":                                one("", "configmaps", "other", "delete"),
		"no workload is made":                        one("apps", "deployments", "", "create"),
		"no pod is deleted":                          one("", "pods", "", "delete"),
		"what ends by itself is left alone":          one("batch", "jobs", "", "patch"),
		"so is what is restarted by its pods":        one("apps", "replicasets", "", "patch"),
		"RBAC in the operator namespace is nobody's": one(rbacv1.GroupName, "roles", "", "create"),
	} {
		if ok, _ := validation.Covers(rules, beyond); ok {
			t.Errorf("%s, but it may be", reason)
		}
	}
}
