package apply_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/injection"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// TestInjectionIntoAKindThatIsNotListedYet: an API server serves a new kind seconds before it lists it among its kinds. What
// cannot be written until then is tried again, for nothing else would bring it about.
func TestInjectionIntoAKindThatIsNotListedYet(t *testing.T) {
	t.Parallel()

	config := testcluster.Config(t)
	applier := apply.New(config, client.Options{Mapper: meta.NewDefaultRESTMapper(nil)}, &notes{}, 1)

	out := applier.ApplyWith(t.Context(), &plan.Plan{
		Key:    scope.NamespaceScopes.In(testcluster.Namespace(t, config, "inject")),
		Scopes: []plan.ScopePlan{{Scope: &scope.Scope{}}},
		Injections: []plan.Injection{{
			Action: plan.PatchInjection, Workload: facts.WorkloadRef{Kind: plan.CSVKind, Name: "op.v1"}, Version: 1,
			Patch: []injection.Op{{Op: "add", Path: "/metadata/annotations", Value: map[string]any{}}},
		}},
	}, []apply.Identity{writer.Own()}, writer.Own())

	if got := out.Injections[0]; !got.Is(apply.Conflict) {
		t.Errorf("got %s and %v, want a failure that the next plan settles", got.Result, got.Err)
	}
}
