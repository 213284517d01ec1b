package simulation

import (
	"maps"
	"reflect"
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/facts"
)

// Change is what changed of one object. Before is nil where it is created, and After where it is deleted.
type Change struct {
	Key           Key
	Before, After *unstructured.Unstructured
}

// Changes are the objects, sorted, that differ in more than their status from when the simulation began, and that were written
// for something other than scopes. Pods come and go with what they belong to, and so do ReplicaSets.
func (c *Cluster) Changes() ([]Change, error) {
	var out []Change

	for _, key := range slices.SortedFunc(maps.Keys(c.installed), compareKeys) {
		change, err := c.change(key)
		if err != nil {
			return nil, err
		}

		before, after := change.Before, change.After
		isThere := before != nil && after != nil

		if before == nil && after == nil || isThere && before.GetUID() == after.GetUID() && sameSpec(before, after) ||
			key.Kind.Kind == "Pod" || key.Kind.Kind == "ReplicaSet" {
			continue
		}

		out = append(out, change)
	}

	return out, nil
}

func (c *Cluster) change(key Key) (Change, error) {
	after, err := c.json(key)
	if err != nil {
		return Change{}, err
	}

	out := Change{Key: key, After: after}
	if was := c.Before(key); was != nil {
		out.Before, err = c.toJSON(was)
	}

	return out, err
}

// Statuses are the objects of OLM's kinds in some namespaces that are there in the end, as they were and as they are.
func (c *Cluster) Statuses(namespaces []string) ([]Change, error) {
	var out []Change

	for kind := range c.objects {
		if kind.Group != olm.GroupName {
			continue
		}

		for _, key := range c.keys(kind, "") {
			if !slices.Contains(namespaces, key.Namespace) {
				continue
			}

			change, err := c.change(key)
			if err != nil {
				return nil, err
			}

			out = append(out, change)
		}
	}

	slices.SortFunc(out, func(a, b Change) int { return compareKeys(a.Key, b.Key) })

	return out, nil
}

// Wrote returns what happened to an object since a reconcile began.
func (s *Simulation) Wrote(namespace string, key facts.ProjectedKey) apply.Result {
	at := named(schema.GroupKind{Group: rbacv1.GroupName, Kind: string(key.Kind)}, namespace, key.Name)

	_, touched := s.cluster.touched[at]

	switch {
	case !touched:
		return apply.Unchanged
	case s.cluster.get(at) == nil:
		return apply.Deleted
	default:
		return apply.Configured
	}
}

// sameSpec compares what is not status. In Roles and bindings, an empty list is none, as the API server stores it. The rules of a
// ClusterRole that takes them from others are the cluster's to fill in. Nobody does that here, so that the rules are missing
// where the selectors were removed and added again.
func sameSpec(a, b *unstructured.Unstructured) bool {
	aggregated := a.Object["aggregationRule"] != nil && b.Object["aggregationRule"] != nil

	without := func(u *unstructured.Unstructured) map[string]any {
		out := u.DeepCopy()
		out.SetManagedFields(nil)
		out.SetResourceVersion("")
		out.SetGeneration(0)
		unstructured.RemoveNestedField(out.Object, "metadata", "generation")
		delete(out.Object, "status")

		for _, field := range []string{"rules", "subjects"} {
			if items, is := out.Object[field].([]any); is && len(items) == 0 || aggregated && field == "rules" {
				delete(out.Object, field)
			}
		}

		return out.Object
	}

	return reflect.DeepEqual(without(a), without(b))
}
