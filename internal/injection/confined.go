package injection

import (
	"fmt"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Where no policy asks who wrote a scope, injection must not be a way to run code, or to take the place of something, for
// somebody who may not write workloads. What is there cannot be known from the template alone: the image has files and variables
// of its own, and a program runs what some variables name. So instead of forbidding what is known to be harmful, Ambit allows
// what by its name is for a list of namespaces, and nothing else.

const (
	// ofVariables has to be in the name of a variable, and one of ofDirs in that of the folder that is mounted.
	ofVariables = "NAMESPACE"
	// olmTargets is where OLM's operators get their namespaces from; the list may take its place.
	olmTargets = "metadata.annotations['olm.targetNamespaces']"
)

func ofDirs() []string { return []string{"ambit", "namespace", "scope", "watch"} }

// reserved are folders that the kubelet or the runtime fills.
func reserved() []string {
	return []string{"/dev", "/proc", "/run/secrets", "/sys", "/var/run/secrets"}
}

// Refusal says why nothing of an injection may be put in where it is confined; empty when it may.
func Refusal(in *scope.WorkloadInjection) string {
	const because = "this Ambit cannot ask who wrote the scope"

	dir := path.Base(in.MountPath)

	switch {
	case len(in.Arguments) > 0:
		return "spec.workloadInjector.arguments are not added, because " + because + "; use variable or mountPath"
	case in.Variable != "" && !strings.Contains(in.Variable, ofVariables):
		return fmt.Sprintf("spec.workloadInjector.variable is %s, and because %s, it has to have %s in its name",
			in.Variable, because, ofVariables)
	case in.MountPath == "":
		return ""
	case !path.IsAbs(in.MountPath), path.Clean(in.MountPath) != in.MountPath,
		slices.ContainsFunc(reserved(), func(r string) bool { return below(in.MountPath, r) }),
		!slices.ContainsFunc(ofDirs(), func(word string) bool { return strings.Contains(dir, word) }):
		return fmt.Sprintf("spec.workloadInjector.mountPath is %s, and because %s, it has to be a folder of its own, with %s "+
			"in its name, such as /etc/ambit", in.MountPath, because, strings.Join(ofDirs(), " or "))
	default:
		return ""
	}
}

// taken returns what is in the way where injection is confined: whatever is there already, or may be.
func (w *Want) taken(t *facts.PodSpec) []Conflict {
	var out []Conflict

	for _, c := range w.in(t) {
		out = append(out, w.variableTaken(c)...)

		if w.MountPath == "" {
			continue
		}

		out = append(out, w.dirTaken(c, t)...)

		for _, v := range t.Volumes {
			if v.Name == Volume && v.ConfigMap != w.ConfigMap {
				out = append(out, Conflict{
					Container: c.Name, Says: "the pod has another volume " + Volume, MayBeOurs: v.ConfigMap != "",
				})
			}
		}
	}

	return out
}

func (w *Want) variableTaken(c *facts.Container) []Conflict {
	v, _ := find(c, w.Variable)

	switch {
	case w.Variable == "" || readsList(v, w.ConfigMap) || w.OverOLM && isFromOLM(v):
		return nil
	case v != nil:
		out := Conflict{Container: c.Name, Says: w.Variable + " is set already, to " + valueOf(v), MayBeOurs: readsSomeList(v)}
		if out.MayBeOurs {
			out.List = v.ValueFrom.ConfigMapKeyRef.Name
		}

		return []Conflict{out}
	}

	for _, prefix := range c.EnvFrom {
		if strings.HasPrefix(w.Variable, prefix) {
			return []Conflict{{Container: c.Name, Says: w.Variable + " may be set already, by its envFrom"}}
		}
	}

	return nil
}

func (w *Want) dirTaken(c *facts.Container, t *facts.PodSpec) []Conflict {
	for _, m := range c.Mounts {
		same := path.Clean(m.Path) == w.MountPath
		if same && w.mountsList(c, t) || !below(m.Path, w.MountPath) && !below(w.MountPath, m.Path) {
			continue
		}

		return []Conflict{{
			Container: c.Name, Says: fmt.Sprintf("volume %s is mounted at %s", m.Volume, m.Path), MayBeOurs: m.Volume == Volume,
		}}
	}

	return nil
}

// below says whether a path is in a folder, or is that folder.
func below(name, dir string) bool {
	name, dir = path.Clean("/"+name), path.Clean("/"+dir)

	return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
}

// isFromOLM says whether a variable has as its value the namespaces that OLM has the operator watch.
func isFromOLM(v *corev1.EnvVar) bool {
	return v != nil && v.ValueFrom != nil && v.ValueFrom.FieldRef != nil && v.ValueFrom.FieldRef.FieldPath == olmTargets
}
