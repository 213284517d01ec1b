package reconcile_test

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// variable shows where the operator's container has WATCH_NAMESPACE from: a ConfigMap, or a value; "-" when it has none.
func (w *world) variable() string {
	w.Helper()

	d := &appsv1.Deployment{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "op"}, d); err != nil {
		w.Fatal(err)
	}

	for _, e := range d.Spec.Template.Spec.Containers[0].Env {
		switch {
		case e.Name != "WATCH_NAMESPACE":
		case e.ValueFrom != nil && e.ValueFrom.ConfigMapKeyRef != nil:
			return "from " + e.ValueFrom.ConfigMapKeyRef.Name
		default:
			return e.Value
		}
	}

	return "-"
}

// TestWorkloadInjection: how the list gets into an operator that reads none, and out of it again.
func TestWorkloadInjection(t *testing.T) {
	t.Parallel()

	const on, off = `{"namespaceMembers":["a>"],"workloadInjector":{}}`, `{"namespaceMembers":["a>"]}`

	for name, tc := range map[string]struct {
		// value is what the container has before, spec what is asked for, and then what is asked for after that.
		value, spec, then string
		variable, says    string
	}{
		"without it nothing is injected":          {spec: off, variable: "-", says: "-"},
		"the variable comes from the ConfigMap":   {spec: on, variable: "from namespace-scope", says: "True Injected"},
		"one that is turned off injects nothing":  {spec: `{"workloadInjector":{"enable":false}}`, variable: "-", says: "-"},
		"what was injected is taken back":         {spec: on, then: off, variable: "-", says: "-"},
		"what somebody set is left and reported":  {value: "mine", spec: on, variable: "mine", says: "False InjectionConflict"},
		"another name of the ConfigMap is read":   {spec: renamed, variable: "from x", says: injected},
		"what somebody set may be replaced":       {value: "mine", spec: replacing, variable: "from namespace-scope", says: injected},
		"and what was replaced is put back again": {value: "mine", spec: replacing, then: off, variable: "mine", says: "-"},
		"what is replaced follows its ConfigMap":  {value: "mine", spec: mountedX, then: mountedY, variable: "from y", says: injected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.namespaces("ops", "a")
			w.watch(w.ns(ops))
			w.Make(testbed.Account(w.ns(ops), "op"))
			w.deployment("op", func(p *corev1.PodTemplateSpec) {
				if tc.value != "" {
					p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "WATCH_NAMESPACE", Value: tc.value}}
				}
			})

			w.scopeThen(tc.spec, tc.then, func() { w.settle() })

			is(w, "WATCH_NAMESPACE", w.variable(), tc.variable)
			is(w, "WorkloadsInjected", w.condition("scope", "WorkloadsInjected"), tc.says)
		})
	}
}

const (
	injected  = "True Injected"
	renamed   = `{"configmapName":"x","workloadInjector":{}}`
	mountedX  = `{"configmapName":"x","workloadInjector":{"conflicts":"Replace","mountPath":"/etc/ambit"}}`
	mountedY  = `{"configmapName":"y","workloadInjector":{"conflicts":"Replace","mountPath":"/etc/ambit"}}`
	replacing = `{"namespaceMembers":["a>"],"workloadInjector":{"conflicts":"Replace"}}`
)

// TestInjectionRestartsItself: whatever begins again because of what is injected into it begins with the list of the same plan,
// so nothing restarts it a second time for that list. Its old pods are still there when Ambit looks again.
func TestInjectionRestartsItself(t *testing.T) {
	t.Parallel()

	const (
		mounted = `{"namespaceMembers":["a>"],"workloadInjector":{"mountPath":"/etc/ambit"}}`
		further = `{"namespaceMembers":["a>","b>"],"workloadInjector":{"mountPath":"/etc/other"}}`
		writes  = `"workloadInjector":{"conflicts":"Replace","containers":["operator"],"arguments":["-x"]`
		over    = `{"namespaceMembers":["a>"],` + writes + `}}`
		another = `{"namespaceMembers":["a>","b>"],` + writes + `,"mountPath":"/etc/ambit"}}`
	)

	injects := []string{"patch deployments ops/reader"}
	args := func(t *corev1.PodTemplateSpec) {
		byVariable(t)
		t.Spec.Containers[0].Args = []string{"--quiet"}
	}
	annotated := func(t *corev1.PodTemplateSpec) { args(t); t.Annotations = map[string]string{"some": "thing"} }

	for name, tc := range map[string]struct {
		edit       func(*corev1.PodTemplateSpec)
		spec, then string
		// first and second are what is written for each of the specs.
		first, second []string
	}{
		"applied, with a new list":              {edit: byVariable, spec: mounted, first: injects},
		"applied again, with a list that grows": {edit: byVariable, spec: mounted, then: further, first: injects, second: injects},
		"written over, with a new list":         {edit: args, spec: over, first: injects},
		"written over beside annotations":       {edit: annotated, spec: over, first: injects},
		"written over twice": {
			// What was written over is put back, and then the record that Ambit wrote it.
			edit: args, spec: over, then: another, first: injects, second: slices.Repeat(injects, 3),
		},
		"into what was restarted before": {
			edit: byVariable, spec: `{"namespaceMembers":["a>"]}`, then: further, first: injects, second: injects,
		},
		"a list that grows afterwards": {
			edit: byVariable, spec: mounted, then: `{"namespaceMembers":["a>","b>"],"workloadInjector":{"mountPath":"/etc/ambit"}}`,
			first: injects, second: injects,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.namespaces("ops", "a", "b")
			w.watch(w.ns(ops))
			w.reads(nil, tc.edit)

			wants := [][]string{tc.first, tc.second}

			w.scopeThen(tc.spec, tc.then, func() {
				last, wrote := w.settle()
				is(w, "written", restarts(wrote), wants[0])
				is(w, "a restart that waits", last.again, 0)

				wants = wants[1:]
			})
		})
	}
}
