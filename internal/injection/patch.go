package injection

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Op is one operation of a JSON Patch (RFC 6902). It names a place, so it leaves everything else as it is.
type Op struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Memory is what was in a template before Ambit wrote over it.
type Memory struct {
	Labels     map[string]LabelMemory     `json:"labels,omitempty"`
	Containers map[string]ContainerMemory `json:"containers,omitempty"`
	// Volume says that Ambit added its volume.
	Volume bool `json:"volume,omitempty"`
}

// LabelMemory is a label: what Ambit made it, and what it was; nil when it was not there.
type LabelMemory struct {
	Is  string  `json:"is"`
	Was *string `json:"was,omitempty"`
}

// ContainerMemory is a container: what Ambit put in, and the variable as it was; nil when it was not there.
type ContainerMemory struct {
	Variable  string         `json:"variable,omitempty"`
	ConfigMap string         `json:"configMap,omitempty"`
	Was       *corev1.EnvVar `json:"was,omitempty"`
	Arguments []string       `json:"arguments,omitempty"`
	MountPath string         `json:"mountPath,omitempty"`
}

// IsEmpty says whether there is nothing to restore.
func (m *Memory) IsEmpty() bool { return len(m.Labels) == 0 && len(m.Containers) == 0 && !m.Volume }

// editor collects the operations for one template.
type editor struct {
	at   string // the JSON pointer of the template
	t    *facts.PodSpec
	have map[string]string
	// volumeGoes says that Ambit's volume is removed, and with it whatever mounts it: a mount without its volume is refused.
	volumeGoes bool
	ops        []Op
}

func (e *editor) do(op, path string, value any) {
	e.ops = append(e.ops, Op{Op: op, Path: e.at + path, Value: value})
}

// Put returns the operations that bring what is wanted into the template at a JSON pointer, and what to remember. What memory
// holds and is not wanted any more is restored.
func (w *Want) Put(at string, labels map[string]string, t *facts.PodSpec, before Memory) ([]Op, Memory) {
	e := &editor{at: at, t: t, have: labels}
	m := Memory{Labels: map[string]LabelMemory{}, Containers: map[string]ContainerMemory{}, Volume: before.Volume}
	e.labels(w.Labels, before.Labels, m.Labels)

	wanted := map[string]struct{}{}

	for _, c := range w.in(t) {
		key := keyOf(c)
		wanted[key] = struct{}{}

		if after := e.container(w, c, before.Containers[key]); !isNothing(&after) {
			m.Containers[key] = after
		}
	}

	for i := range t.Containers {
		c := &t.Containers[i]
		if _, stays := wanted[keyOf(c)]; !stays {
			e.restore(c, before.Containers[keyOf(c)])
		}
	}

	if w.MountPath != "" && !slices.Contains(t.Volumes, facts.Volume{Name: Volume, ConfigMap: w.ConfigMap}) &&
		slices.ContainsFunc(w.in(t), func(c *facts.Container) bool { return !w.mountsList(c, t) }) {
		e.addTo("/spec/volumes", len(t.Volumes) == 0, w.volume())

		m.Volume = true
	}

	return e.ops, m
}

// keyOf names a container in the memory. Kubernetes lets no two containers of a pod share a name, of whichever sort.
func keyOf(c *facts.Container) string { return c.Name }

func isNothing(m *ContainerMemory) bool {
	return m.Variable == "" && len(m.Arguments) == 0 && m.MountPath == ""
}

func (e *editor) labels(want map[string]string, before, after map[string]LabelMemory) {
	first := len(e.have) == 0

	for _, k := range slices.Sorted(maps.Keys(want)) {
		was, known := before[k]

		is, there := e.have[k]
		if there && is == want[k] {
			if known {
				after[k] = was
			}

			continue
		}

		after[k] = remembered(was, known, is, there, want[k])

		if first {
			e.do("add", "/metadata/labels", map[string]string{})
			first = false
		}

		e.do("add", "/metadata/labels/"+escape(k), want[k])
	}

	for _, k := range slices.Sorted(maps.Keys(before)) {
		if _, wanted := want[k]; !wanted {
			e.restoreLabel(k, before[k])
		}
	}
}

// remembered keeps the memory of a label while it is what Ambit made it, and makes a new one when somebody else changed the
// label.
func remembered(was LabelMemory, known bool, is string, there bool, want string) LabelMemory {
	switch {
	case known && there && is == was.Is:
		return LabelMemory{Is: want, Was: was.Was}
	case there:
		return LabelMemory{Is: want, Was: &is}
	default:
		return LabelMemory{Is: want}
	}
}

func (e *editor) restoreLabel(k string, m LabelMemory) {
	switch is, there := e.have[k]; {
	case !there || is != m.Is: // Somebody else's by now.
	case m.Was == nil:
		e.do("remove", "/metadata/labels/"+escape(k), nil)
	default:
		e.do("replace", "/metadata/labels/"+escape(k), *m.Was)
	}
}

