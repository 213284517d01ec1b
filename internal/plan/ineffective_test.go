package plan

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func TestIneffective(t *testing.T) {
	t.Parallel()

	f := &facts.Facts{ClusterScoped: map[string]struct{}{
		"nodes": {}, "namespaces": {}, "storageclasses.storage.k8s.io": {},
	}}

	for name, tc := range map[string]struct {
		groups, resources, verbs, want []string
		reason                         string
	}{
		"nodes": {
			[]string{""}, []string{"nodes", "pods"}, []string{"get", "list"}, []string{"get, list nodes"},
			"nodes are nowhere",
		},
		"subresource": {
			[]string{""}, []string{"nodes/proxy"}, []string{"get"}, []string{"get nodes"},
			"neither is what belongs to one",
		},
		"group": {
			[]string{"storage.k8s.io"}, []string{"storageclasses"}, []string{"get"}, []string{"get storageclasses.storage.k8s.io"},
			"as in discovery",
		},
		"namespaces": {
			[]string{""}, []string{"namespaces"}, []string{"get", "list", "watch"}, []string{"list, watch namespaces"},
			"itself can be read",
		},
		"namespace":    {[]string{""}, []string{"namespaces"}, []string{"get", "patch"}, nil, "itself can be read"},
		"wildcard":     {[]string{"*"}, []string{"*"}, []string{"*"}, nil, "it means what is there"},
		"unknown":      {[]string{"example.com"}, []string{"nodes"}, []string{"get"}, nil, "nobody knows where it is"},
		"other groups": {[]string{"example.com", ""}, []string{"nodes"}, []string{"get"}, []string{"get nodes"}, "one of two"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			rule := rbacv1.PolicyRule{APIGroups: tc.groups, Resources: tc.resources, Verbs: tc.verbs}
			if got := ineffective(&rule, f); !slices.Equal(got, tc.want) {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestIneffectiveOfWhatIsBound: of what a ScopeInstance or a ClusterServiceVersion binds in namespaces, the same means nothing as
// of what a NamespaceScope projects, and so do URLs. What is bound in the whole cluster means what it says.
func TestIneffectiveOfWhatIsBound(t *testing.T) {
	t.Parallel()

	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces", "nodes"}, Verbs: []string{"get", "list", "watch"}},
		{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}},
	}
	f := &facts.Facts{ClusterScoped: map[string]struct{}{"nodes": {}, "namespaces": {}}}
	wide := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"patch"}}
	p := ScopePlan{Scope: &scope.Scope{Binds: []scope.Binding{
		{Role: "r", Rules: rules}, {Role: "w", Rules: []rbacv1.PolicyRule{wide}, Everywhere: true},
	}}}

	want := []string{"get /metrics", "get, list, watch nodes", "list, watch namespaces"}
	if p.findIneffective(f); !slices.Equal(p.Ineffective, want) {
		t.Errorf("got %q, want %q", p.Ineffective, want)
	}
}

// TestLeases: the right to lead is named with the binding that people know, and not with its copy.
func TestLeases(t *testing.T) {
	t.Parallel()

	rule := rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"*"}}
	binding := projected.Object{
		Kind: projected.RoleBinding, Slot: "b", Source: "RoleBinding/ops/leader-election",
		RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "r"},
	}
	p := ScopePlan{Copies: []Copy{
		{Object: projected.Object{Kind: projected.Role, Slot: "r", Rules: []rbacv1.PolicyRule{rule}}}, {Object: binding, OfCopy: true},
		{
			Object: projected.Object{Kind: projected.RoleBinding, Slot: "other", RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "x"}},
			OfCopy: true,
		},
	}}

	if p.findUseless(&facts.Facts{}); !slices.Equal(p.Leases, []string{"leader-election"}) {
		t.Errorf("bindings that lead are %q", p.Leases)
	}
}
