package installs_test

import (
	"errors"
	"sync/atomic"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestPodsLearnTheirTargetsWhateverThePhase: the pods of an operator that runs get its new targets while it waits for a
// definition and while it is being replaced; after the permissions of a target that came, and before those of one that went.
func TestPodsLearnTheirTargetsWhateverThePhase(t *testing.T) {
	w := begin(t, "cluster")
	own, a, b := w.Namespace("own"), w.Namespace("a"), w.Namespace("b")
	g := w.group(own, targets(a))
	op := csv(own, "op.v1")
	w.Make(op)
	w.succeeds(op)

	w.Change(op, func() {
		owning("absents.example.com", "Absent")(op)
		op.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = "example.com/operator:2"
	})
	w.becomes(op, olm.CSVPhasePending, olm.CSVReasonRequirementsNotMet)

	ended := w.watchTold(op)
	w.Change(g, func() { g.Spec.TargetNamespaces = []string{a, b} })
	w.reaches(g, a, b)
	w.told(op, g)
	w.Change(g, func() { g.Spec.TargetNamespaces = []string{b} })
	w.reaches(g, b)
	w.told(op, g)
	w.MayNot(own, "op", a, "get secrets")

	w.Eventually("it is told of a namespace only while it has permissions there", ended)

	d := &appsv1.Deployment{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: own, Name: "op"}, d); err != nil ||
		d.Spec.Template.Spec.Containers[0].Image != "example.com/operator:1" {
		t.Errorf("what waits was rolled out: %+v (%v)", d.Spec.Template.Spec.Containers, err)
	}

	w.becomes(op, olm.CSVPhasePending, olm.CSVReasonRequirementsNotMet)
	w.Change(op, func() { op.Spec.CustomResourceDefinitions.Owned = nil })
	w.succeeds(op)

	newer := csv(own, "op.v2", owning("absents.example.com", "Absent"))
	newer.Spec.Replaces = op.Name
	w.Make(newer)
	w.becomes(op, olm.CSVPhaseReplacing, olm.CSVReasonBeingReplaced)
	w.Change(g, func() { g.Spec.TargetNamespaces = []string{a} })
	w.reaches(g, a)
	w.told(op, g)
	w.MayNot(own, "op", b, "get secrets")
}

// TestPermissionsWaitForSlowWrites: where writes of Deployments and ClusterServiceVersions take seconds, permissions wait for
// them, and go after the operator and its pods have the new targets.
func TestPermissionsWaitForSlowWrites(t *testing.T) {
	w := begin(t, "cluster")
	own, a, b := w.Namespace("own"), w.Namespace("a"), w.Namespace("b")
	g := w.group(own, targets(a, b))
	op := csv(own, "op.v1")
	w.Make(op)
	w.succeeds(op)

	toldRight := w.watchTold(op)
	asked := w.slow(own, 2)

	w.Change(g, func() { g.Spec.TargetNamespaces = []string{a} })
	w.MayNot(own, "op", b, "get secrets")
	w.reaches(g, a)
	w.told(op, g)

	if n := asked.Load(); n < 2 {
		t.Errorf("%d writes were slow, want those of the Deployment and of the ClusterServiceVersion", n)
	}

	w.Eventually("it is told of a namespace only while it has permissions there", toldRight)
}

// slow has the writes of Deployments and ClusterServiceVersions in a namespace take seconds: a webhook is asked that says
// nothing, and need not say anything. It returns how often that was asked.
func (w *world) slow(namespace string, seconds int32) *atomic.Int64 {
	w.Helper()

	url, asked := w.Silent()
	w.Make(&admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "slow-" + namespace},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "slow.example.com", ClientConfig: admissionv1.WebhookClientConfig{URL: &url},
			NamespaceSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: &seconds,
			FailurePolicy: new(admissionv1.Ignore), SideEffects: new(admissionv1.SideEffectClassNone),
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Update}, Rule: admissionv1.Rule{
					APIGroups: []string{"apps", "operators.coreos.com"}, APIVersions: []string{"*"},
					Resources: []string{"deployments", "clusterserviceversions"},
				},
			}},
		}},
	})

	w.Eventually("the webhook is asked", func() error {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "op"}}
		probe := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"probe":"`+rand.String(6)+`"}}}`))

		err := w.Client.Patch(w.Context(), d, probe, client.DryRunAll)
		if err == nil && asked.Load() == 0 {
			return errors.New("not yet")
		}

		return err
	})

	asked.Store(0)

	return asked
}
