package reconcile_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// byVariable has the containers of a template read the watch list; the other ways are in the table.
func byVariable(t *corev1.PodTemplateSpec) {
	t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "WATCH_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: inList(), Key: scope.ListKey},
	}}}
}

func inList() corev1.LocalObjectReference {
	return corev1.LocalObjectReference{Name: "namespace-scope"}
}

// reads makes a Deployment called reader, after the edits, and a pod of it whose container began long ago.
func (w *world) reads(annotations map[string]string, edits ...func(*corev1.PodTemplateSpec)) {
	w.Helper()

	w.Make(w.account("reader"))

	t := edited("reader", edits)
	w.Make(&appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "reader", Annotations: annotations},
		Spec:       appsv1.DeploymentSpec{Selector: selectorOf(&t), Template: t},
	})
	w.pod("reader-1-x", &t, true)
}

// pod makes a pod of a template that began long ago; one of the Deployment called reader, or one of nobody's.
func (w *world) pod(name string, t *corev1.PodTemplateSpec, owned bool) {
	w.Helper()

	w.begun(w.pending(name, t, owned))
}

// begun has the container of a pod begun long ago.
func (w *world) begun(p *corev1.Pod) {
	w.Helper()

	p.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "operator", Ready: true, State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-time.Hour))},
		},
	}}
	p.Status.Phase = corev1.PodRunning

	if err := w.client.Status().Update(w.Context(), p); err != nil {
		w.Fatal(err)
	}

	w.touch(p)
}

// pending makes such a pod that has not begun.
func (w *world) pending(name string, t *corev1.PodTemplateSpec, owned bool) *corev1.Pod {
	w.Helper()

	p := &corev1.Pod{ObjectMeta: *t.ObjectMeta.DeepCopy(), Spec: *t.Spec.DeepCopy()}
	p.Namespace, p.Name = w.ns(ops), name

	if owned {
		p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = "1"
		p.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "reader-1", UID: "1", Controller: new(true),
		}}
	}

	w.Make(p)

	return p
}

// beginsAnew has the reader restarted, and its new pod not begun yet.
func (w *world) beginsAnew() {
	w.Helper()
	w.reads(nil, byVariable)
	w.respec(`{"namespaceMembers":["a>","b>"]}`)

	_, wrote := w.settle()
	is(w, "restarts", restarts(wrote), []string{"patch deployments ops/reader"})

	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "reader-1-x"}}
	if err := w.client.Delete(w.Context(), old, client.GracePeriodSeconds(0)); err != nil {
		w.Fatal(err)
	}

	t := edited("reader", []func(*corev1.PodTemplateSpec){byVariable})
	w.pending("reader-2-x", &t, true)
}

// restarted says what a pod template says of the list that its pods were restarted for.
func (w *world) restarted() string {
	w.Helper()

	d := &appsv1.Deployment{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "reader"}, d); err != nil {
		w.Fatal(err)
	}

	return d.Spec.Template.Annotations[scope.AnnotationListHash]
}

// restarts are the writes by which something restarts.
func restarts(wrote []string) []string {
	return slices.DeleteFunc(slices.Clone(wrote), func(what string) bool {
		return !strings.HasPrefix(what, "patch deployments ") && !strings.HasSuffix(what, "/eviction")
	})
}

