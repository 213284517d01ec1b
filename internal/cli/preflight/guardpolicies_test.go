package preflight

import (
	"context"
	"slices"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/preflight"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// policy is one that is bound, with an account for scopes that name none.
func policy(name, byDefault, boundTo string, actions ...admissionv1.ValidationAction) []client.Object {
	p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Variables = []admissionv1.Variable{
		{Name: "account", Expression: "object.spec.serviceAccountName"}, {Name: "byDefault", Expression: "'" + byDefault + "'"},
	}
	b := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	b.Spec.PolicyName, b.Spec.ValidationActions = boundTo, actions

	return []client.Object{p, b}
}

// clusterOf is a cluster with some objects, in which some resources may not be read.
func clusterOf(t *testing.T, forbidden string, objects ...client.Object) *inquiry {
	t.Helper()

	scheme, err := controllers.Scheme()
	if err != nil {
		t.Fatal(err)
	}

	built := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(testrestmapper.TestOnlyStaticRESTMapper(scheme)).
		WithObjects(objects...).Build()
	refusal := apierrors.NewForbidden(schema.GroupResource{Resource: forbidden}, "", nil)
	is := func(to client.WithWatch, obj runtime.Object) bool {
		gvk, err := to.GroupVersionKindFor(obj)

		return err == nil && forbidden != "" && strings.TrimSuffix(gvk.Kind, "List") == forbidden
	}
	c := interceptor.NewClient(built, interceptor.Funcs{
		Get: func(
			ctx context.Context, to client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption,
		) error {
			if is(to, obj) {
				return refusal
			}

			return to.Get(ctx, key, obj, options...)
		},
		List: func(ctx context.Context, to client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if is(to, list) {
				return refusal
			}

			return to.List(ctx, list, options...)
		},
	})

	return &inquiry{Cluster: &reading.Cluster{Reader: snapshot.New(c)}}
}

// written is an object that somebody would write.
func written(gvk schema.GroupVersionKind, resource string, content map[string]any) preflight.Object {
	obj := &unstructured.Unstructured{Object: content}
	obj.SetGroupVersionKind(gvk)
	obj.SetName("one")

	return preflight.Object{
		Object: obj, Resource: schema.GroupResource{Group: gvk.Group, Resource: resource}, Namespaced: true,
	}
}

func scopeNaming(account string) preflight.Object {
	return written(operatorv1.GroupVersion.WithKind("NamespaceScope"), "namespacescopes", map[string]any{
		"spec": map[string]any{"serviceAccountName": account},
	})
}

// asked is what the guard asks for an object in the namespace ops, in words.
func asked(t *testing.T, o *Options, v *inquiry, object preflight.Object) string {
	t.Helper()

	needs, err := o.guarded(t.Context(), v, []preflight.Object{object}, []string{"ops"})
	if err != nil {
		t.Fatal(err)
	}

	var all []string
	for _, need := range needs {
		all = append(all, authority.Words(need.Missing(nil), 1<<20))
	}

	return strings.Join(all, "; ")
}

// TestPoliciesInForce: a policy counts if it is bound, by a binding of its own that refuses, and it takes the account of
// --default-service-account for that of scopes which name none.
func TestPoliciesInForce(t *testing.T) {
	t.Parallel()

	const own, delegate = "ambit-own-identity", "ambit-delegate-identity"

	for reason, tc := range map[string]struct {
		policies []client.Object
		account  string
		want     string
	}{
		"there is none":    {nil, "", ""},
		"it refuses":       {policy(own, "", own, admissionv1.Deny), "", "escalate clusterroles"},
		"it also audits":   {policy(own, "", own, admissionv1.Audit, admissionv1.Deny), "", "escalate clusterroles"},
		"it only warns":    {policy(own, "", own, admissionv1.Warn), "", ""},
		"it only audits":   {policy(own, "", own, admissionv1.Audit), "", ""},
		"another is bound": {policy(own, "", "somebody-elses", admissionv1.Deny), "", ""},
		"scopes without an account have one by default": {policy(own, "writer", own, admissionv1.Deny), "", ""},
		"the account by default is used":                {policy(delegate, "writer", delegate, admissionv1.Deny), "", "writer"},
		"no account is used":                            {policy(delegate, "", delegate, admissionv1.Deny), "", ""},
		"the account that it names is used":             {policy(delegate, "writer", delegate, admissionv1.Deny), "mine", "mine"},
	} {
		v := clusterOf(t, "", tc.policies...)

		got := asked(t, &Options{User: "jane"}, v, scopeNaming(tc.account))
		if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: it asks for %q, want %q", reason, got, tc.want)
		}

		if len(v.Notes) > 0 {
			t.Errorf("%s: it notes %q", reason, v.Notes)
		}
	}
}

