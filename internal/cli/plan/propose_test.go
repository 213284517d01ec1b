package plan

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// taken is a cluster that has everything already.
type taken struct {
	client.Client
	scheme *runtime.Scheme
}

func (t taken) Scheme() *runtime.Scheme { return t.scheme }

func (taken) Create(_ context.Context, obj client.Object, _ ...client.CreateOption) error {
	return apierrors.NewAlreadyExists(corev1.Resource("serviceaccounts"), obj.GetName())
}

// TestWhatIsThereAndMayNotBeRead: for somebody who may create and not get, that it is there already is an answer of the API
// server.
func TestWhatIsThereAndMayNotBeRead(t *testing.T) {
	t.Parallel()

	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}

	p := &proposer{Cluster: &reading.Cluster{Reader: snapshot.New(taken{scheme: scheme})}}
	out := &proposal{Document: files.Document{Unstructured: &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"namespace": "ops", "name": "there"},
	}}}}

	if err := p.try(t.Context(), out); err != nil {
		t.Fatal(err)
	}

	const want = `serviceaccounts "there" already exists, and you may not get it, as kubectl apply does first`
	if out.refused != want || out.result != resultChanged || out.object.GetCreationTimestamp() != (metav1.Time{}) {
		t.Errorf("%s, refused: %q; it is %+v", out.result, out.refused, out.object)
	}
}

// TestObjectsWithoutANameAreNotPlanned: an object that kubectl could not apply is told by where it is and what it lacks.
func TestObjectsWithoutANameAreNotPlanned(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		metadata map[string]any
		want     string
	}{
		"a name":  {map[string]any{"name": "s"}, ""},
		"both":    {map[string]any{"name": "s", "generateName": "s-"}, ""},
		"no name": {map[string]any{"namespace": "ops"}, "f.yaml: a NamespaceScope has no metadata.name; give it one"},
		"to generate": {
			map[string]any{"generateName": "s-"},
			"f.yaml: NamespaceScope s-* has metadata.generateName, by which kubectl applies nothing; give it a metadata.name",
		},
	} {
		d := files.Document{Source: "f.yaml", Unstructured: &unstructured.Unstructured{Object: map[string]any{
			"kind": "NamespaceScope", "metadata": tc.metadata,
		}}}

		got := ""
		if err := mustBeNamed(d); err != nil {
			got = err.Error()
		}

		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
