package reconcile_test

import (
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
	"github.com/ambit-k8s/ambit/test/younger"
)

// applied makes the operator's Deployment by a server-side apply of somebody else's, with its container's fields as YAML. A field
// without a value belongs to whoever applied it: charts have many of those.
func (w *world) applied(fields string) {
	w.Helper()

	body := strings.ReplaceAll(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: op, namespace: NS}, spec: {
		selector: {matchLabels: {app: op}}, template: {metadata: {labels: {app: op, intent: projected}}, spec: {
		serviceAccountName: op, containers: [{name: op, image: op, FIELDS}]}}}}`, "NS", w.ns(ops))
	body = strings.ReplaceAll(strings.ReplaceAll(body, "FIELDS", fields), "\t", " ")

	d := &appsv1.Deployment{}
	d.Namespace, d.Name = w.ns(ops), "op"

	patch := client.RawPatch(types.ApplyPatchType, []byte(body))
	if err := w.client.Patch(w.Context(), d, patch, client.FieldOwner("helm")); err != nil {
		w.Fatal(err)
	}

	w.touch(d)
}

// TestFieldsThatSomebodyElseOwns: a field may be somebody else's although nothing can be seen in it. It is a conflict like any
// other.
func TestFieldsThatSomebodyElseOwns(t *testing.T) {
	t.Parallel()

	const left = "False InjectionConflict"

	for name, tc := range map[string]struct {
		fields, spec, then string
		variable, says     string
	}{
		"no value is left":             {"env: null", `{"workloadInjector":{}}`, "", "-", left},
		"no value is replaced":         {"env: null", replacing, "", "from namespace-scope", injected},
		"and taken back":               {"env: null", replacing, inert, "-", "-"},
		"no mounts are left":           {"volumeMounts: null", `{"workloadInjector":{"mountPath":"/etc/ambit"}}`, "", "-", left},
		"Replace may come afterwards":  {"env: null", `{"workloadInjector":{}}`, replacing, "from namespace-scope", injected},
		"what is empty is free for it": {"env: []", `{"workloadInjector":{}}`, "", "from namespace-scope", injected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.namespaces("ops", "a")
			w.watch(w.ns(ops))
			w.Make(testbed.Account(w.ns(ops), "op"))
			w.applied(tc.fields)

			w.scopeThen(tc.spec, tc.then, func() { w.settle() })

			is(w, "WATCH_NAMESPACE", w.variable(), tc.variable)
			is(w, "WorkloadsInjected", w.condition("scope", "WorkloadsInjected"), tc.says)

			if tc.says == left && !strings.Contains(w.messageOn("scope", "WorkloadsInjected"), "conflicts to Replace") {
				t.Errorf("nothing says what to do: %s", w.messageOn("scope", "WorkloadsInjected"))
			}
		})
	}
}

// TestOlderScopeThatInjectsElsewhere: a scope that came first takes no workload from another one into which it injects nothing.
func TestOlderScopeThatInjectsElsewhere(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.namespaces("ops", "a")
	w.watch(w.ns(ops))
	w.Make(testbed.Account(w.ns(ops), "op"))
	w.deployment("op", func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Name = "manager" })

	first := w.scopeCalled("older", `{"configmapName":"x","workloadInjector":{"containers":["other"]}}`)
	w.settle()
	is(w, "of the older one", w.condition("older", "WorkloadsInjected"), nothing)

	if message := w.messageOn("older", "WorkloadsInjected"); !strings.Contains(message, "spec.workloadInjector.containers") {
		t.Errorf("it has the labels, so that is not why: %s", message)
	}

	younger.Than(&w.World, first)
	w.scope(`{"workloadInjector":{}}`)
	w.settle()
	is(w, "WATCH_NAMESPACE", w.variable(), "from namespace-scope")
	is(w, "of the younger one", w.condition("scope", "WorkloadsInjected"), injected)
	is(w, "of the older one", w.condition("older", "WorkloadsInjected"), nothing)
}

// TestScopesThatInjectDifferently: the younger one says what helps, which is not what helps against somebody else's value.
func TestScopesThatInjectDifferently(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.namespaces("ops", "a")
	w.watch(w.ns(ops))
	w.Make(testbed.Account(w.ns(ops), "op"))
	w.deployment("op")

	first := w.scopeCalled("older", `{"configmapName":"x","workloadInjector":{}}`)
	w.settle()

	younger.Than(&w.World, first)
	w.scope(`{"workloadInjector":{}}`)
	w.settle()
	is(w, "WATCH_NAMESPACE", w.variable(), "from x")
	is(w, "of the younger one", w.condition("scope", "WorkloadsInjected"), "False InjectionConflict")

	message := w.messageOn("scope", "WorkloadsInjected")
	if !strings.Contains(message, "for the older scope older") || strings.Contains(message, "Replace") {
		t.Errorf("this does not help: %s", message)
	}
}

// TestVariableThatIsThereTwice: the API server lets a variable be there several times, and the last one counts. None of them is
// lost, although a server-side apply takes the place of them all.
func TestVariableThatIsThereTwice(t *testing.T) {
	t.Parallel()

	twice := []corev1.EnvVar{{Name: "WATCH_NAMESPACE", Value: "mine"}, {Name: "WATCH_NAMESPACE"}}

	w := begin(t)
	w.namespaces("ops", "a")
	w.watch(w.ns(ops))
	w.Make(testbed.Account(w.ns(ops), "op"))
	d := w.deployment("op", func(p *corev1.PodTemplateSpec) { p.Spec.Containers[0].Env = twice })

	w.scopeThen(replacing, `{"workloadInjector":{}}`, func() { w.settle() })
	is(w, "WorkloadsInjected", w.condition("scope", "WorkloadsInjected"), "False InjectionConflict")

	if message := w.messageOn("scope", "WorkloadsInjected"); !strings.Contains(message, "is there more than once") {
		t.Errorf("it does not say why: %s", message)
	}

	w.respec(inert)
	w.settle()

	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
		t.Fatal(err)
	}

	if got := d.Spec.Template.Spec.Containers[0].Env; !reflect.DeepEqual(got, twice) {
		t.Errorf("afterwards it has %v", got)
	}
}

// besides adds a container that mounts the volume by which Ambit mounts the list, as somebody may.
func (w *world) besides() {
	w.Helper()

	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "op"}}
	w.Change(d, func() {
		spec := &d.Spec.Template.Spec
		spec.Containers = append(spec.Containers, corev1.Container{
			Name: "beside", Image: "beside", VolumeMounts: []corev1.VolumeMount{{Name: "ambit-watch-list", MountPath: "/list"}},
		})
	})
	w.touch(d)
}

// TestVolumeThatSomebodyElseMounts: what Ambit added it takes back, and with the volume what mounts that besides: no mount can be
// without its volume, and no pod without the ConfigMap of a scope that goes.
func TestVolumeThatSomebodyElseMounts(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct{ value, spec, after string }{
		"what was written over": {"mine", `{"workloadInjector":{"conflicts":"Replace","containers":["op"],"mountPath":"/etc/ambit"}}`,
			"mine"},
		"what was applied": {"", `{"workloadInjector":{"containers":["op"],"mountPath":"/etc/ambit"}}`, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.namespaces("ops", "a")
			w.watch(w.ns(ops))
			w.Make(testbed.Account(w.ns(ops), "op"))
			w.deployment("op", func(p *corev1.PodTemplateSpec) {
				p.Spec.Containers[0].Name = "op"
				if tc.value != "" {
					p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "WATCH_NAMESPACE", Value: tc.value}}
				}
			})

			w.scope(tc.spec)
			w.settle()
			is(w, "WATCH_NAMESPACE", w.variable(), "from namespace-scope")

			w.besides()
			w.respec(inert)
			w.settle()
			is(w, "WATCH_NAMESPACE afterwards", w.variable(), tc.after)
			is(w, "Ready", w.condition("scope", "Ready"), "True Reconciled")
		})
	}
}
