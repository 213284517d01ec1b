package snapshot

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// TestGrantsGoToWhoeverWrites: what is missing is granted to the account that lacks it. Where a manager serves several
// namespaces, that is one of the scope's own in members: granted to the manager's, it would serve the scopes of all of them.
func TestGrantsGoToWhoeverWrites(t *testing.T) {
	t.Parallel()

	m := predict.Manager{Namespace: "first", Account: "manager", Namespaces: []string{"first", "second"}}

	for name, tc := range map[string]struct {
		in, delegate, namespace, want string
	}{
		"a member, of the manager's own namespace": {"first", "", "member", "first/manager"},
		"a member, of another namespace":           {"second", "", "member", "second/ambit"},
		"the manager's own namespace":              {"first", "", "first", "first/manager"},
		"another operator namespace":               {"second", "", "second", "first/manager"},
		"a member, of a delegate":                  {"second", "writer", "member", "second/writer"},
		"the operator namespace, of a delegate":    {"second", "writer", "second", "second/writer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := &scope.Scope{
				Owner: scope.Owner{Kind: "NamespaceScope", Namespace: tc.in, Name: "s"},
				Key:   scope.NamespaceScopes.In(tc.in), Delegate: tc.delegate, WatchList: "list",
			}
			here := &facts.OperatorNamespace{Accounts: map[string]struct{}{"writer": {}}}
			j := &Authorizer{manager: m, writers: map[scope.Owner]writer.Identity{s.Owner: m.Writers().Of(s, here)}}

			got := j.Grants([]*predict.Prediction{{
				Scopes: []predict.ScopePrediction{{ScopePlan: &plan.ScopePlan{Scope: s}}},
				Changes: []predict.Change{{
					Change: plan.Change{Namespace: tc.namespace}, Owner: s.Owner,
					Refusal: &predict.Refusal{Missing: []rbacv1.PolicyRule{{Verbs: []string{"get"}}}},
				}},
			}})
			if len(got) != 1 || got[0].To+"/"+got[0].Account != tc.want {
				t.Errorf("%v is granted, and not to %s", got, tc.want)
			}
		})
	}
}
