// Package simulation is a cluster in memory, in which the manager's own reconcilers and its own applier run: what "ambit plan"
// says of OLM's kinds is what they do there. Nothing in it reaches a cluster but the question what somebody may do.
package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Key names an object.
type Key struct {
	Kind schema.GroupKind
	types.NamespacedName
}

// Cluster holds objects as the API server would, in their form as JSON: OLM's own types cannot read all that its definitions
// accept.
type Cluster struct {
	scheme *runtime.Scheme
	mapper meta.RESTMapper
	// now is the clock, which the simulation sets forward instead of waiting.
	now func() time.Time

	objects map[Key]*unstructured.Unstructured
	// later are objects that are turned into JSON when somebody asks for them.
	later map[Key]client.Object
	// before are the objects as they were when the simulation began.
	before map[Key]*unstructured.Unstructured
	// installers are the accounts that the groups of namespaces named then.
	installers map[string]string
	// version is larger with each write, and writes how many there were.
	version uint64
	writes  int
}

// NewCluster returns an empty cluster of the kinds that a mapper knows.
func NewCluster(scheme *runtime.Scheme, mapper meta.RESTMapper) *Cluster {
	c := &Cluster{scheme: scheme, now: time.Now, objects: map[Key]*unstructured.Unstructured{}}
	c.mapper = &kinds{RESTMapper: mapper, cluster: c}

	return c
}

// Add puts an object there as it is.
func (c *Cluster) Add(obj client.Object) error {
	u, err := c.toJSON(obj)
	if err != nil {
		return err
	}

	c.version = max(c.version, scope.ParseVersion(u.GetResourceVersion()))
	c.objects[keyOf(u)] = u

	return nil
}

// get finds an object; nil where there is none.
func (c *Cluster) get(key Key) (*unstructured.Unstructured, error) {
	if obj := c.later[key]; obj != nil {
		delete(c.later, key)

		u, err := c.toJSON(obj)
		if err != nil {
			return nil, err
		}

		c.objects[key] = u
	}

	return c.objects[key], nil
}

// Propose puts an object there as somebody is about to write it, which is no change. What was there before keeps its status.
func (c *Cluster) Propose(obj client.Object) error {
	u, err := c.toJSON(obj)
	if err != nil {
		return err
	}

	key := keyOf(u)
	defer func() {
		if c.before != nil {
			c.before[key] = c.objects[key]
		}
	}()

	if live := c.objects[keyOf(u)]; live != nil {
		u.SetUID(live.GetUID())
		u.SetResourceVersion(live.GetResourceVersion())
		u.SetCreationTimestamp(live.GetCreationTimestamp())
		keepStatus(u, live)
		c.replace(u, live)

		return nil
	}

	c.insert(u)

	return nil
}

// Begin remembers what is there, and that is what Changes compares with.
func (c *Cluster) Begin() {
	c.before = maps.Clone(c.objects)
	c.installers = c.groupAccounts()
}

// groupAccounts are the accounts that the groups name, of the namespaces that have one group.
func (c *Cluster) groupAccounts() map[string]string {
	out, groups := map[string]string{}, map[string]int{}

	c.each(schema.GroupKind{Group: operatorsv1.GroupVersion.Group, Kind: operatorsv1.OperatorGroupKind}, "",
		func(u *unstructured.Unstructured) {
			groups[u.GetNamespace()]++
			out[u.GetNamespace()], _, _ = unstructured.NestedString(u.Object, "spec", "serviceAccountName")
		})
	maps.DeleteFunc(out, func(namespace, _ string) bool { return groups[namespace] > 1 })

	return out
}

// each calls f for every object of a kind, in the order of their names. f gets what is stored and must not change it.
func (c *Cluster) each(kind schema.GroupKind, namespace string, f func(*unstructured.Unstructured)) {
	var keys []Key

	for key := range c.objects {
		if key.Kind == kind && (namespace == "" || key.Namespace == namespace) {
			keys = append(keys, key)
		}
	}

	slices.SortFunc(keys, compareKeys)

	for _, key := range keys {
		f(c.objects[key])
	}
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Kind.Group, b.Kind.Group))
}

// insert stores a new object, with what the API server gives it.
func (c *Cluster) insert(u *unstructured.Unstructured) {
	if u.GetUID() == "" {
		u.SetUID(uuid.NewUUID())
	}

	if created := u.GetCreationTimestamp(); created.IsZero() {
		u.SetCreationTimestamp(metav1.NewTime(c.now().Truncate(time.Second)))
	}

	if _, hasSpec := u.Object["spec"]; hasSpec {
		u.SetGeneration(1)
	}

	c.store(u)
}

