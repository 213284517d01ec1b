package apply

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recorder notes what it is told of.
type recorder struct {
	quiet

	wrote []client.Object
}

func (r *recorder) Wrote(obj client.Object) { r.wrote = append(r.wrote, obj) }

// TestWroteTellsKindsOfOneNameApart holds that nothing is recorded as a Service of Kubernetes that is one of another API group.
func TestWroteTellsKindsOfOneNameApart(t *testing.T) {
	t.Parallel()

	for version, want := range map[string]int{"v1": 1, "serving.knative.dev/v1": 0} {
		r := &recorder{}
		Simulated(nil, r).wrote(&unstructured.Unstructured{Object: map[string]any{
			"apiVersion": version, "kind": "Service", "metadata": map[string]any{"namespace": "ops", "name": "a"},
		}})

		if len(r.wrote) != want {
			t.Errorf("%d objects of %s were recorded, want %d", len(r.wrote), version, want)
		}
	}
}
