package authorize_test

import (
	"maps"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// granted is all that a tool granted.
type granted struct {
	roles    []rbacv1.Role
	bindings []rbacv1.RoleBinding
}

func (h *house) granted() granted {
	h.Helper()

	var g granted

	for _, namespace := range []string{h.ns, h.ops} {
		roles, bindings := h.grantsIn(namespace)
		g.roles = append(g.roles, roles...)
		g.bindings = append(g.bindings, bindings...)
	}

	return g
}

func (g *granted) equal(other *granted) bool {
	if len(g.roles) != len(other.roles) || len(g.bindings) != len(other.bindings) {
		return false
	}

	for i := range g.roles {
		if !equal(g.roles[i], other.roles[i]) {
			return false
		}
	}

	for i := range g.bindings {
		if !equalBinding(g.bindings[i], other.bindings[i]) {
			return false
		}
	}

	return true
}

func equal(a, b rbacv1.Role) bool {
	return a.Namespace == b.Namespace && a.Name == b.Name && maps.Equal(a.Labels, b.Labels) &&
		maps.Equal(a.Annotations, b.Annotations) && equality.Semantic.DeepEqual(a.Rules, b.Rules)
}

func equalBinding(a, b rbacv1.RoleBinding) bool {
	return a.Namespace == b.Namespace && a.Name == b.Name && maps.Equal(a.Labels, b.Labels) &&
		maps.Equal(a.Annotations, b.Annotations) && a.RoleRef == b.RoleRef && equality.Semantic.DeepEqual(a.Subjects, b.Subjects)
}

// injecting is a scope that injects into ClusterServiceVersions, or does not.
func injecting(enable *bool) operatorv1.NamespaceScopeSpec {
	return operatorv1.NamespaceScopeSpec{CSVInjector: &operatorv1.Injector{Enable: enable}}
}

// TestScriptAndCommandAgree compares what the two write, field by field.
func TestScriptAndCommandAgree(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		spec  operatorv1.NamespaceScopeSpec
		older *namespacescopev1alpha1.NamespaceScopeSpec
		args  []string
		// operator namespace has the scope's own namespace authorization; grants is how many there are, 1 where it is not said.
		ops    bool
		grants int
		// crossed has each tool take back what the other one granted. What takes back reads the grants, and no scope: it is enough
		// to do that once for each sort of them, because a script is a dozen processes.
		crossed bool
		// injected is what the scope says that it injected.
		injected operatorv1.NamespaceScopeStatus
	}{
		"default labels":  {crossed: true},
		"listed accounts": {spec: operatorv1.NamespaceScopeSpec{ServiceAccountMembers: []string{"listed", "missing"}}},
		"other labels": {spec: operatorv1.NamespaceScopeSpec{
			RestartLabels: map[string]operatorv1.LabelValue{"intent": "other", "app": "operator"},
		}},
		"nobody":   {spec: operatorv1.NamespaceScopeSpec{RestartLabels: map[string]operatorv1.LabelValue{"x": "y"}}},
		"all":      {args: []string{"--all"}, crossed: true},
		"account":  {args: []string{"--service-account", "writer"}},
		"delegate": {spec: operatorv1.NamespaceScopeSpec{ServiceAccountName: "delegate"}},

		"older":          {older: &namespacescopev1alpha1.NamespaceScopeSpec{}, crossed: true},
		"older, listed":  {older: &namespacescopev1alpha1.NamespaceScopeSpec{ProjectedServiceAccounts: []string{"listed", "missing"}}},
		"older, all":     {older: &namespacescopev1alpha1.NamespaceScopeSpec{}, args: []string{"--all", "--grant-only"}},
		"older, unasked": {args: []string{"--all", "--grant-only", "--scope", oldGroup + "operators"}, crossed: true},

		"home, list":     {ops: true, spec: operatorv1.NamespaceScopeSpec{ConfigmapName: "list"}, crossed: true},
		"home, delegate": {ops: true, spec: operatorv1.NamespaceScopeSpec{ServiceAccountName: "delegate"}},
		"home, older":    {ops: true, older: &namespacescopev1alpha1.NamespaceScopeSpec{ConfigmapName: "list"}, crossed: true},

		"home, CSVs":       {ops: true, spec: injecting(new(true))},
		"home, CSVs off":   {ops: true, spec: injecting(new(false))},
		"home, CSVs on":    {ops: true, spec: injecting(nil)},
		"home, CSVs left":  {ops: true, injected: operatorv1.NamespaceScopeStatus{PatchedCSVList: []string{"operator"}}},
		"home, hooks left": {ops: true, injected: operatorv1.NamespaceScopeStatus{PatchedWebhookList: []string{"hook"}}},
		"home, both": {
			ops: true, spec: injecting(nil), injected: operatorv1.NamespaceScopeStatus{PatchedCSVList: []string{"operator"}},
		},
		"home, workloads": {ops: true, spec: operatorv1.NamespaceScopeSpec{WorkloadInjector: &operatorv1.WorkloadInjector{}}},

		"manual, CSVs": {spec: operatorv1.NamespaceScopeSpec{
			ManualManagement: true, CSVInjector: &operatorv1.Injector{},
		}, grants: 2},
		"manual":             {spec: operatorv1.NamespaceScopeSpec{ManualManagement: true}, grants: 2, crossed: true},
		"manual, older":      {older: &namespacescopev1alpha1.NamespaceScopeSpec{ManualManagement: true}, grants: 2, crossed: true},
		"manual, grant only": {spec: operatorv1.NamespaceScopeSpec{ManualManagement: true}, args: []string{"--grant-only"}},
		"manual, delegate":   {spec: operatorv1.NamespaceScopeSpec{ManualManagement: true, ServiceAccountName: "delegate"}},
		"manual, account": {
			spec: operatorv1.NamespaceScopeSpec{ManualManagement: true}, args: []string{"--service-account", "writer"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			h := begin(t)
			h.makeZoo()

			if tc.older != nil {
				h.makeLegacy("operators", *tc.older)
			} else {
				nss := h.makeScope("operators", tc.spec)
				nss.Status = tc.injected

				if err := h.Status().Update(t.Context(), nss); err != nil {
					t.Fatal(err)
				}
			}

			namespace := h.ns
			if tc.ops {
				namespace = h.ops
			}

			var by [2]granted

			for i, tool := range tools {
				h.must(tool, "authorize", append([]string{namespace, "--to", h.ops}, tc.args...)...)

				by[i] = h.granted()
				if want := max(tc.grants, 1); len(by[i].roles) != want || len(by[i].bindings) != want {
					t.Fatalf("%s: %d roles and %d bindings, not %d each", tool, len(by[i].roles), len(by[i].bindings), want)
				}

				// The next one begins with nothing.
				revoker := "command"
				if tc.crossed {
					revoker = tools[1-i]
				}

				for _, role := range by[i].roles {
					h.must(revoker, "revoke", role.Namespace, "--to", h.ops, "--grant-only")
				}

				if left := h.granted(); len(left.roles)+len(left.bindings) > 0 {
					t.Errorf("left behind: %+v", left)
				}
			}

			if !by[0].equal(&by[1]) {
				t.Errorf("by the command:\n%+v\nby the script:\n%+v", by[0], by[1])
			}
		})
	}
}
