package injection_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambit-k8s/ambit/internal/injection"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// one is a template of one container, which says this besides its name.
func one(says string) string { return "spec: {containers: [{name: a" + says + "}]}" }

func variable(name string) scope.WorkloadInjection { return scope.WorkloadInjection{Variable: name} }

const (
	ours     = "valueFrom: {configMapKeyRef: {name: namespace-scope, key: namespaces}}"
	optional = `{"configMapKeyRef":{"name":"namespace-scope","key":"namespaces","optional":true}}`
	required = `{"configMapKeyRef":{"name":"namespace-scope","key":"namespaces"}}`
)

// TestPut has what is written, to the letter.
func TestPut(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		is     string
		want   injection.Want
		ops    string
	}{
		"no list": {
			"a list that is not there cannot be added to", one(""), injection.Want{WorkloadInjection: variable("X")},
			`add /spec/containers/0/env [{"name":"X","valueFrom":` + required + `}]`,
		},
		"optional": {
			"OLM's operators begin without a list", one(", env: [{name: O}]"),
			injection.Want{Optional: true, WorkloadInjection: variable("X")},
			`add /spec/containers/0/env/- {"name":"X","valueFrom":` + optional + `}`,
		},
		"literal": {
			"its place stays, because later variables may refer to it", one(", env: [{name: O}, {name: X, value: a}]"),
			injection.Want{WorkloadInjection: variable("X")},
			`replace /spec/containers/0/env/1 {"name":"X","valueFrom":` + required + `}`,
		},
		"another key": {
			"only one key of the ConfigMap is the list",
			one(", env: [{name: X, valueFrom: {configMapKeyRef: {name: namespace-scope, key: other}}}]"),
			injection.Want{WorkloadInjection: variable("X")},
			`replace /spec/containers/0/env/0 {"name":"X","valueFrom":` + required + `}`,
		},
		"another list": {
			"a list of that name elsewhere is another one",
			one(", env: [{name: X, valueFrom: {configMapKeyRef: {name: other, key: namespaces}}}]"),
			injection.Want{WorkloadInjection: variable("X")},
			`replace /spec/containers/0/env/0 {"name":"X","valueFrom":` + required + `}`,
		},
		"there": {"it is as wanted", one(", env: [{name: X, " + ours + "}]"), injection.Want{WorkloadInjection: variable("X")}, ""},
		"every container": {
			"without names it is all of them", "spec: {initContainers: [{name: i}], containers: [{name: a}, {name: b}]}",
			injection.Want{WorkloadInjection: scope.WorkloadInjection{MountPath: "/l"}},
			`add /spec/initContainers/0/volumeMounts [{"name":"ambit-watch-list","readOnly":true,"mountPath":"/l"}]
add /spec/containers/0/volumeMounts [{"name":"ambit-watch-list","readOnly":true,"mountPath":"/l"}]
add /spec/containers/1/volumeMounts [{"name":"ambit-watch-list","readOnly":true,"mountPath":"/l"}]
add /spec/volumes [{"name":"ambit-watch-list","configMap":{"name":"namespace-scope"}}]`,
		},
		"named containers": {
			"others are nobody's business", "spec: {containers: [{name: a}, {name: b, args: [x]}]}",
			injection.Want{WorkloadInjection: scope.WorkloadInjection{Arguments: []string{"y", "z"}, Containers: []string{"b"}}},
			"add /spec/containers/1/args/- \"y\"\nadd /spec/containers/1/args/- \"z\"",
		},
		"labels": {
			"a name may hold what a JSON pointer gives a meaning", "metadata: {labels: {a: b}}",
			injection.Want{Labels: map[string]string{"a": "b", "x/y": ""}},
			`add /metadata/labels/x~1y ""`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w, in := tc.want, parse(t, tc.is)
			w.ConfigMap = "namespace-scope"

			ops, _ := w.Put("", in.Labels, factsOf(in), injection.Memory{})
			if got := words(t, ops); got != tc.ops {
				t.Errorf("%s: got\n%s\nwant\n%s", tc.reason, got, tc.ops)
			}
		})
	}
}

func words(t *testing.T, ops []injection.Op) string {
	t.Helper()

	var lines []string

	for _, op := range ops {
		value, err := json.Marshal(op.Value)
		if err != nil {
			t.Fatal(err)
		}

		lines = append(lines, op.Op+" "+op.Path+" "+string(value))
	}

	return strings.Join(lines, "\n")
}

