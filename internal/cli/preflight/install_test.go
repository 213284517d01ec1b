package preflight

import (
	"context"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/snapshot"
	"github.com/ambit-k8s/ambit/internal/writer"
)

const definition = "kettles.example.com"

// stepped is a cluster with an InstallPlan whose definition has this manifest, and further objects.
func stepped(t *testing.T, manifest string, there ...client.Object) *inquiry {
	t.Helper()

	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}

	step := func(group, version, kind, name, manifest string) *olm.Step {
		return &olm.Step{Status: olm.StepStatusNotPresent, Resource: olm.StepResource{
			Group: group, Version: version, Kind: kind, Name: name, Manifest: manifest,
		}}
	}
	csv := `{"apiVersion":"operators.coreos.com/v1alpha1","kind":"ClusterServiceVersion","metadata":{"name":"kettle.v2"},` +
		`"spec":{"customresourcedefinitions":{"owned":[{"name":"` + definition + `","version":"v2","kind":"Kettle"}]}}}`
	ip := &olm.InstallPlan{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "install-abcde"}}
	ip.Status.Plan = []*olm.Step{
		step("apiextensions.k8s.io", "v1", "CustomResourceDefinition", definition, manifest),
		step(olm.GroupName, "v1alpha1", "ClusterServiceVersion", "kettle.v2", csv),
	}

	c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme)).
		WithObjects(append(there, ip)...).WithReturnManagedFields().Build()

	return &inquiry{Cluster: &reading.Cluster{Reader: snapshot.New(c)}, writers: &writer.Manager{}}
}

// serving is a definition that serves one version, written by somebody.
func serving(by string) client.Object {
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: definition, UID: "live", ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: by, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: apiextensionsv1.SchemeGroupVersion.String(),
			FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`),
		}}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true}},
		},
	}
}

// TestDefinitionsOfSteps: a definition that is there and has to be changed takes the right to patch it, one that is not there the
// right to create it, and one that stays as it is takes none; also where the InstallPlan had no room for its manifest.
func TestDefinitionsOfSteps(t *testing.T) {
	t.Parallel()

	const (
		manifest = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"` + definition +
			`"},"spec":{"versions":[{"name":"v1","served":true},{"name":"v2","served":true}]}}`
		creates, patches = "create customresourcedefinitions", "patch customresourcedefinitions named " + definition
	)

	for name, tc := range map[string]struct {
		manifest     string
		there        []client.Object
		needs, notes string
	}{
		"not there":                     {manifest: manifest, needs: creates},
		"not there, and left out":       {needs: creates},
		"Ambit's":                       {manifest: manifest, there: []client.Object{serving("ambit")}, needs: patches},
		"Ambit's, and left out":         {there: []client.Object{serving("ambit")}, needs: patches},
		"somebody's, which will not do": {manifest: manifest, there: []client.Object{serving("kubectl")}, notes: "does not serve v2"},
		"as it should be, whoever's it is": {
			manifest: strings.Replace(manifest, `,{"name":"v2","served":true}`, "", 1), there: []client.Object{serving("kubectl")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o := &Options{Options: reading.Options{Namespace: "ops"}, Scope: "installplan/install-abcde"}
			v := stepped(t, tc.manifest, tc.there...)

			steps, err := o.stepsOf(t.Context(), v, "install-abcde")
			if err != nil {
				t.Fatal(err)
			}

			needs, err := o.needsOf(t.Context(), v, steps, []string{"ops"})
			if err != nil {
				t.Fatal(err)
			}

			var words []string
			for _, need := range needs {
				words = append(words, authority.Words(need.Rules, 1<<20))
			}

			said, notes := strings.Join(words, "; "), strings.Join(v.Notes, "; ")
			if strings.Contains(said, creates) != (tc.needs == creates) || strings.Contains(said, patches) != (tc.needs == patches) ||
				!strings.Contains(notes, tc.notes) || (notes == "") != (tc.notes == "") {
				t.Errorf("needs %q, notes %q", said, notes)
			}
		})
	}
}

// TestInstallOfNobody: where no account installs, the error says whether a group names none, or there is no group at all.
func TestInstallOfNobody(t *testing.T) {
	t.Parallel()

	for want, there := range map[string][]client.Object{
		"namespace ops has no OperatorGroup": nil,
		"the OperatorGroup of namespace ops names no service account": {&operatorsv1.OperatorGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "og"},
		}},
	} {
		o := &Options{Options: reading.Options{Namespace: "ops", AmbitNamespace: "ambit"}, Scope: "installplan/install-abcde"}

		_, err := o.askAboutInstall(t.Context(), stepped(t, "", there...), nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestInstallThatIsNotThere: an error about what is not there says whether its name is wrong, or the cluster lacks the kind.
func TestInstallThatIsNotThere(t *testing.T) {
	t.Parallel()

	for want, fails := range map[string]error{
		"there is no csv/x in namespace ops": apierrors.NewNotFound(olm.Resource("clusterserviceversions"), "x"),
		"the cluster does not know the kind of csv/x; install Ambit with OLM's kinds, or OLM": &meta.NoKindMatchError{
			GroupKind: olm.Kind("ClusterServiceVersion"),
		},
	} {
		c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{Get: func(
			context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption,
		) error {
			return fails
		}})
		o := &Options{Options: reading.Options{Namespace: "ops"}, Scope: "csv/x"}

		_, err := o.installOf(t.Context(), &inquiry{Cluster: &reading.Cluster{Reader: snapshot.New(c)}}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
