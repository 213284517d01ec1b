package namespacescope_test

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// restartInterval is shorter than the manager's default, so that no test waits for the restarts that it caused before.
const restartInterval = 10 * time.Second

func TestReadersRestartOnceForOneChange(t *testing.T) {
	w := begin(t)
	ops, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")
	nss := w.scope(ops, "scope", withMarker(members(a)))
	w.ready(nss)

	readers := map[string]client.Object{
		"env":              deployment(ops, "env", readsList),
		"envFrom":          deployment(ops, "env-from", readsByEnvFrom),
		"volume":           deployment(ops, "volume", readsByVolume),
		"projected volume": deployment(ops, "projected-volume", readsByProjectedVolume),
		"init container":   deployment(ops, "init", readsInInitContainer),
		"second container": deployment(ops, "second", readsInSecondContainer),
		"StatefulSet":      statefulSet(ops, "stateful", readsList),
		"DaemonSet":        daemonSet(ops, "daemon", readsList),
	}

	unlabelled := deployment(ops, "unlabelled", readsList)
	delete(unlabelled.Spec.Template.Labels, "intent")

	disabled := deployment(ops, "disabled", readsList)
	disabled.Annotations = map[string]string{"ambit.dev/restart": "disabled"}

	idle := deployment(ops, "idle", readsList)
	idle.Spec.Replicas = new(int32(0))

	others := map[string]client.Object{
		"no label":          unlabelled,
		"restart disabled":  disabled,
		"scaled to zero":    idle,
		"no reader":         deployment(ops, "no-reader"),
		"another ConfigMap": deployment(ops, "another", readsAnotherConfigMap),
	}

	for _, group := range []map[string]client.Object{readers, others} {
		for _, workload := range group {
			w.run(workload)
		}
	}

	// The Deployment that is scaled to zero has no pod, and the DaemonSet one on each of two nodes.
	w.running(ops, len(readers)+len(others))

	for how, reader := range readers {
		if err := w.checkRestarts(reader, 0); err != nil {
			t.Errorf("reader by %s began after the list: %v", how, err)
		}
	}

	w.change(nss, func() { nss.Spec.NamespaceMembers = []string{a, b} })
	w.lists(ops, defaultList, ops, a, b)

	for _, reader := range readers {
		w.restarted(reader, 1)
	}

	w.running(ops, len(readers)+len(others))
	w.seen(ops, b)

	for how, reader := range readers {
		if err := w.checkRestarts(reader, 1); err != nil {
			t.Errorf("reader by %s: %v", how, err)
		}
	}

	for why, workload := range others {
		if err := w.checkRestarts(workload, 0); err != nil {
			t.Errorf("%s: %v", why, err)
		}
	}

	// Kubernetes makes the second in its own time.
	w.eventually("the ReplicaSets", func() error { return w.checkReplicaSets(ops, "env", 2) })
}

func (w *world) checkReplicaSets(ops, name string, want int) error {
	var sets appsv1.ReplicaSetList
	if err := w.client.List(w.Context(), &sets, client.InNamespace(ops), client.MatchingLabels{"name": name}); err != nil {
		return err
	}

	if len(sets.Items) != want {
		return fmt.Errorf("%s has %d ReplicaSets, want %d", name, len(sets.Items), want)
	}

	return nil
}

func TestReaderThatWasThereBeforeTheScopeRestarts(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	d := deployment(ops, "op", readsList)
	w.run(d)
	w.running(ops, 1)

	w.scope(ops, "scope", withMarker(members(member)))

	w.restarted(d, 1)
	w.running(ops, 1)
	w.seen(ops, member)

	if err := w.checkRestarts(d, 1); err != nil {
		t.Error(err)
	}
}