// TestConflicts has what is in the way, and what Ambit may do about it.
// TestNoEmptyListStays: what had no variables has no list of them afterwards, as tools that compare text would show.
func TestNoEmptyListStays(t *testing.T) {
	t.Parallel()

	w := &injection.Want{ConfigMap: "list", WorkloadInjection: scope.WorkloadInjection{Variable: "WATCH_NAMESPACE"}}

	for name, env := range map[string][]corev1.EnvVar{"none": nil, "another": {{Name: "A", Value: "b"}}} {
		before := &template{}
		before.Spec.Containers = []corev1.Container{{Name: "manager", Env: env}}

		after, memory := put(t, w, before, injection.Memory{})
		ops := injection.TakeBack(where, nil, factsOf(after), memory)

		want := where + "/spec/containers/0/env"
		if env != nil {
			want += "/1"
		}

		if len(ops) != 1 || ops[0].Op != "remove" || ops[0].Path != want {
			t.Errorf("%s: %+v", name, ops)
		}
	}
}

func TestConflicts(t *testing.T) {
	t.Parallel()

	args := scope.WorkloadInjection{Arguments: []string{"y"}, Containers: []string{"a"}}
	mount := scope.WorkloadInjection{MountPath: "/l"}
	volume := func(name, source string) string {
		return "spec: {volumes: [{name: " + name + ", " + source + "}], containers: [{name: a, volumeMounts: [{name: " + name +
			", mountPath: /l/}]}]}"
	}
	from := func(source string) string { return one(", env: [{name: X, valueFrom: {" + source + "}}]") }

	for is, tc := range map[string]struct {
		want scope.WorkloadInjection
		says string
	}{
		one(""):                              {variable("X"), ""},
		one(", env: [{name: X}]"):            {variable("X"), ""},
		one(`, env: [{name: X, value: ""}]`): {variable("X"), ""},
		one(", env: [{name: X, value: secret}]"): {
			variable("X"), "container a: X is set already, to a literal value, replaceable",
		},
		one(", env: [{name: X, value: a}, {name: X}]"): {
			variable("X"), "container a: X is there more than once, replaceable",
		},
		one(", env: [{name: X, " + ours + "}]"): {variable("X"), ""},
		one(", env: [{name: Y, value: a}]"):     {variable("X"), ""},
		one(", env: [{name: '', value: a}]"):    {variable(""), ""},
		from("configMapKeyRef: {name: other, key: namespaces}"): {
			variable("X"), "container a: X is set already, to key namespaces of ConfigMap other, replaceable, ours",
		},
		from("configMapKeyRef: {name: namespace-scope, key: k}"): {
			variable("X"), "container a: X is set already, to key k of ConfigMap namespace-scope, replaceable",
		},
		from("secretKeyRef: {name: s, key: k}"): {variable("X"), "container a: X is set already, to key k of Secret s, replaceable"},
		from("fieldRef: {fieldPath: p}"):        {variable("X"), "container a: X is set already, to field p, replaceable"},
		from("resourceFieldRef: {resource: r}"): {variable("X"), "container a: X is set already, to resource r, replaceable"},
		from("fileKeyRef: {volumeName: v, path: p, key: k}"): {
			variable("X"), "container a: X is set already, to another source, replaceable",
		},

		one(", args: []"):       {args, ""},
		one(", args: [x, 'y']"): {args, ""},
		one(", args: [x]"):      {args, "container a: it has arguments of its own, without y, replaceable"},

		volume("v", "emptyDir: {}"):                       {mount, "container a: volume v is mounted at /l"},
		volume("v", "configMap: {name: other}"):           {mount, "container a: volume v is mounted at /l"},
		volume("v", "configMap: {name: namespace-scope}"): {mount, ""},
		volume("ambit-watch-list", "configMap: {name: other}"): {
			mount, "container a: volume ambit-watch-list is mounted at /l, ours",
		},
	} {
		w := &injection.Want{ConfigMap: "namespace-scope", WorkloadInjection: tc.want}

		var says []string

		for _, c := range conflicts(w, parse(t, is)) {
			text := c.String()
			if c.Replaceable {
				text += ", replaceable"
			}

			if c.MayBeOurs {
				text += ", ours"
			}

			says = append(says, text)
		}

		if got := strings.Join(says, "\n"); got != tc.says {
			t.Errorf("%s: got %q, want %q", is, got, tc.says)
		}
	}
}

