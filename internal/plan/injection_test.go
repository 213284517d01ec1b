package plan_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestConfinedInjectionIsTakenBack plans for a Deployment into which an earlier version injected what it should not have.
func TestConfinedInjectionIsTakenBack(t *testing.T) {
	t.Parallel()

	const releases, applies = plan.ReleaseInjection, plan.ApplyInjection

	for name, tc := range map[string]struct {
		reason   string
		confined bool
		account  string
		in       scope.WorkloadInjection
		action   plan.InjectAction
	}{
		"arguments": {"nothing says who wants them", true, "default", scope.WorkloadInjection{Arguments: []string{"-x"}}, releases},
		"variable":  {"likewise", true, "default", scope.WorkloadInjection{Variable: "PATH"}, releases},
		"Ambit":     {"it is Ambit itself", true, "ambit", scope.WorkloadInjection{Variable: "NAMESPACES"}, releases},
		"anywhere":  {"in every profile", false, "ambit", scope.WorkloadInjection{Variable: "NAMESPACES"}, releases},
		"allowed":   {"this may stay", true, "default", scope.WorkloadInjection{Variable: "NAMESPACES"}, applies},
		"policies":  {"somebody asked who wrote the scope", false, "default", scope.WorkloadInjection{Variable: "PATH"}, applies},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			operands := labels.Set{"intent": "projected"}
			s := scope.Scope{
				Owner: scope.Owner{Group: "g", Kind: "NamespaceScope", Namespace: "ops", Name: "s"},
				Key:   scope.NamespaceScopes.In("ops"), WatchList: "list",
				Operands: operands.AsSelectorPreValidated(), Labels: operands, Confined: tc.confined, InjectWorkloads: &tc.in,
			}
			p := plan.New([]scope.Scope{s}, &facts.Facts{Key: s.Key, AmbitAccount: "ambit",
				OperatorNamespace: facts.OperatorNamespace{Workloads: []facts.Workload{{
					Kind: facts.Deployment, Name: "d", Applied: true, InjectedFor: s.Owner.String(),
					Template: facts.Template{Labels: operands, Account: tc.account},
					PodSpec:  facts.PodSpec{Containers: []facts.Container{{Name: "a"}}},
				}}}})

			if len(p.Injections) != 1 || p.Injections[0].Action != tc.action || p.Injections[0].Scope != 0 {
				t.Errorf("%s: %+v", tc.reason, p.Injections)
			}

			refused := p.Scopes[0].InjectionRefused != "" || len(p.Scopes[0].Injectables) == 1 && p.Scopes[0].Injectables[0].Refused != ""
			if refused != (tc.action == releases) {
				t.Errorf("%s: refused: %t", tc.reason, refused)
			}
		})
	}
}