func TestNothingRestartsWhileTheListStays(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	w.operator(ops, "op")

	reader := deployment(ops, "reader", readsList)
	nss := w.scope(ops, "scope", withMarker(members(member, ops)))
	w.ready(nss)
	w.run(reader)
	w.running(ops, 2)

	// The same members in other words, another scope with the same members, and other rights.
	w.change(nss, func() { nss.Spec.NamespaceMembers = []string{member, member} })
	w.ready(w.scope(ops, "another", members(member)))
	w.grant(ops, "op", "pods", "get pods")
	w.seen(ops, member)

	w.steadily("the reader was left alone", func() error { return w.checkRestarts(reader, 0) })
	w.lists(ops, defaultList, ops, member)
}

func TestReaderCreatedTogetherWithTheScope(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	w.scope(ops, "scope", withMarker(members(member)))
	w.lists(ops, defaultList, ops, member)

	// Within the same second as the list, as when one file holds both.
	reader := deployment(ops, "reader", readsList)
	w.run(reader)
	w.running(ops, 1)
	w.seen(ops, member)

	w.steadily("the reader began with the list", func() error { return w.checkRestarts(reader, 0) })
}

func TestBurstOfChangesRestartsAtMostOncePerInterval(t *testing.T) {
	w := begin(t)
	ops, namespaces := w.namespace("home"), names(8, "member")
	nss := w.scope(ops, "scope", spec{})
	w.ready(nss)

	births := w.recordBirths(ops)
	reader := deployment(ops, "reader", readsList)
	w.run(reader)
	w.running(ops, 1)

	first := time.Now()

	for i, member := range namespaces {
		w.namespaceCalled(member)
		w.setMembers(nss, namespaces[:i+1]...)
		w.lists(ops, defaultList, append([]string{ops}, namespaces[:i+1]...)...)
	}

	last := configMap(ops, defaultList)
	w.mustGet(last)

	// The first change restarts at once, the others together, when the interval has passed.
	w.within(2*testbed.Patience, "every pod began with the last list", func() error {
		return births.after(last.ResourceVersion, w.podsOf(ops))
	})

	most := 2 + int(time.Since(first)/restartInterval)
	if n, err := w.restarts(reader); err != nil || n > most {
		t.Errorf("%d changes restarted the reader %d times, %v", len(namespaces), n, err)
	}
}

func TestRestartDisabledLater(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	nss := w.scope(ops, "scope", withMarker(spec{}))
	w.ready(nss)

	reader := deployment(ops, "reader", readsList)
	reader.Annotations = map[string]string{"ambit.dev/restart": "disabled"}
	w.run(reader)
	w.running(ops, 1)

	w.change(nss, func() { nss.Spec.NamespaceMembers = []string{member} })
	w.lists(ops, defaultList, ops, member)
	w.seen(ops, member)

	if err := w.checkRestarts(reader, 0); err != nil {
		t.Error(err)
	}

	// Changing an annotation of a Deployment counts as a generation, so this looks at the template.
	w.change(reader, func() { reader.Annotations = nil })
	w.eventually("a restart", func() error {
		if err := w.get(reader); err != nil {
			return err
		}

		if reader.Spec.Template.Annotations[hashAnnotation] == "" {
			return errNotThere
		}

		return nil
	})
}

func TestBarePodIsEvicted(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	nss := w.scope(ops, "scope", withMarker(spec{}))
	w.ready(nss)

	reader, bystander := pod(ops, "reader", readsList), pod(ops, "bystander")
	disabled := pod(ops, "disabled", readsList)
	disabled.Annotations = map[string]string{"ambit.dev/restart": "disabled"}
	w.run(reader, bystander, disabled)
	w.running(ops, 3)

	w.change(nss, func() { nss.Spec.NamespaceMembers = []string{member} })
	w.gone(reader)

	// Under another name: whoever plays the nodes may yet delete the one that went, by its name.
	again := pod(ops, "again", readsList)
	w.run(again)
	w.running(ops, 3)
	w.seen(ops, member)

	w.steadily("the pod that began with the list is left alone", func() error {
		return w.samePods(again, bystander, disabled)
	})
}
