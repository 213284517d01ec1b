package namespacescope_test

import (
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
)

func ownedByCSV(d *appsv1.Deployment) {
	d.Labels = map[string]string{"olm.owner": "my-operator.v1", "olm.owner.kind": "ClusterServiceVersion"}
}

func inOperatorGroup(d *appsv1.Deployment) {
	d.Spec.Template.Annotations = map[string]string{"olm.operatorGroup": "my-group"}
}

// OLM undoes changes to the pod templates that it writes, so restarting by annotation would go on for ever.
func TestPodsOfOLMAreEvictedAndTheTemplateStays(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		mark   func(*appsv1.Deployment)
	}{
		"Owner":         {"the labels by which OLM knows its Deployments", ownedByCSV},
		"OperatorGroup": {"the annotation that OLM puts on the pods of a group", inOperatorGroup},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			ops, member := w.namespace("home"), w.namespace("member")
			nss := w.scope(ops, "scope", withMarker(spec{}))
			w.ready(nss)

			d := deployment(ops, "op", readsList)
			tc.mark(d)
			w.run(d)
			template := d.Spec.Template

			first := w.onePod(ops, "op")
			w.setMembers(nss, member)
			second := w.replaced(first)
			w.seen(ops, member)

			if err := w.samePods(second); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}

			w.mustGet(d)
			w.equal(tc.reason, d.Spec.Template, template)
		})
	}
}

// TestPodsThatNobodyReplacesAreEvicted: where pods stay as they are when their template changes, a mark on that would restart
// nobody, and the operator would not learn of the member.
func TestPodsThatNobodyReplacesAreEvicted(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		kind   func(ops string) client.Object
		keep   func(client.Object)
	}{
		"Paused": {
			"a Deployment that is paused", func(ops string) client.Object { return deployment(ops, "op", readsList) },
			func(obj client.Object) { obj.(*appsv1.Deployment).Spec.Paused = true },
		},
		"OnDelete": {
			"a StatefulSet whose pods somebody has to delete",
			func(ops string) client.Object { return statefulSet(ops, "op", readsList) },
			func(obj client.Object) {
				obj.(*appsv1.StatefulSet).Spec.UpdateStrategy = appsv1.StatefulSetUpdateStrategy{
					Type: appsv1.OnDeleteStatefulSetStrategyType,
				}
			},
		},
		"Partition": {
			"a StatefulSet that leaves its first pod out", func(ops string) client.Object { return statefulSet(ops, "op", readsList) },
			func(obj client.Object) {
				obj.(*appsv1.StatefulSet).Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateStatefulSetStrategy{
					Partition: new(int32(1)),
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			ops, member, another := w.namespace("home"), w.namespace("member"), w.namespace("another")
			nss := w.scope(ops, "scope", withMarker(spec{}))
			w.ready(nss)

			workload := tc.kind(ops)
			w.run(workload)
			first := w.onePod(ops, "op")
			w.change(workload, func() { tc.keep(workload) })

			// The manager may hear of the member before it hears of the change, and mark the template. It evicts once it knows.
			w.setMembers(nss, member)
			second := w.replaced(first)
			w.mustGet(workload)
			before := templateOf(workload)

			w.setMembers(nss, member, another)
			third := w.replaced(second)
			w.seen(ops, another)

			if err := w.samePods(third); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}

			w.mustGet(workload)
			w.equal(tc.reason, templateOf(workload), before)
		})
	}
}

// templateOf is the pod template of a workload.
func templateOf(workload client.Object) corev1.PodTemplateSpec {
	t, _ := facts.TypeOfWorkload(workload).Pods(workload)

	return *t.DeepCopy()
}

func TestOwnerOfAnotherKindIsNotOLM(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	nss := w.scope(ops, "scope", spec{})
	w.ready(nss)

	d := deployment(ops, "op", readsList)
	d.Labels = map[string]string{"olm.owner": "my-catalog", "olm.owner.kind": "CatalogSource"}
	w.run(d)
	w.running(ops, 1)

	w.setMembers(nss, member)
	w.restarted(d, 1)
}

func TestDisruptionBudgetHoldsAnEviction(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	nss := w.scope(ops, "scope", withMarker(spec{}))
	w.ready(nss)

	reader := pod(ops, "reader", readsList)
	w.run(reader)
	w.running(ops, 1)

	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "budget"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: named("reader"), MinAvailable: new(intstr.FromInt32(1))},
	}
	w.create(budget)
	w.eventually("the budget is in force", func() error {
		if err := w.get(budget); err != nil {
			return err
		}

		if budget.Status.ObservedGeneration != budget.Generation || budget.Status.CurrentHealthy != 1 {
			return errNotThere
		}

		return nil
	})

	w.setMembers(nss, member)
	w.lists(ops, defaultList, ops, member)
	w.event(ops, "RestartFailed", "reader")
	w.repeats(ops, "RestartFailed")
	// Everything else goes on.
	w.seen(ops, member)

	if err := w.samePods(reader); err != nil {
		t.Fatal(err)
	}

	w.delete(budget)
	// Nothing tells that a budget is gone: Ambit tries again at the next change, or later each time.
	w.seen(ops, member)
	w.gone(reader)
}

// repeats waits until an event with a reason was sent again, which is counted in it. Nothing else here is sure to need the right
// to write on an event, and the profiles give it.
func (w *world) repeats(ops, reason string) {
	w.Helper()
	w.hears(ops, "event "+reason+" counts how often", func(e *corev1.Event) bool { return e.Reason == reason && e.Series != nil })
}

// event waits for an event with a reason, whose message mentions something.
func (w *world) event(ops, reason, mentions string) {
	w.Helper()
	w.hears(ops, "event "+reason+" about "+mentions, func(e *corev1.Event) bool {
		return e.Reason == reason && strings.Contains(e.Message, mentions)
	})
}

// hears waits for an event about a scope.
func (w *world) hears(ops, what string, is func(*corev1.Event) bool) {
	w.Helper()
	w.eventually(what, func() error {
		var events corev1.EventList
		if err := w.client.List(w.Context(), &events, client.InNamespace(ops)); err != nil {
			return err
		}

		var heard []string

		for i := range events.Items {
			e := &events.Items[i]
			if e.InvolvedObject.Kind == "NamespaceScope" && is(e) {
				return nil
			}

			heard = append(heard, e.Reason+": "+e.Message)
		}

		return errors.New(strings.Join(heard, "\n"))
	})
}
