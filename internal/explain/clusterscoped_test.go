package explain_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/explain"
)

// TestInNoNamespace: a Role gives nothing of what is in no namespace, but for its own namespace.
func TestInNoNamespace(t *testing.T) {
	t.Parallel()

	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"*"}}
	local := []explain.Right{{Rules: []rbacv1.PolicyRule{rule}}}
	everywhere := []explain.Right{{Rules: []rbacv1.PolicyRule{rule}, Everywhere: true}}

	for name, tc := range map[string]struct {
		question          explain.Question
		byRole, inCluster bool
	}{
		"nodes":             {explain.Question{Verb: "get", Resource: "nodes"}, false, true},
		"own namespace":     {explain.Question{Verb: "get", Resource: "namespaces"}, true, true},
		"by its name":       {explain.Question{Verb: "patch", Resource: "namespaces", Name: "team-a"}, true, true},
		"other namespace":   {explain.Question{Verb: "get", Resource: "namespaces", Name: "team-b"}, false, true},
		"its status":        {explain.Question{Verb: "get", Resource: "namespaces/status"}, true, true},
		"to finalize it":    {explain.Question{Verb: "update", Resource: "namespaces/finalize", Name: "team-a"}, true, true},
		"another's status":  {explain.Question{Verb: "get", Resource: "namespaces/status", Name: "team-b"}, false, true},
		"the like":          {explain.Question{Verb: "get", Resource: "namespacesets/status"}, false, true},
		"list namespaces":   {explain.Question{Verb: "list", Resource: "namespaces"}, false, true},
		"create namespaces": {explain.Question{Verb: "create", Resource: "namespaces"}, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			q := tc.question
			q.InNoNamespace("team-a")

			byRole, _ := explain.Allowing(local, &q)
			inCluster, _ := explain.Allowing(everywhere, &q)

			if (len(byRole) > 0) != tc.byRole || (len(inCluster) > 0) != tc.inCluster {
				t.Errorf("allowed by a Role %t, want %t; by a ClusterRoleBinding %t, want %t",
					len(byRole) > 0, tc.byRole, len(inCluster) > 0, tc.inCluster)
			}

			if said := explain.Ineffective(local, &q); (len(said) > 0) == tc.byRole {
				t.Errorf("what says so to no effect is %v", said)
			}
		})
	}
}
