package preflight

import (
	"context"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/preflight"
	"github.com/ambit-k8s/ambit/internal/snapshot"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// guardedCluster is a cluster with the policy about scopes without an account, and a scope without one, of which each Get ends
// with an error, if there is one.
func guardedCluster(t *testing.T, unread error) *inquiry {
	t.Helper()

	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}

	meta := metav1.ObjectMeta{Name: "ambit-own-identity"}
	built := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme)).WithObjects(
		&admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta},
		&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: meta.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}},
		&operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "there"}},
	).Build()

	c := interceptor.NewClient(built, interceptor.Funcs{Get: func(
		ctx context.Context, to client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption,
	) error {
		if unread != nil {
			return unread
		}

		return to.Get(ctx, key, obj, options...)
	}})

	return &inquiry{Cluster: &reading.Cluster{Reader: snapshot.New(c)}, writers: &writer.Manager{}}
}

// TestGuardOfFilesWithAnInstall holds that what Ambit's admission policies ask for an object of files counts also if the files
// hold a ClusterServiceVersion, and nothing of it for what is in the cluster already.
func TestGuardOfFilesWithAnInstall(t *testing.T) {
	t.Parallel()

	for name, want := range map[string]string{"": "escalate clusterroles", "csv/kettle.v1": ""} {
		v := guardedCluster(t, nil)
		documents := make([]files.Document, 2)

		for i, gvk := range []schema.GroupVersionKind{
			olm.SchemeGroupVersion.WithKind("ClusterServiceVersion"), operatorv1.GroupVersion.WithKind("NamespaceScope"),
		} {
			documents[i] = files.Document{Unstructured: &unstructured.Unstructured{}}
			documents[i].SetGroupVersionKind(gvk)
			documents[i].SetName("kettle.v1")
		}

		o := &Options{Options: reading.Options{Namespace: "ops"}, User: "jane", Scope: name}
		needs, err := o.needsOf(t.Context(), v, documents, []string{"ops"})
		if err != nil {
			t.Fatal(err)
		}

		got := ""

		for _, need := range needs {
			if need.Namespace == preflight.Everywhere {
				got = authority.Words(need.Missing(nil), 1<<20)
			}
		}

		if strings.Contains(got, "escalate clusterroles") != (want != "") {
			t.Errorf("of %q, needs are %q", name, got)
		}
	}
}

// TestWhatCannotBeSeenIsNotedOfTheGuard: whoever gives a scope an account that has none today needs what the guard asks for that.
// Where it cannot be seen whether it has one, it is not said that nothing is missing.
func TestWhatCannotBeSeenIsNotedOfTheGuard(t *testing.T) {
	t.Parallel()

	scopes := operatorv1.GroupVersion.WithResource("namespacescopes").GroupResource()

	for name, tc := range map[string]struct {
		scope, account      string
		unread              error
		needs, notes, fails string
	}{
		"it has none today":        {scope: "there", account: "w", needs: "escalate clusterroles"},
		"it is not there":          {scope: "new", account: "w"},
		"it is to get a name":      {account: "w", unread: apierrors.NewServiceUnavailable("down")},
		"it may not be read":       {"there", "w", apierrors.NewForbidden(scopes, "there", nil), "", "ops/there", ""},
		"it may not, and need not": {"there", "", apierrors.NewForbidden(scopes, "there", nil), "escalate clusterroles", "", ""},
		"it cannot be read":        {"there", "w", apierrors.NewServiceUnavailable("down"), "", "", "ops/there: down"},
	} {
		v := guardedCluster(t, tc.unread)
		obj := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"serviceAccountName": tc.account}}}
		obj.SetGroupVersionKind(operatorv1.GroupVersion.WithKind("NamespaceScope"))
		obj.SetName(tc.scope)

		o := &Options{User: "jane"}
		object := preflight.Object{Object: obj, Resource: scopes, Namespaced: true}

		needs, err := o.guarded(t.Context(), v, []preflight.Object{object}, []string{"ops"})

		var all []string
		for _, need := range needs {
			all = append(all, authority.Words(need.Missing(nil), 1<<20))
		}

		said := ""
		if err != nil {
			said = err.Error()
		}

		words, notes := strings.Join(all, "; "), strings.Join(v.Notes, "; ")
		if words != tc.needs || !strings.Contains(said, tc.fails) || (said == "") != (tc.fails == "") ||
			!strings.Contains(notes, tc.notes) || (notes == "") != (tc.notes == "") {
			t.Errorf("%s: needs %q, notes %q, fails %q", name, words, notes, said)
		}
	}
}
