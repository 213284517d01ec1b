package simulation

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// read fills in an object that somebody reads, and says whether it is there.
func (c *Cluster) read(key Key, into client.Object) (bool, error) {
	live := c.get(key)
	if live == nil {
		return false, nil
	}

	if reflect.TypeOf(live) == reflect.TypeOf(into) {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(live.DeepCopyObject()).Elem())

		return true, nil
	}

	u, err := c.json(key)
	if err == nil {
		err = fromJSON(u, into)
	}

	if nss, is := into.(*operatorv1.NamespaceScope); is {
		nss.Spec.Unreadable = c.unreadable[key]
	}

	return true, err
}

func (c *Cluster) noteUnreadable(key Key, obj client.Object) {
	if nss, is := obj.(*operatorv1.NamespaceScope); is {
		c.unreadable[key] = nss.Spec.Unreadable
	}
}

// json finds an object in its form as JSON, which nobody may change; nil where there is none.
func (c *Cluster) json(key Key) (*unstructured.Unstructured, error) {
	switch obj := c.get(key).(type) {
	case nil:
		return nil, nil //nolint:nilnil // As documented.
	case *unstructured.Unstructured:
		return obj, nil
	default:
		u, err := c.toJSON(obj)
		if err == nil && key.Kind.Group != rbacv1.GroupName {
			c.put(key, u)
		}

		return u, err
	}
}

// toJSON is an object as the API server has it, without fields that are null.
func (c *Cluster) toJSON(obj client.Object) (*unstructured.Unstructured, error) {
	gvk, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", obj.GetName(), err)
	}

	if u, is := obj.(*unstructured.Unstructured); is {
		return u.DeepCopy(), nil
	}

	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("reading %s %s: %w", gvk.Kind, obj.GetName(), err)
	}

	withoutNothing(content)

	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)

	return u, nil
}

// withoutNothing takes out the fields that are null, as the types write what is not there.
func withoutNothing(content map[string]any) {
	for name, value := range content {
		switch value := value.(type) {
		case nil:
			delete(content, name)
		case map[string]any:
			withoutNothing(value)
		case []any:
			for _, item := range value {
				if inner, is := item.(map[string]any); is {
					withoutNothing(inner)
				}
			}
		}
	}
}

// fromJSON fills in an object that somebody reads.
func fromJSON(u *unstructured.Unstructured, into client.Object) error {
	if out, is := into.(*unstructured.Unstructured); is {
		out.Object = u.DeepCopy().Object

		return nil
	}

	fresh := reflect.New(reflect.TypeOf(into).Elem())
	reflect.ValueOf(into).Elem().Set(fresh.Elem())

	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, into); err != nil {
		return fmt.Errorf("reading %s %s: %w", u.GetKind(), u.GetName(), err)
	}

	return nil
}

func keepStatus(u, live *unstructured.Unstructured) {
	delete(u.Object, "status")

	if was, has := live.Object["status"]; has {
		u.Object["status"] = runtime.DeepCopyJSONValue(was)
	}
}

// sameButTimes compares what is stored, and who wrote which fields, but not when.
func sameButTimes(a, b *unstructured.Unstructured) bool {
	without := func(u *unstructured.Unstructured) map[string]any {
		out := u.DeepCopy()
		out.SetResourceVersion("")

		entries := out.GetManagedFields()
		for i := range entries {
			entries[i].Time = nil
		}

		// They come in the order of their times.
		slices.SortFunc(entries, func(a, b metav1.ManagedFieldsEntry) int {
			return cmp.Or(cmp.Compare(a.Manager, b.Manager), cmp.Compare(a.Operation, b.Operation),
				cmp.Compare(a.Subresource, b.Subresource))
		})
		out.SetManagedFields(entries)

		return out.Object
	}

	return reflect.DeepEqual(without(a), without(b))
}
