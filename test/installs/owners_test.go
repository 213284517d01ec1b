package installs_test

import (
	"errors"
	"slices"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestUpgradeWhereOwnersAreGuarded: an API server can refuse everybody to change who owns an object that they may not delete, as
// those of OpenShift do. What two versions of an operator share, its accounts and what answers for its webhooks, gets the newer
// one as an owner all the same.
func TestUpgradeWhereOwnersAreGuarded(t *testing.T) {
	w := begin(t, "cluster")
	own := w.Namespace("own")
	w.guardsOwners(own)
	w.group(own, targets(own))

	first := csv(own, "op.v1", asking("guarded.example.com"))
	w.Make(first)
	w.succeeds(first)

	second := csv(own, "op.v2", asking("guarded.example.com"), func(c *olm.ClusterServiceVersion) { c.Spec.Replaces = first.Name })
	w.Make(second)
	w.succeeds(second)
	w.gone(first)

	for _, shared := range []client.Object{
		testbed.Account(own, "op"), w.secret(own),
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "op-service"}},
	} {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(shared), shared); err != nil {
			t.Fatal(err)
		}

		owners := shared.GetOwnerReferences()
		if !slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == second.UID }) {
			t.Errorf("%T %s belongs to %+v", shared, shared.GetName(), owners)
		}
	}
}

// guardsOwners has the API server ask in a namespace what its admission plugin OwnerReferencesPermissionEnforcement asks
// everywhere, with which no other test could share the cluster.
func (w *world) guardsOwners(namespace string) {
	w.Helper()

	// A selector of namespaces says nothing about what is in none.
	name, namespaced := "guards-owners-in-"+namespace, admissionv1.NamespacedScope
	w.Make(&admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule: admissionv1.Rule{
						APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}, Scope: &namespaced,
					},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "object.metadata.?ownerReferences.orValue([]) == " +
				"oldObject.metadata.?ownerReferences.orValue([]) || authorizer.group(request.resource.group)." +
				"resource(request.resource.resource).namespace(request.namespace).name(request.name).check('delete').allowed()"}},
		},
	}, &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: namespace},
			}},
		},
	})

	w.Make(testbed.Account(namespace, "patches"))
	w.Grant(namespace, "patches", namespace, "patches", "patch configmaps")

	patches := w.As("system:serviceaccount:" + namespace + ":patches")
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "owned"}}
	w.Make(owned)

	w.Eventually("the API server guards who owns an object", func() error {
		owner := `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"none"}]}}`
		patch := client.RawPatch(types.MergePatchType, []byte(owner))

		if err := patches.Patch(w.Context(), owned.DeepCopy(), patch, client.DryRunAll); !apierrors.IsInvalid(err) {
			return errors.Join(errNot, err)
		}

		return nil
	})
}
