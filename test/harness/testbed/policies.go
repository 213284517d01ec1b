package testbed

import (
	"context"
	"errors"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var errNotRefused = errors.New("the policy that was made last refuses nothing yet")

// awaitPolicies waits until the API server enforces the installed policies, and no longer those of the profile that was installed
// before: it reads them once a second, and those could refuse what a manager does first. A policy that is made after them is in
// force no earlier than they are.
func (b *Bed) awaitPolicies(ctx context.Context) error {
	// The name is random, so that no policy of an earlier test on the cluster refuses a ConfigMap of this name.
	canary := "installed-last-" + rand.String(10)
	meta := metav1.ObjectMeta{Name: canary}
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				ResourceNames: []string{canary},
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: canary, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}

	for _, obj := range []client.Object{policy, binding} {
		if err := b.Client.Create(ctx, obj); err != nil {
			return fmt.Errorf("making a policy: %w", err)
		}
	}

	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: canary}}
	err := Until(Patience, func() error {
		err := b.Client.Create(ctx, probe.DeepCopy(), client.DryRunAll)
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			return nil
		}

		return errors.Join(errNotRefused, err)
	})
	if err != nil {
		return fmt.Errorf("waiting for the policies that were installed: %w", err)
	}

	for _, obj := range []client.Object{binding, policy} {
		if err := b.Client.Delete(ctx, obj); err != nil {
			return fmt.Errorf("removing a policy: %w", err)
		}
	}

	return nil
}