// replace stores another version of an object, if it differs. The last finalizer that goes takes a deleted object along.
func (c *Cluster) replace(u, live *unstructured.Unstructured) {
	if sameButTimes(u, live) {
		u.SetResourceVersion(live.GetResourceVersion())
		u.SetManagedFields(live.GetManagedFields())

		return
	}

	if u.GetDeletionTimestamp() != nil && len(u.GetFinalizers()) == 0 {
		c.remove(keyOf(u))

		return
	}

	if !reflect.DeepEqual(u.Object["spec"], live.Object["spec"]) {
		u.SetGeneration(live.GetGeneration() + 1)
	}

	c.store(u)
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

		out.SetManagedFields(entries)

		return out.Object
	}

	return reflect.DeepEqual(without(a), without(b))
}

func (c *Cluster) store(u *unstructured.Unstructured) {
	c.version++
	c.writes++
	u.SetResourceVersion(strconv.FormatUint(c.version, 10))
	c.operate(u)
	c.objects[keyOf(u)] = u.DeepCopy()
}

// delete deletes an object as the API server does, and then what belongs to it as the garbage collector does.
func (c *Cluster) delete(key Key) {
	u := c.objects[key]
	if u == nil {
		return
	}

	if len(u.GetFinalizers()) == 0 {
		c.remove(key)

		return
	}

	if u.GetDeletionTimestamp() == nil {
		u = u.DeepCopy()
		now := metav1.NewTime(c.now())
		u.SetDeletionTimestamp(&now)
		c.store(u)
	}
}

// Delete deletes an object that somebody is about to delete. That is no change; what goes with it is.
func (c *Cluster) Delete(obj client.Object) error {
	gvk, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return fmt.Errorf("deleting %s: %w", obj.GetName(), err)
	}

	key := Key{gvk.GroupKind(), client.ObjectKeyFromObject(obj)}
	c.delete(key)

	if c.before != nil && c.objects[key] == nil {
		delete(c.before, key)
	}

	return nil
}

func (c *Cluster) remove(key Key) {
	gone := c.objects[key]
	delete(c.objects, key)

	c.version++
	c.writes++

	if key.Kind == (schema.GroupKind{Kind: "Namespace"}) {
		for other := range maps.Clone(c.objects) {
			if other.Namespace == key.Name {
				c.delete(other)
			}
		}
	}

	for other, u := range maps.Clone(c.objects) {
		c.release(other, u, gone.GetUID())
	}
}

// release takes an owner that is gone from an object, which goes with the last of them.
func (c *Cluster) release(key Key, u *unstructured.Unstructured, owner types.UID) {
	refs := u.GetOwnerReferences()

	left := slices.DeleteFunc(slices.Clone(refs), func(r metav1.OwnerReference) bool { return r.UID == owner })

	switch {
	case len(left) == len(refs):
	case len(left) == 0:
		c.delete(key)
	default:
		u = u.DeepCopy()
		u.SetOwnerReferences(left)
		c.store(u)
	}
}

// exists says whether a namespace is there and not on its way out.
func (c *Cluster) exists(namespace string) bool {
	ns := c.objects[Key{schema.GroupKind{Kind: "Namespace"}, types.NamespacedName{Name: namespace}}]

	return ns != nil && ns.GetDeletionTimestamp() == nil
}

// resource is the resource of a kind, for rights and for words.
func (c *Cluster) resource(gvk schema.GroupVersionKind) schema.GroupResource {
	if mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
		return mapping.Resource.GroupResource()
	}

	plural, _ := meta.UnsafeGuessKindToResource(gvk)

	return plural.GroupResource()
}

func keyOf(u *unstructured.Unstructured) Key {
	return Key{u.GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(u)}
}

// toJSON is an object as the API server has it, without what is nothing.
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

func (c *Cluster) notFound(key Key, gvk schema.GroupVersionKind) error {
	return apierrors.NewNotFound(c.resource(gvk), key.Name)
}

// errNoNamespace is the API server's answer to who writes into a namespace that is not there.
func errNoNamespace(name string) error {
	return apierrors.NewNotFound(corev1.Resource("namespaces"), name)
}