// TestPoliciesThatMayNotBeListed: who may not see what is asked is told that it is not counted. What no policy is about needs no
// such note.
func TestPoliciesThatMayNotBeListed(t *testing.T) {
	t.Parallel()

	secret := written(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, "secrets", map[string]any{})

	for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
		v := clusterOf(t, kind, policy("ambit-own-identity", "", "ambit-own-identity", admissionv1.Deny)...)

		if got := asked(t, &Options{User: "jane"}, v, secret); got != "" || len(v.Notes) > 0 {
			t.Errorf("%s: for a Secret it asks for %q and notes %q", kind, got, v.Notes)
		}

		if got := asked(t, &Options{User: "jane"}, v, scopeNaming("")); got != "" || len(v.Notes) != 1 {
			t.Errorf("%s: it asks for %q and notes %q", kind, got, v.Notes)
		}
	}
}

// TestWhoMayInstallAsTheAccountOfAGroup: what is installed is written as the account that the index of groups names. Only that
// account needs no right to use itself; a user or a group that is called like it, and who stands for nobody, need it.
func TestWhoMayInstallAsTheAccountOfAGroup(t *testing.T) {
	t.Parallel()

	const delegate, own = "ambit-delegate-identity-operators", "ambit-own-identity-operators"

	index := func(account string) client.Object {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
			Name: read.GroupIndexName, Annotations: map[string]string{read.AccountPrefix + "ops": account},
		}}
	}
	both := append(policy(delegate, "", delegate, admissionv1.Deny), policy(own, "", own, admissionv1.Deny)...)
	csv := written(olm.SchemeGroupVersion.WithKind("ClusterServiceVersion"), "clusterserviceversions", map[string]any{})

	installs := []client.Object{index("installer")}

	for reason, tc := range map[string]struct {
		options   Options
		forbidden string
		there     []client.Object
		want      string
		note      string
	}{
		"the account itself":            {Options{Account: "installer"}, "", installs, "", ""},
		"the account, with a namespace": {Options{Account: "ops/installer"}, "", installs, "", ""},
		"its namesake elsewhere":        {Options{Account: "other/installer"}, "", installs, "installer", ""},
		"another account":               {Options{Account: "builder"}, "", installs, "installer", ""},
		"a user":                        {Options{User: "jane"}, "", installs, "installer", ""},
		"the user who the account is": {
			Options{User: "system:serviceaccount:ops:installer"}, "", installs, "", "",
		},
		"a group":                   {Options{Group: "system:serviceaccounts:ops"}, "", installs, "installer", ""},
		"the group names none":      {Options{User: "jane"}, "", []client.Object{index("")}, "escalate clusterroles", ""},
		"there is no index":         {Options{User: "jane"}, "", nil, "", "does not exist"},
		"the index may not be read": {Options{User: "jane"}, "ClusterRole", []client.Object{index("")}, "", "you may not get"},
	} {
		tc.options.Namespace = "ops"
		v := clusterOf(t, tc.forbidden, slices.Concat(tc.there, both)...)

		got := asked(t, &tc.options, v, csv)
		if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: it asks for %q, want %q", reason, got, tc.want)
		}

		if notes := strings.Join(v.Notes, "; "); !strings.Contains(notes, tc.note) || (notes == "") != (tc.note == "") {
			t.Errorf("%s: it notes %q, want %q", reason, notes, tc.note)
		}
	}
}
