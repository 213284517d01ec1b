package injection_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/injection"
)

// TestPutAndTakeBack holds that whatever a template says, it says so again after an injection.
func TestPutAndTakeBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, before := someWant(t), someTemplate(t)
		if isLeftAlone(w, before) {
			t.Skip("nothing is put in")
		}

		after, memory := put(t, w, before, injection.Memory{})
		if !has(w, after) {
			t.Fatalf("%+v is not in\n%s", w, show(after))
		}

		for k, v := range w.Labels {
			if after.Labels[k] != v {
				t.Fatalf("label %s is %q", k, after.Labels[k])
			}
		}

		same(t, "nothing else changes", rest(w, after), rest(w, before))

		for i, c := range containers(after) {
			if was := containers(before)[i].Args; !slices.Equal(c.Args[:len(was)], was) {
				t.Fatalf("the arguments %q became %q", was, c.Args)
			}
		}

		again, still := put(t, w, after, memory)
		same(t, "twice is once", again, after)

		if injection.Remember(map[string]injection.Memory{"t": still}) != injection.Remember(map[string]injection.Memory{"t": memory}) {
			t.Fatalf("the memory became\n%s\nand was\n%s", show(still), show(memory))
		}

		same(t, "it is taken back", takenBack(t, after, memory), before)
		same(t, "it is taken back once", takenBack(t, before, memory), before)
	})
}

// TestEveryListIsTakenBack lets a scope change its list and its labels any number of times before it ends.
func TestEveryListIsTakenBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before := someTemplate(t)
		now, memory := before, injection.Memory{}

		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			w := csvWant(t)
			if now, memory = put(t, w, now, memory); !has(w, now) {
				t.Fatalf("%+v is not in\n%s", w, show(now))
			}
		}

		same(t, "it is taken back", takenBack(t, now, memory), before)
	})
}

// TestNothingToRemember holds that a template which has everything already is not written to.
func TestNothingToRemember(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, before := someWant(t), someTemplate(t)
		if isLeftAlone(w, before) {
			t.Skip("nothing is put in")
		}

		after, memory := put(t, w, before, injection.Memory{})
		spec := factsOf(after)

		if len(conflicts(w, after)) > 0 {
			t.Fatalf("what was put in is in the way: %v", conflicts(w, after))
		}

		if ops, none := w.Put(where, after.Labels, spec, injection.Memory{}); len(ops) > 0 || !none.IsEmpty() {
			t.Fatalf("it would write %v, and remember %+v, after %+v", ops, none, memory)
		}
	})
}

// TestWhatSomebodyChangedIsTheirs holds that what was set to something else since it was put in is not put back.
func TestWhatSomebodyChangedIsTheirs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := csvWant(t)
		after, memory := put(t, w, someTemplate(t), injection.Memory{})

		for k := range w.Labels {
			after.Labels[k] = "theirs"
		}

		for _, c := range containers(after) {
			for i := range c.Env {
				c.Env[i].Value, c.Env[i].ValueFrom = "theirs", nil
			}
		}

		same(t, "it stays", takenBack(t, after, memory), after)
	})
}

// TestApplyIsEnough holds that where nothing is in the way, what is applied is all that is wanted and nothing else, and the same
// after it was applied: a field that a later apply left out would be taken back by the API server.
func TestApplyIsEnough(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, before := someWant(t), someTemplate(t)
		for _, c := range containers(before) {
			if twice(c.Env) {
				t.Skip("server-side apply does not take a name twice")
			}
		}

		if len(conflicts(w, before)) > 0 {
			t.Skip("it is replaced, not applied")
		}

		spec := specOf(w, before)
		after := applied(t, before, spec)

		if !has(w, after) || len(conflicts(w, after)) > 0 {
			t.Fatalf("%+v is not in\n%s\nafter applying\n%s", w, show(after), show(spec))
		}

		same(t, "nothing else changes", sorted(rest(w, after)), sorted(rest(w, before)))

		if again := specOf(w, after); show(again) != show(spec) {
			t.Fatalf("it applies\n%s\nand then\n%s", show(spec), show(again))
		}
	})
}

// TestBadInput holds that nothing panics, whatever a template and an annotation say.
func TestBadInput(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w, in := someWant(t), someFacts(t)
		memory := injection.Recall(rapid.SampledFrom([]string{
			"", "{", "null", "[]", `{"t":null}`, `{"t":{}}`, `{"t":{"volume":true}}`, `{"t":{"labels":{"a":null,"":{"is":"b"}}}}`,
			`{"t":{"containers":{"":{"variable":"LIST","configMap":"namespace-scope","arguments":["",""]},"a":{"was":{}}}}}`,
			`{"t":{"containers":{"a":{"variable":"LIST","configMap":"other","mountPath":"/etc/ambit","arguments":["-v"]}}}}`,
		}).Draw(t, "annotation"))["t"]

		ops, after := w.Put(where, nil, in, memory)
		back := injection.TakeBack(where, map[string]string{"": "b"}, in, memory)

		for _, op := range slices.Concat(ops, back) {
			if op.Path == "" || op.Op == "" {
				t.Fatalf("an operation on everything: %+v", op)
			}
		}

		injection.Remember(map[string]injection.Memory{"t": after})
		w.Spec(in)
		w.Conflicts(in)
		w.Has(in)
		w.Touches(in)
		w.Touches(&facts.PodSpec{})
	})
}

// containers are the init containers and the others.
func containers(in *template) []corev1.Container {
	return slices.Concat(in.Spec.InitContainers, in.Spec.Containers)
}

func twice(env []corev1.EnvVar) bool {
	seen := map[string]bool{}

	for _, v := range env {
		if seen[v.Name] {
			return true
		}

		seen[v.Name] = true
	}

	return false
}

// sorted puts the lists whose order means nothing to an injection into one order: the merge that stands in for the API server
// puts what is new first.
func sorted(in *template) *template {
	for _, c := range containers(in) {
		slices.SortFunc(c.Env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
		slices.SortFunc(c.VolumeMounts, func(a, b corev1.VolumeMount) int { return strings.Compare(a.MountPath, b.MountPath) })
	}

	slices.SortFunc(in.Spec.Volumes, func(a, b corev1.Volume) int { return strings.Compare(a.Name, b.Name) })

	return in
}
