package namespacescope_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

func TestAccountsComeFromEveryKindOfWorkload(t *testing.T) {
	t.Parallel()

	for kind, tc := range map[string]struct {
		reason   string
		workload func(ops, name string) client.Object
	}{
		"Deployment":  {"the usual operator", func(h, n string) client.Object { return deployment(h, n) }},
		"StatefulSet": {"operators with a disk", func(h, n string) client.Object { return statefulSet(h, n) }},
		"DaemonSet":   {"operators of nodes", func(h, n string) client.Object { return daemonSet(h, n) }},
		"Job":         {"installers", func(h, n string) client.Object { return job(h, n) }},
		"CronJob":     {"also while none of its jobs runs", func(h, n string) client.Object { return cronJob(h, n) }},
		"Pod":         {"a pod that nothing controls", func(h, n string) client.Object { return pod(h, n) }},
	} {
		t.Run(kind, func(t *testing.T) {
			w := begin(t)
			ops, member := w.namespace("home"), w.namespace("member")
			w.grant(ops, "op", "secrets", "get secrets")
			nss := w.scope(ops, "scope", members(member))
			w.ready(nss)

			w.create(tc.workload(ops, "op"))

			w.may(ops, "op", member, "get secrets")
			w.ready(nss)
		})
	}
}

func TestNeitherScaleToZeroNorPodDeletionRevokes(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	d := w.operator(ops, "op")
	w.ready(w.scope(ops, "scope", members(member)))
	w.may(ops, "op", member, "get secrets")
	before := w.projectedBinding(ops, "secrets", member)

	w.eventually("the pod runs", func() error { return w.checkPods(ops, 1) })

	if err := w.client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(ops)); err != nil {
		t.Fatal(err)
	}

	w.change(d, func() { d.Spec.Replicas = new(int32(0)) })
	w.eventually("the pods are gone", func() error { return w.checkPods(ops, 0) })

	// By the time this is there, Ambit has seen all of the above.
	w.grant(ops, "op", "pods", "get pods")
	w.may(ops, "op", member, "get pods")

	after := w.projectedBinding(ops, "secrets", member)
	w.equal("the binding was left alone", after.ResourceVersion, before.ResourceVersion)
}

func (w *world) checkPods(ops string, want int) error {
	var pods corev1.PodList
	if err := w.client.List(w.Context(), &pods, client.InNamespace(ops)); err != nil {
		return err
	}

	running := 0

	for i := range pods.Items {
		if p := &pods.Items[i]; p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
			running++
		}
	}

	if running != want || want == 0 && len(pods.Items) > 0 {
		return fmt.Errorf("%d pods run of %d, want %d", running, len(pods.Items), want)
	}

	return nil
}

func TestNamedAccountIsProjectedOnceItExists(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	w.operator(ops, "op")
	w.create(role(ops, "pods", "get pods"), binding(ops, "pods", "Role", "pods", subject(ops, "late")))

	s := members(member)
	s.ServiceAccountMembers = []string{"late", "late", "op"}
	nss := w.scope(ops, "scope", s)

	c := w.reports(nss, "AccountsFound", metav1.ConditionFalse, "Missing")
	if !strings.Contains(c.Message, "late") || strings.Contains(c.Message, "op,") {
		t.Errorf("the message should name the account that is missing, and only that: %s", c.Message)
	}

	w.lists(ops, defaultList, ops, member)
	w.may(ops, "op", member, "get secrets")
	w.mayNot(ops, "late", member, "get pods")

	late := serviceAccount(ops, "late")
	w.create(late)
	w.may(ops, "late", member, "get pods")
	w.reports(nss, "AccountsFound", metav1.ConditionTrue, "AllFound")

	w.change(nss, func() { nss.Spec.ServiceAccountMembers = nil })
	w.mayNot(ops, "late", member, "get pods")
	w.may(ops, "op", member, "get secrets")
}

func TestMissingAccountOfAWorkloadIsReported(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	w.create(deployment(ops, "orphan"))

	nss := w.scope(ops, "scope", members(member))

	if c := w.reports(nss, "AccountsFound", metav1.ConditionFalse, "Missing"); !strings.Contains(c.Message, "orphan") {
		t.Errorf("the message does not name the account: %s", c.Message)
	}
}

func TestOnlyOperandsAreProjected(t *testing.T) {
	t.Parallel()

	type labels = map[string]operatorv1.LabelValue

	for name, tc := range map[string]struct {
		reason        string
		restartLabels labels
		operand, not  map[string]string
	}{
		"Default": {
			reason:  "without restartLabels it is intent=projected",
			operand: map[string]string{"intent": "projected"}, not: map[string]string{"intent": "other"},
		},
		"Empty": {
			reason:        "empty means the default, never everything",
			restartLabels: labels{},
			operand:       map[string]string{"intent": "projected", "more": "x"}, not: map[string]string{"more": "x"},
		},
		"Own": {
			reason:        "labels of one's own take the place of the default",
			restartLabels: labels{"example.com/scope": "mine"},
			operand:       map[string]string{"example.com/scope": "mine"}, not: map[string]string{"intent": "projected"},
		},
		"Several": {
			reason:        "all of them are needed",
			restartLabels: labels{"a": "1", "b": ""},
			operand:       map[string]string{"a": "1", "b": ""}, not: map[string]string{"a": "1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			ops, member := w.namespace("home"), w.namespace("member")

			for account, labels := range map[string]map[string]string{"operand": tc.operand, "not": tc.not} {
				w.grant(ops, account, account, "get secrets")

				d := deployment(ops, account)
				delete(d.Spec.Template.Labels, "intent")

				maps.Copy(d.Spec.Template.Labels, labels)

				w.create(d)
			}

			s := members(member)
			s.RestartLabels = tc.restartLabels
			w.ready(w.scope(ops, "scope", s))

			w.may(ops, "operand", member, "get secrets")

			if err := w.checkDenied(on(ops, "not", member, "get secrets")); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

func TestLabelOfTheWorkloadItselfMakesNoOperand(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	w.operator(ops, "op")
	w.grant(ops, "not", "not", "get pods")

	d := deployment(ops, "not")
	d.Labels = map[string]string{"intent": "projected"}
	delete(d.Spec.Template.Labels, "intent")
	w.create(d)
	w.ready(w.scope(ops, "scope", members(member)))

	w.may(ops, "op", member, "get secrets")

	if err := w.checkDenied(on(ops, "not", member, "get pods")); err != nil {
		t.Error(err)
	}
}

func TestWorkloadWithoutAnAccountRunsAsDefault(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	w.create(role(ops, "pods", "get pods"), binding(ops, "pods", "Role", "pods", subject(ops, "default")))

	d := deployment(ops, "op")
	d.Spec.Template.Spec.ServiceAccountName = ""
	w.create(d)
	w.scope(ops, "scope", members(member))

	w.may(ops, "default", member, "get pods")
}

func TestOneOfTwoWorkloadsKeepsTheAccount(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	d := w.operator(ops, "op")

	second := statefulSet(ops, "second")
	second.Spec.Template.Spec.ServiceAccountName = "op"
	w.create(second)
	w.ready(w.scope(ops, "scope", members(member)))
	w.may(ops, "op", member, "get secrets")

	w.delete(d)
	w.grant(ops, "op", "pods", "get pods")
	w.may(ops, "op", member, "get pods")

	if err := w.checkAllowed(on(ops, "op", member, "get secrets")); err != nil {
		t.Error(err)
	}
}
