// Package injection says how the watch list gets into a pod template, and out of it again. It is pure: it compares a
// template with what is wanted and returns the patch.
package injection

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Volume is the name of the volume by which the watch list is mounted.
const Volume = "ambit-watch-list"

// Want is what a pod template should have.
type Want struct {
	// ConfigMap holds the watch list.
	ConfigMap string
	// Labels are those of the template.
	Labels map[string]string
	// Optional lets a pod start although there is no ConfigMap.
	Optional bool
	// Confined leaves alone whatever is there already. OverOLM makes an exception of the variable that OLM itself fills with
	// namespaces.
	Confined, OverOLM bool

	scope.WorkloadInjection
}

// Hash stands for everything that is wanted.
func (w *Want) Hash() string {
	labels := slices.Sorted(maps.Keys(w.Labels))
	for i, k := range labels {
		labels[i] = k + "=" + w.Labels[k]
	}

	text := fmt.Sprintf("injection %q %q %t %q %q %q %q %t", w.ConfigMap, labels, w.Optional,
		w.Variable, w.Arguments, w.MountPath, w.Containers, w.Replace)
	if w.Confined {
		text += " confined" // What was injected before Ambit was confined is injected again.
	}

	return scope.Digest(16, text)
}

// variable is the environment variable as it should be.
func (w *Want) variable() corev1.EnvVar {
	ref := &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: w.ConfigMap}, Key: scope.ListKey,
	}
	if w.Optional {
		ref.Optional = new(true)
	}

	return corev1.EnvVar{Name: w.Variable, ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: ref}}
}

// in returns the containers that are injected into.
func (w *Want) in(t *facts.PodSpec) []*facts.Container {
	return collect.Filter(collect.Pointers(t.Containers), func(c *facts.Container) bool {
		return len(w.Containers) == 0 || slices.Contains(w.Containers, c.Name)
	})
}

// find returns the variable of a container and its place. Of several, the last one counts, as it does for the container.
func find(c *facts.Container, name string) (*corev1.EnvVar, int) {
	for i := len(c.Env) - 1; i >= 0; i-- {
		if c.Env[i].Name == name {
			return &c.Env[i], i
		}
	}

	return nil, -1
}

// readsList says whether a variable has the watch list in a ConfigMap as its value.
func readsList(v *corev1.EnvVar, configMap string) bool {
	return v != nil && v.ValueFrom != nil && v.ValueFrom.ConfigMapKeyRef != nil &&
		v.ValueFrom.ConfigMapKeyRef.Name == configMap && v.ValueFrom.ConfigMapKeyRef.Key == scope.ListKey
}

// isFree says whether nobody has given a variable a value. An empty one is none: it says "not limited", which is what the
// scope is there to change, and the API server lets a source be added to it.
func isFree(v *corev1.EnvVar) bool { return v == nil || v.Value == "" && v.ValueFrom == nil }

// isTwice says whether a container has several variables of one name. A server-side apply takes the place of all of them, and
// what is applied in their place would leave none behind when it is taken back.
func isTwice(c *facts.Container, name string) bool {
	_, last := find(c, name)

	return slices.IndexFunc(c.Env, func(v corev1.EnvVar) bool { return v.Name == name }) != last
}

// lacking returns the arguments that a container does not have.
func (w *Want) lacking(c *facts.Container) []string {
	return collect.Filter(w.Arguments, func(a string) bool { return !slices.Contains(c.Args, a) })
}

// mountedAt returns the volume that is mounted at the wanted path.
func (w *Want) mountedAt(c *facts.Container) string {
	for _, m := range c.Mounts {
		if strings.TrimRight(m.Path, "/") == w.MountPath {
			return m.Volume
		}
	}

	return ""
}

// has says whether a container has all that is wanted.
func (w *Want) has(c *facts.Container, t *facts.PodSpec) bool {
	if v, _ := find(c, w.Variable); w.Variable != "" && !readsList(v, w.ConfigMap) {
		return false
	}

	return len(w.lacking(c)) == 0 && (w.MountPath == "" || w.mountsList(c, t))
}

func (w *Want) mountsList(c *facts.Container, t *facts.PodSpec) bool {
	volume := w.mountedAt(c)

	return volume != "" && slices.Contains(t.Volumes, facts.Volume{Name: volume, ConfigMap: w.ConfigMap})
}

// Touches says whether a template has any container to inject into.
func (w *Want) Touches(t *facts.PodSpec) bool { return len(w.in(t)) > 0 }

// Has says whether a template has all that is wanted.
func (w *Want) Has(t *facts.PodSpec) bool {
	return !slices.ContainsFunc(w.in(t), func(c *facts.Container) bool { return !w.has(c, t) })
}
