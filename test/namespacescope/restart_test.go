package namespacescope_test

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// restartInterval is the manager's default.
const restartInterval = 10 * time.Second

func TestReadersRestartOnceForOneChange(t *testing.T) {
	w := begin(t)
	home, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")
	nss := w.scope(home, "scope", withMarker(members(a)))
	w.ready(nss)

	readers := map[string]client.Object{
		"env":              deployment(home, "env", readsList),
		"envFrom":          deployment(home, "env-from", readsByEnvFrom),
		"volume":           deployment(home, "volume", readsByVolume),
		"projected volume": deployment(home, "projected-volume", readsByProjectedVolume),
		"init container":   deployment(home, "init", readsInInitContainer),
		"second container": deployment(home, "second", readsInSecondContainer),
		"StatefulSet":      statefulSet(home, "stateful", readsList),
		"DaemonSet":        daemonSet(home, "daemon", readsList),
	}

	unlabelled := deployment(home, "unlabelled", readsList)
	delete(unlabelled.Spec.Template.Labels, "intent")

	disabled := deployment(home, "disabled", readsList)
	disabled.Annotations = map[string]string{"ambit.dev/restart": "disabled"}

	idle := deployment(home, "idle", readsList)
	idle.Spec.Replicas = new(int32(0))

	others := map[string]client.Object{
		"no label":          unlabelled,
		"restart disabled":  disabled,
		"scaled to zero":    idle,
		"no reader":         deployment(home, "no-reader"),
		"another ConfigMap": deployment(home, "another", readsAnotherConfigMap),
	}

	for _, group := range []map[string]client.Object{readers, others} {
		for _, workload := range group {
			w.run(workload)
		}
	}

	// The Deployment that is scaled to zero has no pod, and the DaemonSet one on each of two nodes.
	w.running(home, len(readers)+len(others))

	for how, reader := range readers {
		if err := w.checkRestarts(reader, 0); err != nil {
			t.Errorf("reader by %s began after the list: %v", how, err)
		}
	}

	w.change(nss, func() { nss.Spec.NamespaceMembers = []string{a, b} })
	w.lists(home, defaultList, home, a, b)

	for _, reader := range readers {
		w.restarted(reader, 1)
	}

	w.running(home, len(readers)+len(others))
	w.seen(home, b)

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
	w.eventually("the ReplicaSets", func() error { return w.checkReplicaSets(home, "env", 2) })
}

func (w *world) checkReplicaSets(home, name string, want int) error {
	var sets appsv1.ReplicaSetList
	if err := w.client.List(w.Context(), &sets, client.InNamespace(home), client.MatchingLabels{"name": name}); err != nil {
		return err
	}

	if len(sets.Items) != want {
		return fmt.Errorf("%s has %d ReplicaSets, want %d", name, len(sets.Items), want)
	}

	return nil
}

func TestReaderThatWasThereBeforeTheScopeRestarts(t *testing.T) {
	w := begin(t)
	home, member := w.namespace("home"), w.namespace("member")
	d := deployment(home, "op", readsList)
	w.run(d)
	w.running(home, 1)

	w.scope(home, "scope", withMarker(members(member)))

	w.restarted(d, 1)
	w.running(home, 1)
	w.seen(home, member)

	if err := w.checkRestarts(d, 1); err != nil {
		t.Error(err)
	}
}

func TestNothingRestartsWhileTheListStays(t *testing.T) {
	w := begin(t)
	home, member := w.namespace("home"), w.namespace("member")
	w.operator(home, "op")

	reader := deployment(home, "reader", readsList)
	nss := w.scope(home, "scope", withMarker(members(member, home)))
	w.ready(nss)
	w.run(reader)
	w.running(home, 2)

	// The same members in other words, another scope with the same members, and other rights.
	w.change(nss, func() { nss.Spec.NamespaceMembers = []string{member, member} })
	w.ready(w.scope(home, "another", members(member)))
	w.grant(home, "op", "pods", "get pods")
	w.seen(home, member)

	w.steadily("the reader was left alone", func() error { return w.checkRestarts(reader, 0) })
	w.lists(home, defaultList, home, member)
}

func TestReaderCreatedTogetherWithTheScope(t *testing.T) {
	w := begin(t)
	home, member := w.namespace("home"), w.namespace("member")
	w.scope(home, "scope", withMarker(members(member)))
	w.lists(home, defaultList, home, member)

	// Within the same second as the list, as when one file holds both.
	reader := deployment(home, "reader", readsList)
	w.run(reader)
	w.running(home, 1)
	w.seen(home, member)

	w.steadily("the reader began with the list", func() error { return w.checkRestarts(reader, 0) })
}

func TestBurstOfChangesRestartsAtMostOncePerInterval(t *testing.T) {
	w := begin(t)
	home, namespaces := w.namespace("home"), names(8, "member")
	nss := w.scope(home, "scope", spec{})
	w.ready(nss)

	births := w.recordBirths(home)
	reader := deployment(home, "reader", readsList)
	w.run(reader)
	w.running(home, 1)

	first := time.Now()

	for i, member := range namespaces {
		w.namespaceCalled(member)
		w.setMembers(nss, namespaces[:i+1]...)
		w.lists(home, defaultList, append([]string{home}, namespaces[:i+1]...)...)
	}

	last := configMap(home, defaultList)
	w.mustGet(last)

	// The first change restarts at once, the others together, when the interval has passed.
	w.within(2*patience, "every pod began with the last list", func() error {
		return births.after(last.ResourceVersion, w.podsOf(home))
	})

	most := 2 + int(time.Since(first)/restartInterval)
	if n, err := w.restarts(reader); err != nil || n > most {
		t.Errorf("%d changes restarted the reader %d times, %v", len(namespaces), n, err)
	}
}

func TestRestartDisabledLater(t *testing.T) {
	w := begin(t)
	home, member := w.namespace("home"), w.namespace("member")
	nss := w.scope(home, "scope", withMarker(spec{}))
	w.ready(nss)

	reader := deployment(home, "reader", readsList)
	reader.Annotations = map[string]string{"ambit.dev/restart": "disabled"}
	w.run(reader)
	w.running(home, 1)

	w.change(nss, func() { nss.Spec.NamespaceMembers = []string{member} })
	w.lists(home, defaultList, home, member)
	w.seen(home, member)

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
	home, member := w.namespace("home"), w.namespace("member")
	nss := w.scope(home, "scope", withMarker(spec{}))
	w.ready(nss)

	reader, bystander := pod(home, "reader", readsList), pod(home, "bystander")
	disabled := pod(home, "disabled", readsList)
	disabled.Annotations = map[string]string{"ambit.dev/restart": "disabled"}
	w.run(reader, bystander, disabled)
	w.running(home, 3)

	w.change(nss, func() { nss.Spec.NamespaceMembers = []string{member} })
	w.gone(reader)

	// Under another name: whoever plays the nodes may yet delete the one that went, by its name.
	again := pod(home, "again", readsList)
	w.run(again)
	w.running(home, 3)
	w.seen(home, member)

	w.steadily("the pod that began with the list is left alone", func() error {
		return w.samePods(again, bystander, disabled)
	})
}
