package plan

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

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

// TestVersionsThatNobodyServes: kubectl does not apply an object whose version the cluster does not know, so it is not left out
// as one of a kind that means nothing to Ambit.
func TestVersionsThatNobodyServes(t *testing.T) {
	t.Parallel()

	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}

	c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme)).Build()
	p := &proposer{Cluster: &reading.Cluster{Reader: snapshot.New(c)}}

	for version, tc := range map[string]struct{ kind, want string }{
		"operator.ibm.com/v1alpha1": {"NamespaceScope", "operator.ibm.com/v1"},
		"namespacescope.ibm.com/v1": {"NamespaceScope", "namespacescope.ibm.com/v1alpha1"},
		"operators.coreos.com/v1":   {"ClusterServiceVersion", "operators.coreos.com/v1alpha1"},
		"operators.coreos.com/v9":   {"OperatorGroup", "operators.coreos.com/v1"},
		"autoscaling/v2beta1":       {"HorizontalPodAutoscaler", ""}, // It is left out in any version.
		"example.com/v1":            {"Kettle", ""},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": version, "kind": tc.kind}}
		u.SetNamespace("ops")
		u.SetName("x")

		_, err := p.propose(t.Context(), files.Document{Source: "f.yaml", Unstructured: u})

		want := "f.yaml: the cluster does not know " + tc.kind + " of " + version + "; write apiVersion: " + tc.want
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestWhatGoesWithADefinition: a plan looks at no objects of kinds whose definition goes, and says so.
func TestWhatGoesWithADefinition(t *testing.T) {
	t.Parallel()

	definition := func(group, plural, kind, result string) *proposal {
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group}}
		crd.Spec.Group, crd.Spec.Names.Kind = group, kind

		return &proposal{object: crd, result: result}
	}

	got := goesAlong([]*proposal{
		definition("operator.ibm.com", "namespacescopes", "NamespaceScope", resultDeleted),
		definition("operators.coreos.com", "operatorgroups", "OperatorGroup", resultChanged),
		definition("example.com", "kettles", "Kettle", resultDeleted),
		{object: &corev1.Namespace{}, result: resultDeleted},
	})

	want := []string{"each NamespaceScope goes with CustomResourceDefinition namespacescopes.operator.ibm.com; what follows from " +
		"that is not in the plan"}
	if !slices.Equal(got, want) {
		t.Errorf("the notes are %q", got)
	}
}
