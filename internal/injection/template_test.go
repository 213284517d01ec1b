package injection_test

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/injection"
	"github.com/ambit-k8s/ambit/internal/read"
)

// where is the JSON pointer of the template in the object that patches are applied to.
const where = "/spec/template"

// the template of a workload, as the API server holds it.
type template = corev1.PodTemplateSpec

type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// patched applies a JSON Patch with the library by which the API server does.
func patched(t failer, in *template, ops []injection.Op) *template {
	t.Helper()

	before, err := json.Marshal(map[string]any{"spec": map[string]any{"template": in}})
	if err != nil {
		t.Fatalf("%v", err)
	}

	body, err := json.Marshal(ops)
	if err != nil {
		t.Fatalf("%v", err)
	}

	if len(ops) == 0 {
		body = []byte("[]")
	}

	patch, err := jsonpatch.DecodePatch(body)
	if err != nil {
		t.Fatalf("%s is no patch: %v", body, err)
	}

	after, err := patch.Apply(before)
	if err != nil {
		t.Fatalf("the API server refuses %s: %v", body, err)
	}

	var out struct{ Spec struct{ Template template } }
	if err := yaml.UnmarshalStrict(after, &out); err != nil {
		t.Fatalf("%s makes %s: %v", body, after, err)
	}

	return &out.Spec.Template
}

// applied merges an apply into a template by the keys of its lists, which is what server-side apply does where no field of
// somebody else's is in the way.
func applied(t failer, in *template, spec injection.Spec) *template {
	t.Helper()

	before, err := json.Marshal(in)
	if err != nil {
		t.Fatalf("%v", err)
	}

	body, err := json.Marshal(spec.Template)
	if err != nil {
		t.Fatalf("%v", err)
	}

	after, err := strategicpatch.StrategicMergePatch(before, body, template{})
	if err != nil {
		t.Fatalf("applying %s: %v", body, err)
	}

	out := &template{}
	if err := json.Unmarshal(after, out); err != nil {
		t.Fatalf("%v", err)
	}

	return out
}

func put(t failer, w *injection.Want, in *template, before injection.Memory) (*template, injection.Memory) {
	t.Helper()

	ops, memory := w.Put(where, in.Labels, factsOf(in), before)

	// What is remembered is written into an annotation.
	return patched(t, in, ops), injection.Recall(injection.Remember(map[string]injection.Memory{"t": memory}))["t"]
}

func takenBack(t failer, in *template, m injection.Memory) *template {
	t.Helper()

	return patched(t, in, injection.TakeBack(where, in.Labels, factsOf(in), m))
}

func has(w *injection.Want, in *template) bool { return w.Has(factsOf(in)) }

func conflicts(w *injection.Want, in *template) []injection.Conflict { return w.Conflicts(factsOf(in)) }

func specOf(w *injection.Want, in *template) injection.Spec { return w.Spec(factsOf(in)) }

// same fails where two templates differ, but for the difference between an empty list and none, which means nothing.
func same(t failer, what string, got, want *template) {
	t.Helper()

	if !equality.Semantic.DeepEqual(got, want) {
		t.Fatalf("%s:\ngot\n%s\nwant\n%s", what, show(got), show(want))
	}
}

func show(v any) string {
	text, err := yaml.Marshal(v)
	if err != nil {
		return err.Error()
	}

	return string(text)
}

// parse reads a template.
func parse(t *testing.T, text string) *template {
	t.Helper()

	out := &template{}
	if err := yaml.UnmarshalStrict([]byte(text), out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}

	return out
}

func factsOf(in *template) *facts.PodSpec {
	spec := read.PodSpec(&in.Spec)

	return &spec
}