// TestRestart: who restarts when the list changes.
func TestRestart(t *testing.T) {
	t.Parallel()

	patched := []string{"patch deployments ops/reader"}

	for name, tc := range map[string]struct {
		annotations map[string]string
		edit        func(*corev1.PodTemplateSpec)
		bare        bool
		want        []string
	}{
		"a variable of the ConfigMap": {edit: byVariable, want: patched},
		"all keys as variables": {edit: func(t *corev1.PodTemplateSpec) {
			t.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{
				{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: inList()}},
			}
		}, want: patched},
		"a volume": {edit: func(t *corev1.PodTemplateSpec) {
			t.Spec.Volumes = []corev1.Volume{{Name: "list", VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: inList()},
			}}}
		}, want: patched},
		"a part of a projected volume": {edit: func(t *corev1.PodTemplateSpec) {
			t.Spec.Volumes = []corev1.Volume{{Name: "list", VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
					{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: inList()}},
				}},
			}}}
		}, want: patched},
		"a variable of an init container": {edit: func(t *corev1.PodTemplateSpec) {
			byVariable(t)
			t.Spec.InitContainers = []corev1.Container{*t.Spec.Containers[0].DeepCopy()}
			t.Spec.InitContainers[0].Name, t.Spec.Containers[0].Env = "init", nil
		}, want: patched},
		"another ConfigMap is none of it": {edit: func(t *corev1.PodTemplateSpec) {
			byVariable(t)
			t.Spec.Containers[0].Env[0].ValueFrom.ConfigMapKeyRef.Name = "other"
		}, want: []string{}},
		"nobody who reads nothing": {edit: func(*corev1.PodTemplateSpec) {}, want: []string{}},
		"nobody without the labels": {edit: func(t *corev1.PodTemplateSpec) {
			byVariable(t)
			delete(t.Labels, "intent")
		}, want: []string{}},
		"nobody who opts out": {
			edit: byVariable, annotations: map[string]string{scope.AnnotationRestart: scope.RestartDisabled}, want: []string{},
		},
		"a bare pod is evicted":         {edit: byVariable, bare: true, want: []string{"create pods ops/bare/eviction"}},
		"a bare pod that reads nothing": {edit: func(*corev1.PodTemplateSpec) {}, bare: true, want: []string{}},
		"a pod of OLM's group is evicted": {edit: func(t *corev1.PodTemplateSpec) {
			byVariable(t)
			t.Annotations = map[string]string{"olm.operatorGroup": "g"}
			// The time of the restart is noted on the Deployment; its template stays.
		}, want: []string{"patch deployments ops/reader", "create pods ops/reader-1-x/eviction"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.common()

			if tc.bare {
				pod := edited("op", []func(*corev1.PodTemplateSpec){tc.edit})
				w.pod("bare", &pod, false)
			} else {
				w.reads(tc.annotations, tc.edit)
			}

			w.scope(`{"namespaceMembers":["a>"]}`)

			_, wrote := w.settle()
			is(w, "restarts", restarts(wrote), tc.want)

			if !tc.bare {
				is(w, "the template is changed", w.restarted() != "", slices.Equal(tc.want, patched))
			}
		})
	}
}

// TestRestartOfReplicaSet: a change of its template would replace no pod, so those that read the list are evicted, and nothing is
// written on it.
func TestRestartOfReplicaSet(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.common()
	w.Make(w.account("reader"))

	template := edited("reader", []func(*corev1.PodTemplateSpec){byVariable})
	w.Make(&appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "reader-1"},
		Spec:       appsv1.ReplicaSetSpec{Selector: selectorOf(&template), Template: template},
	})

	pod := w.pending("reader-1-x", &template, true)
	w.Change(pod, func() { delete(pod.Labels, appsv1.DefaultDeploymentUniqueLabelKey) })
	w.begun(pod)
	w.scope(`{"namespaceMembers":["a>"]}`)

	_, wrote := w.settle()
	is(w, "evictions", restarts(wrote), []string{"create pods ops/reader-1-x/eviction"})

	for _, what := range wrote {
		if strings.Contains(what, "replicasets") {
			t.Errorf("it is written on: %s", what)
		}
	}
}

// TestRestartsCoalesce: one restart for one change, none without one, and the next one waits for the interval.
func TestRestartsCoalesce(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.common()
	w.reads(nil, byVariable)
	w.scope(`{"namespaceMembers":["a>"]}`)

	last, wrote := w.settle()
	is(w, "restarts for the first list", restarts(wrote), []string{"patch deployments ops/reader"})
	is(w, "what is due after it", last.again, time.Duration(0))

	first := w.restarted()
	if first == "" {
		t.Fatal("the template does not say for which list it was restarted")
	}

	// The list comes after nothing, and the restart after the list.
	if list, restart := w.at(wrote, "patch configmaps"), w.at(wrote, "patch deployments"); restart < list {
		t.Errorf("the restart comes before the list: %q", wrote)
	}

	own := w.object("a")
	w.Change(own, func() { own.Labels["nothing"] = "changes" })

	_, wrote = w.settle()
	is(w, "writes while the list stays", wrote, []string(nil))

	for i, members := range []string{`["a>","b>"]`, `["a>","b>","c>"]`} {
		w.respec(`{"namespaceMembers":` + members + `}`)

		last, wrote = w.settle()
		is(w, "restarts within the interval", restarts(wrote), []string{})

		if last.again < restartInterval/2 || last.again > restartInterval {
			t.Errorf("change %d: the restart is due in %s, and not within the interval of %s", i, last.again, restartInterval)
		}
	}

	is(w, "watch list", w.list(), "a,b,c,ops")
	is(w, "the list that was restarted for", w.restarted(), first)
}
