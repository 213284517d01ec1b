package injection

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// Conflict is something that somebody else set and that is in the way.
type Conflict struct {
	Container string
	// Says describes it.
	Says string
	// Replaceable says that Ambit can write over it and put it back.
	Replaceable bool
	// MayBeOurs says that it looks like what Ambit itself writes. Where Ambit wrote it, it is no conflict.
	MayBeOurs bool
	// List is the ConfigMap whose list the variable has as its value; empty where it has another.
	List string
}

// String names the container and what is wrong.
func (c Conflict) String() string { return "container " + c.Container + ": " + c.Says }

// Conflicts returns what is in the way in a template, in the order of the containers.
func (w *Want) Conflicts(t *facts.PodSpec) []Conflict {
	if w.Confined {
		return w.taken(t)
	}

	var out []Conflict

	for _, c := range w.in(t) {
		switch v, _ := find(c, w.Variable); {
		case w.Variable == "" || readsList(v, w.ConfigMap):
		case !isFree(v):
			out = append(out, Conflict{
				Container: c.Name, Says: w.Variable + " is set already, to " + valueOf(v),
				Replaceable: true, MayBeOurs: readsSomeList(v),
			})
		case isTwice(c, w.Variable):
			out = append(out, Conflict{Container: c.Name, Says: w.Variable + " is there more than once", Replaceable: true})
		}

		if lacking := w.lacking(c); len(lacking) > 0 && len(c.Args) > 0 {
			out = append(out, Conflict{
				Container: c.Name, Says: fmt.Sprintf("it has arguments of its own, without %s", lacking[0]), Replaceable: true,
			})
		}

		if at := w.mountedAt(c); w.MountPath != "" && at != "" && !w.mountsList(c, t) {
			out = append(out, Conflict{
				Container: c.Name, Says: fmt.Sprintf("volume %s is mounted at %s", at, w.MountPath), MayBeOurs: at == Volume,
			})
		}
	}

	return out
}

// readsSomeList says whether a variable is as Ambit writes it, for whichever ConfigMap.
func readsSomeList(v *corev1.EnvVar) bool {
	return v.ValueFrom != nil && v.ValueFrom.ConfigMapKeyRef != nil && readsList(v, v.ValueFrom.ConfigMapKeyRef.Name)
}

// valueOf says in words where a variable gets its value from, without the value.
func valueOf(v *corev1.EnvVar) string {
	from := v.ValueFrom

	switch {
	case from == nil:
		return "a literal value"
	case from.ConfigMapKeyRef != nil:
		return fmt.Sprintf("key %s of ConfigMap %s", from.ConfigMapKeyRef.Key, from.ConfigMapKeyRef.Name)
	case from.SecretKeyRef != nil:
		return fmt.Sprintf("key %s of Secret %s", from.SecretKeyRef.Key, from.SecretKeyRef.Name)
	case from.FieldRef != nil:
		return "field " + from.FieldRef.FieldPath
	case from.ResourceFieldRef != nil:
		return "resource " + from.ResourceFieldRef.Resource
	default:
		return "another source"
	}
}
