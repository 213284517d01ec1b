package preflight

import (
	"context"
	"slices"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/snapshot"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// TestVersionsThatCannotBeListed: whoever may not list the ClusterServiceVersions of a namespace is told so, beside what else an
// account must be allowed to delete. Where the cluster has no such kind, there is none to list.
func TestVersionsThatCannotBeListed(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		refusal error
		notRead []string
	}{
		"forbidden": {
			apierrors.NewForbidden(schema.GroupResource{Group: olm.GroupName, Resource: "clusterserviceversions"}, "", nil),
			[]string{"you may not list clusterserviceversions in namespace ops"},
		},
		"not there": {&meta.NoKindMatchError{}, nil},
	} {
		scheme, err := controllers.Scheme()
		if err != nil {
			t.Fatal(err)
		}

		c := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme)).
			WithInterceptorFuncs(interceptor.Funcs{List: func(
				ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption,
			) error {
				if _, is := list.(*unstructured.UnstructuredList); is {
					return tc.refusal
				}

				return c.List(ctx, list, options...)
			}}).Build()
		v := &inquiry{Cluster: &reading.Cluster{Reader: snapshot.New(c)}, writers: &writer.Manager{NeedDelegate: true}}
		o := &Options{Options: reading.Options{Namespace: "ops"}, Account: "ops/installer"}
		csv := &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "kettle.v1"}}

		if _, err := o.deletes(t.Context(), v, csv, []string{"ops"}); err != nil {
			t.Errorf("%s: it fails: %#v", name, err)
		}

		if got := v.NotRead(); !slices.Equal(got, tc.notRead) {
			t.Errorf("%s: not read is %q, want %q", name, got, tc.notRead)
		}
	}
}

// TestAnUnknownManagerIsNamed: what an install needs depends on how Ambit runs, so nobody is left to believe that this is known.
func TestAnUnknownManagerIsNamed(t *testing.T) {
	t.Parallel()

	o := &Options{Options: reading.Options{Namespace: "ops", AmbitNamespace: "elsewhere"}}
	v := stepped(t, "")

	want := []string{"there is no Deployment elsewhere/ambit, so Ambit is taken to run as in the profile cluster; say where it is " +
		"by --ambit-namespace"}
	if err := o.confine(t.Context(), v); err != nil || !slices.Equal(v.Notes, want) {
		t.Errorf("the notes are %q, want %q: %v", v.Notes, want, err)
	}
}
