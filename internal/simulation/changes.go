package simulation

import (
	"maps"
	"reflect"
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Change is what changed of one object. Before is nil where it is created, and After where it is deleted.
type Change struct {
	Key           Key
	Before, After *unstructured.Unstructured
}

// Changes are the objects that differ from when the simulation began, in more than their status, sorted.
func (c *Cluster) Changes() []Change {
	var out []Change

	for _, key := range c.keys() {
		before, after := c.before[key], c.objects[key]
		if before == nil || after == nil || before.GetUID() != after.GetUID() || !sameSpec(before, after) {
			out = append(out, Change{key, before, after})
		}
	}

	return out
}

// keys are those of everything that is or was there, sorted.
func (c *Cluster) keys() []Key {
	all := map[Key]struct{}{}
	for key := range c.objects {
		all[key] = struct{}{}
	}

	for key := range c.before {
		all[key] = struct{}{}
	}

	return slices.SortedFunc(maps.Keys(all), compareKeys)
}

// sameSpec compares what is not status.
func sameSpec(a, b *unstructured.Unstructured) bool {
	without := func(u *unstructured.Unstructured) map[string]any {
		out := u.DeepCopy()
		out.SetManagedFields(nil)
		out.SetResourceVersion("")
		out.SetGeneration(0)
		unstructured.RemoveNestedField(out.Object, "metadata", "generation")
		delete(out.Object, "status")

		return out.Object
	}

	return reflect.DeepEqual(without(a), without(b))
}

// Statuses are the objects of OLM's kinds in some namespaces that are there in the end, as they were and as they are.
func (c *Cluster) Statuses(namespaces []string) []Change {
	var out []Change

	for _, key := range c.keys() {
		after := c.objects[key]
		if after != nil && key.Kind.Group == olm.GroupName && slices.Contains(namespaces, key.Namespace) {
			out = append(out, Change{key, c.before[key], after})
		}
	}

	return out
}
