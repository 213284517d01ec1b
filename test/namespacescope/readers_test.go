package namespacescope_test

import (
	"fmt"
	"strconv"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
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

// running waits until an operator namespace has this many pods that run, and none that ends.
func (w *world) running(ops string, pods int) {
	w.Helper()
	w.eventually("pods run", func() error { return w.checkPods(ops, pods) })
}

// rolledOut waits until the one pod of a Deployment is of its present template, and no other runs.
func (w *world) rolledOut(d *appsv1.Deployment) {
	w.Helper()
	w.eventually(d.Name+" is rolled out", func() error {
		if err := w.get(d); err != nil {
			return err
		}

		if !testbed.RolledOut(d) {
			return fmt.Errorf("%+v", d.Status)
		}

		return nil
	})
	w.running(d.Namespace, 1)
}

// seen waits until Ambit has looked at everything that happened in the operator namespace so far: a change made now has its
// effect.
func (w *world) seen(ops, member string) {
	w.Helper()

	name := names(1, "marker")[0]
	w.grant(ops, "marker", name, "get pods")
	w.projectedRole(ops, name, member)
}

// withMarker makes the account whose rights seen waits for an operand's.
func withMarker(s spec) spec {
	s.ServiceAccountMembers = append(s.ServiceAccountMembers, "marker")

	return s
}

// births are the resource versions at which the pods of an operator namespace were created. The times of Kubernetes are whole
// seconds, too coarse to tell whether a pod began before a list or after it.
type births struct {
	mu       sync.Mutex
	versions map[string]int
}

// recordBirths begins to record the births in an operator namespace.
func (w *world) recordBirths(ops string) *births {
	w.Helper()

	b := &births{versions: map[string]int{}}

	changes, err := w.client.Watch(w.Context(), &corev1.PodList{}, client.InNamespace(ops))
	if err != nil {
		w.Fatal(err)
	}

	w.Cleanup(changes.Stop)

	go func() {
		for c := range changes.ResultChan() {
			if pod, ok := c.Object.(*corev1.Pod); ok && c.Type == watch.Added {
				b.mu.Lock()
				b.versions[pod.Name] = versionOf(pod.ResourceVersion)
				b.mu.Unlock()
			}
		}
	}()

	return b
}

// after says whether pods, of which there are some, were all created after a resource version.
func (b *births) after(version string, pods []string) error {
	b.mu.Lock()
	defer b.mu.Unlock()

	for _, name := range pods {
		if b.versions[name] <= versionOf(version) {
			return fmt.Errorf("pod %s was created at %d, the list at %s", name, b.versions[name], version)
		}
	}

	if len(pods) == 0 {
		return errNotThere
	}

	return nil
}

func versionOf(resourceVersion string) int {
	n, _ := strconv.Atoi(resourceVersion)

	return n
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
func (w *world) onePod(ops, name string) *corev1.Pod {
	w.Helper()

	var found corev1.Pod

	w.eventually("a pod of "+name, func() error {
		var pods corev1.PodList
		if err := w.client.List(w.Context(), &pods, client.InNamespace(ops), client.MatchingLabels{"name": name}); err != nil {
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

// podsOf names the pods of an operator namespace that are not ending.
func (w *world) podsOf(ops string) []string {
	w.Helper()

	var pods corev1.PodList
	if err := w.client.List(w.Context(), &pods, client.InNamespace(ops)); err != nil {
		w.Fatal(err)
	}

	var names []string

	for i := range pods.Items {
		if pods.Items[i].DeletionTimestamp == nil {
			names = append(names, pods.Items[i].Name)
		}
	}

	return names
}

// replaced waits until another pod runs in the place of one.
func (w *world) replaced(was *corev1.Pod) *corev1.Pod {
	w.Helper()

	name := was.Labels["name"]

	var now *corev1.Pod

	w.within(2*testbed.Patience, "the pod of "+name+" is replaced", func() error {
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

// checkPods says whether as many pods run, and no other is there where none shall.
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
