package installs_test

import (
	"errors"
	"fmt"
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

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/install"
)

// TestNoTargetThatExists: an operator none of whose targets is there is told of them all the same. Its pods would otherwise read
// an empty list, which means all namespaces.
func TestNoTargetThatExists(t *testing.T) {
	w := begin(t, "cluster")
	own := w.Namespace("own")
	typo := "typo-" + own
	g := w.group(own, targets(typo))
	op := csv(own, "op.v1")
	w.Make(op)
	w.succeeds(op)
	w.reaches(g, typo)
	w.told(op, g)

	d := &appsv1.Deployment{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: own, Name: "op"}, d); err != nil ||
		d.Generation != 1 || d.Spec.Template.Annotations["olm.targetNamespaces"] != typo {
		t.Errorf("the Deployment is of generation %d, and its pods read %v (%v)", d.Generation, d.Spec.Template.Annotations, err)
	}
}

// TestNarrowedToNothing: when the only target that is there, or all namespaces, give way to one that is not there, the operator
// may do nothing any more in what was taken away.
func TestNarrowedToNothing(t *testing.T) {
	for name, before := range map[string]func(target string) operatorsv1.OperatorGroupSpec{
		"one": func(target string) operatorsv1.OperatorGroupSpec { return targets(target) },
		"all": func(string) operatorsv1.OperatorGroupSpec { return operatorsv1.OperatorGroupSpec{} },
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, "cluster")
			own, target := w.Namespace("own"), w.Namespace("target")
			g := w.group(own, before(target))
			op := csv(own, "op.v1")
			w.Make(op)
			w.succeeds(op)
			w.May(own, "op", target, "get secrets")

			w.Change(g, func() { g.Spec.TargetNamespaces = []string{"typo-" + own} })
			w.MayNot(own, "op", target, "get secrets")
			w.reaches(g, "typo-"+own)
			w.told(op, g)
			w.May(own, "op", own, "get secrets")
		})
	}
}

// TestNarrowedWhileReplaced: a target that goes is taken from a version that runs on because the newer one cannot be installed
// yet, and from one that waits for something itself.
func TestNarrowedWhileReplaced(t *testing.T) {
	w := begin(t, "cluster")
	own, a, b := w.Namespace("own"), w.Namespace("a"), w.Namespace("b")
	g := w.group(own, targets(a, b))
	old := csv(own, "op.v1")
	w.Make(old)
	w.succeeds(old)
	w.May(own, "op", b, "get secrets")

	newer := csv(own, "op.v2", owning("absents.example.com", "Absent"))
	newer.Spec.Replaces = old.Name
	w.Make(newer)
	w.becomes(old, olm.CSVPhaseReplacing, olm.CSVReasonBeingReplaced)

	w.Change(g, func() { g.Spec.TargetNamespaces = []string{a} })
	w.MayNot(own, "op", b, "get secrets")
	w.May(own, "op", a, "get secrets")
	w.becomes(old, olm.CSVPhaseReplacing, olm.CSVReasonBeingReplaced)

	w.Remove(newer)
	w.succeeds(old)
	w.reaches(g, a)
	w.told(old, g)

	w.Change(g, func() { g.Spec.TargetNamespaces = []string{a, b} })
	w.May(own, "op", b, "get secrets")
	w.reaches(g, a, b)
	w.told(old, g)
	w.Change(old, func() { owning("absents.example.com", "Absent")(old) })
	w.becomes(old, olm.CSVPhasePending, olm.CSVReasonRequirementsNotMet)
	w.Change(g, func() { g.Spec.TargetNamespaces = []string{a} })
	w.MayNot(own, "op", b, "get secrets")
	w.May(own, "op", a, "get secrets")
}

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

	if err := ended(); err != nil {
		t.Error(err)
	}

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

// TestPodsLearnTheirTargetsWhileOneIsRefused: no pod gets a target any more that went, although another one that came is refused.
func TestPodsLearnTheirTargetsWhileOneIsRefused(t *testing.T) {
	for _, profile := range profiles {
		t.Run(profile, func(t *testing.T) {
			w := begin(t, profile)
			own, a, b, closed := w.Namespace("own"), w.Namespace("a"), w.Namespace("b"), w.Namespace("closed")
			g := w.scoped(own, a, b)
			op := csv(own, "op.v1")

			for i, place := range install.Needs(op, own, []string{a, b}) {
				w.give(own, fmt.Sprintf("told-%d-%s", i, own), place)
			}

			w.Make(op)
			w.succeeds(op)
			w.told(op, g)

			w.Change(g, func() { g.Spec.TargetNamespaces = []string{a, closed} })
			w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "in namespace "+closed)

			d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "op"}}
			w.Eventually("the pods are told of the one target that is left", func() error {
				if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
					return err
				}

				return has(d.Spec.Template.Annotations, map[string]string{"olm.targetNamespaces": a})
			})
		})
	}
}