func (e *editor) container(w *Want, c *facts.Container, before ContainerMemory) ContainerMemory {
	after := before
	at := pointer(c)

	if v, i := find(c, w.Variable); w.Variable != "" && !readsList(v, w.ConfigMap) {
		if !readsList(v, before.ConfigMap) || before.Variable != w.Variable {
			after.Was = v
		}

		after.Variable, after.ConfigMap = w.Variable, w.ConfigMap

		if v == nil {
			e.addTo(at+"/env", len(c.Env) == 0, w.variable())
		} else {
			e.do("replace", fmt.Sprintf("%s/env/%d", at, i), w.variable())
		}
	}

	for i, a := range w.lacking(c) {
		e.addTo(at+"/args", len(c.Args) == 0 && i == 0, a)

		if !slices.Contains(after.Arguments, a) {
			after.Arguments = append(slices.Clone(after.Arguments), a)
		}
	}

	if w.MountPath != "" && w.mountedAt(c) == "" {
		e.addTo(at+"/volumeMounts", len(c.Mounts) == 0, w.mount())

		after.MountPath = w.MountPath
	}

	return after
}

func (w *Want) mount() corev1.VolumeMount {
	return corev1.VolumeMount{Name: Volume, MountPath: w.MountPath, ReadOnly: true}
}

func (w *Want) volume() corev1.Volume {
	source := &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: w.ConfigMap}}
	if w.Optional {
		source.Optional = new(true)
	}

	if w.Confined { // Whoever may not write workloads may perhaps write a ConfigMap, and so files of any name.
		source.Items = []corev1.KeyToPath{{Key: scope.ListKey, Path: scope.ListKey}}
	}

	return corev1.Volume{Name: Volume, VolumeSource: corev1.VolumeSource{ConfigMap: source}}
}

// addTo adds a value to the end of a list, which may not be there yet.
func (e *editor) addTo(list string, isEmpty bool, value any) {
	if isEmpty {
		e.do("add", list, []any{value})
	} else {
		e.do("add", list+"/-", value)
	}
}

// TakeBack returns the operations that restore what was in the template at a JSON pointer. What somebody else changed since is
// theirs, and stays.
func TakeBack(at string, labels map[string]string, t *facts.PodSpec, m Memory) []Op {
	e := &editor{at: at, t: t, have: labels, volumeGoes: m.Volume}

	for _, k := range slices.Sorted(maps.Keys(m.Labels)) {
		e.restoreLabel(k, m.Labels[k])
	}

	for i := range t.Containers {
		e.restore(&t.Containers[i], m.Containers[keyOf(&t.Containers[i])])
	}

	for i := len(t.Volumes) - 1; i >= 0 && m.Volume; i-- {
		if t.Volumes[i].Name == Volume {
			e.do("remove", fmt.Sprintf("/spec/volumes/%d", i), nil)
		}
	}

	return e.ops
}

func (e *editor) restore(c *facts.Container, m ContainerMemory) {
	at := pointer(c)

	if v, i := find(c, m.Variable); m.Variable != "" && readsList(v, m.ConfigMap) {
		switch {
		case m.Was != nil:
			e.do("replace", fmt.Sprintf("%s/env/%d", at, i), *m.Was)
		case len(c.Env) == 1: // An empty list means the same as none, but tools that compare the text show it as a difference.
			e.do("remove", at+"/env", nil)
		default:
			e.do("remove", fmt.Sprintf("%s/env/%d", at, i), nil)
		}
	}

	for i, a := range slices.Backward(c.Args) {
		if slices.Contains(m.Arguments, a) {
			e.do("remove", fmt.Sprintf("%s/args/%d", at, i), nil)
		}
	}

	for i, mount := range slices.Backward(c.Mounts) {
		if mount.Volume == Volume && (e.volumeGoes || m.MountPath != "" && mount.Path == m.MountPath) {
			e.do("remove", fmt.Sprintf("%s/volumeMounts/%d", at, i), nil)
		}
	}
}

func pointer(c *facts.Container) string {
	if c.Init {
		return fmt.Sprintf("/spec/initContainers/%d", c.Index)
	}

	return fmt.Sprintf("/spec/containers/%d", c.Index)
}

// escape writes a name as a part of a JSON pointer (RFC 6901).
func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// Annotate returns the operations that set annotations of what is at a JSON pointer, or remove those whose value is empty. some
// says whether there are any yet.
func Annotate(at string, has map[string]string, some bool, values map[string]string) []Op {
	var ops []Op

	at += "/metadata/annotations"

	for _, k := range slices.Sorted(maps.Keys(values)) {
		path := at + "/" + escape(k)

		switch {
		case values[k] == has[k]:
		case values[k] == "":
			ops = append(ops, Op{Op: "remove", Path: path})
		case !some:
			ops = append(ops, Op{Op: "add", Path: at, Value: map[string]string{k: values[k]}})
			some = true
		default:
			ops = append(ops, Op{Op: "add", Path: path, Value: values[k]})
		}
	}

	return ops
}

// Remember writes memories, each by the name of its template, as the value of the annotation ambit.dev/replaced. Nothing
// to remember is the empty value.
func Remember(memories map[string]Memory) string {
	kept := map[string]Memory{}

	for name, m := range memories {
		if !m.IsEmpty() {
			kept[name] = m
		}
	}

	if len(kept) == 0 {
		return ""
	}

	text, _ := json.Marshal(kept) //nolint:errchkjson // Only strings and what came from JSON.

	return string(text)
}

// Recall reads what Remember wrote. What cannot be read is no memory: then nothing is restored.
func Recall(annotation string) map[string]Memory {
	out := map[string]Memory{}
	if err := json.Unmarshal([]byte(annotation), &out); err != nil {
		return map[string]Memory{}
	}

	return out
}
