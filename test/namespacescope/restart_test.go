package namespacescope_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// hashAnnotation is on the pod template of every reader that Ambit restarted.
const hashAnnotation = "ambit.dev/namespaces-hash"

func readsByEnvFrom(s *corev1.PodSpec) {
	s.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: defaultList},
	}}}
}

func readsByVolume(s *corev1.PodSpec) {
	s.Volumes = []corev1.Volume{{Name: "list", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: defaultList},
	}}}}
}

func readsByProjectedVolume(s *corev1.PodSpec) {
	s.Volumes = []corev1.Volume{{Name: "list", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: defaultList},
		}}},
	}}}}
}

func readsInInitContainer(s *corev1.PodSpec) {
	s.InitContainers = []corev1.Container{{
		Name: "init", Image: "registry.example.com/init:1", Env: []corev1.EnvVar{watchNamespace()},
	}}
}

func readsInSecondContainer(s *corev1.PodSpec) {
	second := s.Containers[0]
	second.Name, second.Env = "second", []corev1.EnvVar{watchNamespace()}
	s.Containers = append(s.Containers, second)
}

func readsAnotherConfigMap(s *corev1.PodSpec) {
	readsByEnvFrom(s)
	s.Containers[0].EnvFrom[0].ConfigMapRef.Name = "another"
}

// restarts says how often a workload's pod template was changed since it was made.
func (w *world) restarts(workload client.Object) (int, error) {
	if err := w.get(workload); err != nil {
		return 0, err
	}

	return int(workload.GetGeneration()) - 1, nil
}

func (w *world) checkRestarts(workload client.Object, want int) error {
	got, err := w.restarts(workload)
	if err != nil {
		return err
	}

	if got != want {
		return fmt.Errorf("%T %s was restarted %d times, want %d", workload, workload.GetName(), got, want)
	}

	return nil
}

func (w *world) restarted(workload client.Object, times int) {
	w.Helper()
	w.eventually("a restart", func() error { return w.checkRestarts(workload, times) })
}

// running waits until a home has this many pods that run, and none that ends.
func (w *world) running(home string, pods int) {
	w.Helper()
	w.eventually("pods run", func() error { return w.checkPods(home, pods) })
}

// seen waits until Ambit has looked at everything that happened in the home so far: a change made now has its effect.
func (w *world) seen(home, member string) {
	w.Helper()

	name := names(1, "marker")[0]
	w.grant(home, "marker", name, "get pods")
	w.projectedRole(home, name, member)
}

// withMarker makes the account whose rights seen waits for an operand's.
func withMarker(s spec) spec {
	s.ServiceAccountMembers = append(s.ServiceAccountMembers, "marker")

	return s
}

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

	w.checkReplicaSets(home, "env", 2)
}

func (w *world) checkReplicaSets(home, name string, want int) {
	w.Helper()

	var sets appsv1.ReplicaSetList
	if err := w.client.List(w.Context(), &sets, client.InNamespace(home), client.MatchingLabels{"name": name}); err != nil {
		w.Fatal(err)
	}

	if len(sets.Items) != want {
		w.Errorf("%s has %d ReplicaSets, want %d", name, len(sets.Items), want)
	}
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

	reader := deployment(home, "reader", readsList)
	w.run(reader)
	w.running(home, 1)

	for i, member := range namespaces {
		w.namespaceCalled(member)
		w.change(nss, func() { nss.Spec.NamespaceMembers = namespaces[:i+1] })
		w.lists(home, defaultList, append([]string{home}, namespaces[:i+1]...)...)
	}

	last := configMap(home, defaultList)
	w.mustGet(last)

	// The first change restarts at once, the others together, when the interval has passed.
	w.within(2*patience, "the reader begins with the last list", func() error {
		if err := w.get(reader); err != nil {
			return err
		}

		if reader.Spec.Template.Annotations[hashAnnotation] != last.Annotations[hashAnnotation] {
			return errNotThere
		}

		return nil
	})

	if n, err := w.restarts(reader); err != nil || n > 2 {
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

	w.change(reader, func() { reader.Annotations = nil })
	w.restarted(reader, 1)
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

	again := pod(home, "reader", readsList)
	w.create(again)
	w.running(home, 3)
	w.seen(home, member)

	w.steadily("the pod that began with the list is left alone", func() error {
		return w.samePods(again, bystander, disabled)
	})
}

// samePods says whether pods still are what they were.
func (w *world) samePods(pods ...*corev1.Pod) error {
	for _, p := range pods {
		now := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}}
		if err := w.get(now); err != nil {
			return err
		}

		if now.UID != p.UID || now.DeletionTimestamp != nil {
			return fmt.Errorf("pod %s was restarted", p.Name)
		}
	}

	return nil
}

// onePod waits for the one pod of a workload that runs.
func (w *world) onePod(home, name string) *corev1.Pod {
	w.Helper()

	var found corev1.Pod

	w.eventually("a pod of "+name, func() error {
		var pods corev1.PodList
		if err := w.client.List(w.Context(), &pods, client.InNamespace(home), client.MatchingLabels{"name": name}); err != nil {
			return err
		}

		if len(pods.Items) != 1 || pods.Items[0].Status.Phase != corev1.PodRunning || pods.Items[0].DeletionTimestamp != nil {
			return fmt.Errorf("%d pods", len(pods.Items))
		}

		found = pods.Items[0]

		return nil
	})

	return &found
}

// replaced waits until another pod runs in the place of one.
func (w *world) replaced(was *corev1.Pod) *corev1.Pod {
	w.Helper()

	name := was.Labels["name"]

	var now *corev1.Pod

	w.within(2*patience, "the pod of "+name+" is replaced", func() error {
		now = w.onePod(was.Namespace, name)
		if now.UID == was.UID {
			return errNotThere
		}

		return nil
	})

	return now
}

func (w *world) setMembers(nss *operatorv1.NamespaceScope, namespaces ...string) {
	w.Helper()
	w.change(nss, func() { nss.Spec.NamespaceMembers = namespaces })
}