// TestSpec has what is applied: nothing but names and what is wanted, because whoever applies a field owns it.
func TestSpec(t *testing.T) {
	t.Parallel()

	all := scope.WorkloadInjection{Variable: "X", Arguments: []string{"y"}, MountPath: "/l", Containers: []string{"a", "i"}}
	full := `{"name":"a","env":[{"name":"X","valueFrom":` + required + `}],"args":["y"],` +
		`"volumeMounts":[{"name":"ambit-watch-list","readOnly":true,"mountPath":"/l"}]}`
	volumes := `,"volumes":[{"name":"ambit-watch-list","configMap":{"name":"namespace-scope"}}]`

	for is, tc := range map[string]struct {
		want scope.WorkloadInjection
		spec string
	}{
		one(", image: x"):    {all, `{"containers":[` + full + `]` + volumes + `}`},
		one(", args: ['y']"): {all, `{"containers":[` + full + `]` + volumes + `}`},
		one(", args: [x, 'y']"): {
			scope.WorkloadInjection{Arguments: []string{"y"}, Containers: []string{"a"}}, `{"containers":[{"name":"a"}]}`,
		},
		one(", volumeMounts: [{name: v, mountPath: /l}]"): {
			scope.WorkloadInjection{MountPath: "/l"}, `{"containers":[{"name":"a"}]}`,
		},
		"spec: {initContainers: [{name: i}, {name: j}], containers: [{name: b}]}": {
			all, `{"initContainers":[` + strings.Replace(full, `"a"`, `"i"`, 1) + `]` + volumes + `}`,
		},
		one(", ports: [{containerPort: 1}]"): {scope.WorkloadInjection{}, `{"containers":[{"name":"a"}]}`},
	} {
		w := &injection.Want{ConfigMap: "namespace-scope", WorkloadInjection: tc.want}

		got, err := json.Marshal(specOf(w, parse(t, is)))
		if want := `{"template":{"spec":` + tc.spec + `}}`; err != nil || string(got) != want {
			t.Errorf("%s: got\n%s\nwant\n%s (%v)", is, got, want, err)
		}
	}
}

// TestHash holds that everything by which a template differs counts.
func TestHash(t *testing.T) {
	t.Parallel()

	wants := []injection.Want{
		{}, {ConfigMap: "a"}, {Labels: map[string]string{"a": "b"}}, {Labels: map[string]string{"a": "c"}}, {Optional: true},
		{WorkloadInjection: variable("a")}, {WorkloadInjection: scope.WorkloadInjection{Arguments: []string{"a"}}},
		{WorkloadInjection: scope.WorkloadInjection{Arguments: []string{"a", "b"}}},
		{WorkloadInjection: scope.WorkloadInjection{Arguments: []string{"a b"}}},
		{WorkloadInjection: scope.WorkloadInjection{MountPath: "a"}},
		{WorkloadInjection: scope.WorkloadInjection{Containers: []string{"a"}}},
		{WorkloadInjection: scope.WorkloadInjection{Replace: true}},
	}

	var hashes []string
	for i := range wants {
		hashes = append(hashes, wants[i].Hash())
	}

	slices.Sort(hashes)

	if distinct := slices.Compact(hashes); len(distinct) != len(wants) {
		t.Errorf("%d things that differ have %d hashes", len(wants), len(distinct))
	}
}

// TestAnnotate has annotations that are there, are not, and are the first.
func TestAnnotate(t *testing.T) {
	t.Parallel()

	for _, tc := range []struct {
		reason string
		has    map[string]string
		some   bool
		set    map[string]string
		ops    string
	}{
		{"as it is", map[string]string{"a": "b"}, true, map[string]string{"a": "b", "c": ""}, ""},
		{"the first make the map", nil, false, map[string]string{"a/b": "c", "d": "e"}, `add /metadata/annotations {"a/b":"c"}
add /metadata/annotations/d "e"`},
		{"others stay", map[string]string{"a": "b"}, true, map[string]string{"a": "c"}, `add /metadata/annotations/a "c"`},
		{"empty is none", map[string]string{"a~b": "c"}, true, map[string]string{"a~b": ""}, `remove /metadata/annotations/a~0b null`},
	} {
		if got := words(t, injection.Annotate("", tc.has, tc.some, tc.set)); got != tc.ops {
			t.Errorf("%s: got\n%s\nwant\n%s", tc.reason, got, tc.ops)
		}
	}
}
