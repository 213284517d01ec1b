// Package simulation is a cluster in memory, in which all of the manager's own reconcilers and its own applier run: what "ambit
// plan" says is what they do there. Nothing in it reaches a cluster but the question what somebody may do.
package simulation

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Key names an object.
type Key struct {
	Kind schema.GroupKind
	types.NamespacedName
}

// Cluster holds objects as the API server would. Roles and bindings stay as their types have them, because there may be tens of
// thousands of copies, and all others become JSON with the first write: OLM's own types cannot read all that its definitions
// accept.
type Cluster struct {
	scheme *runtime.Scheme
	mapper meta.RESTMapper
	// now is the clock, which stands still. The simulation sets it forward instead of waiting.
	now time.Time

	// objects are in the form in which they came or were written last, by kind, namespace and name.
	objects map[schema.GroupKind]map[string]map[string]client.Object
	// records are those of the manager's own reader. They hear of every write, as by watches.
	records *read.Once
	// before are objects that were written since Begin, as they were then; nil where there was none.
	before map[Key]client.Object
	// installed are those of them that others than scopes wrote, and touched those that were written since a reconcile began.
	installed, touched map[Key]struct{}
	// collected are the copies of scopes that went with their owners since Begin, by reconcile key.
	collected map[scope.Key][]client.Object
	// byScopes says that what is written now is written for scopes.
	byScopes bool
	// byAmbit says that what is deleted now is deleted by Ambit itself.
	byAmbit bool
	// installers are the accounts that the groups of namespaces named at Begin.
	installers map[string]string
	// version is larger with each write, and writes how many there were.
	version uint64
	writes  int
	// permissions is how often Roles and bindings were written in a namespace, proposed how often before the simulation ran, and
	// permissionsAt when that was last.
	permissions, proposed map[string]int
	permissionsAt         map[string]time.Time
	// unreadable is what could not be read of the specs of NamespaceScopes, which what is stored of them does not say.
	unreadable map[Key]string
}

// proposing is how many resource versions are reserved, before those of what is written in memory, for what somebody proposes.
const proposing = 1 << 20

// NewCluster returns an empty cluster of the kinds that a mapper knows, at a time. Its records change with it.
func NewCluster(scheme *runtime.Scheme, mapper meta.RESTMapper, once *read.Once, now time.Time) *Cluster {
	c := &Cluster{
		scheme: scheme, now: now, objects: map[schema.GroupKind]map[string]map[string]client.Object{}, records: once,
		version: read.Later - proposing, permissions: map[string]int{}, permissionsAt: map[string]time.Time{},
		unreadable: map[Key]string{},
	}
	c.mapper = &kinds{RESTMapper: mapper, cluster: c}
	c.Begin()

	return c
}

// Add puts an object there that was read.
func (c *Cluster) Add(obj client.Object) {
	gvk, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return // What the scheme does not know, nobody here asks for.
	}

	key := Key{gvk.GroupKind(), client.ObjectKeyFromObject(obj)}
	c.put(key, obj)
	c.noteUnreadable(key, obj)
	c.record(obj)
}

// Before is an object as it was when the simulation began; nil where there was none.
func (c *Cluster) Before(key Key) client.Object {
	if was, written := c.before[key]; written {
		return was
	}

	return c.get(key)
}

// Declare puts a resource there that asks for a scope. Whatever somebody proposes is older than what is written here.
func (c *Cluster) Declare(obj client.Object) error {
	u, err := c.toJSON(obj)
	if err != nil {
		return err
	}

	u.SetResourceVersion("1")
	c.put(keyOf(u), u)
	c.noteUnreadable(keyOf(u), obj)

	return nil
}

// get finds an object; nil where there is none.
func (c *Cluster) get(key Key) client.Object { return c.objects[key.Kind][key.Namespace][key.Name] }

func (c *Cluster) put(key Key, obj client.Object) {
	in := c.objects[key.Kind]
	if in == nil {
		in = map[string]map[string]client.Object{}
		c.objects[key.Kind] = in
	}

	if in[key.Namespace] == nil {
		in[key.Namespace] = map[string]client.Object{}
	}

	in[key.Namespace][key.Name] = obj
}

// set stores a version of an object, or with nil that it is gone.
func (c *Cluster) set(key Key, obj client.Object) {
	was := c.get(key)
	if _, noted := c.before[key]; !noted {
		c.before[key] = was
	}

	if c.touched[key] = struct{}{}; !c.byScopes {
		c.installed[key] = struct{}{}
	}

	c.version++
	c.writes++

	if key.Kind.Group == rbacv1.GroupName {
		c.permissions[key.Namespace]++
		c.permissionsAt[key.Namespace] = c.now
	}

	if obj == nil {
		delete(c.objects[key.Kind][key.Namespace], key.Name)

		if was = c.recorded(was); was != nil {
			lostAt := c.version
			if c.byAmbit {
				lostAt = 0 // What Ambit itself deletes is not lost.
			}

			c.records.End(was, lostAt)
		}

		return
	}

	obj.SetResourceVersion(strconv.FormatUint(c.version, 10))
	c.put(key, obj)
	c.record(obj)
}

// Propose puts an object there as somebody is about to write it, which is no change. What was there before keeps its status.
func (c *Cluster) Propose(obj client.Object) error {
	u, err := c.toJSON(obj)
	if err != nil {
		return err
	}

	key := keyOf(u)

	live, err := c.json(key)
	if err != nil {
		return err
	}

	if live != nil {
		u.SetUID(live.GetUID())
		u.SetResourceVersion(live.GetResourceVersion())
		u.SetCreationTimestamp(live.GetCreationTimestamp())
		keepStatus(u, live)
		c.replace(u, live)
		c.roll(live, u)
	} else {
		c.insert(u)
	}

	c.isNoChange(key)

	return nil
}

// isNoChange takes what is there of an object for what was there.
func (c *Cluster) isNoChange(key Key) {
	c.before[key] = c.get(key)
	delete(c.installed, key)
}

// Begin remembers what is there, and that is what Changes compares with.
func (c *Cluster) Begin() {
	c.before, c.installed, c.touched = map[Key]client.Object{}, map[Key]struct{}{}, map[Key]struct{}{}
	c.collected, c.installers = map[scope.Key][]client.Object{}, c.groupAccounts()
}

// groupAccounts are the accounts that the groups name, of the namespaces that have one group.
func (c *Cluster) groupAccounts() map[string]string {
	out, groups := map[string]string{}, map[string]int{}

	for _, key := range c.keys(operatorGroups, "") {
		if u, err := c.json(key); err == nil {
			groups[key.Namespace]++
			out[key.Namespace], _, _ = unstructured.NestedString(u.Object, "spec", "serviceAccountName")
		}
	}

	maps.DeleteFunc(out, func(namespace, _ string) bool { return groups[namespace] > 1 })

	return out
}

var (
	operatorGroups = schema.GroupKind{Group: operatorsv1.GroupVersion.Group, Kind: operatorsv1.OperatorGroupKind}
	csvs           = schema.GroupKind{Group: olm.GroupName, Kind: scope.KindCSV}
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
)

// keys are those of all objects of a kind in a namespace, or with an empty one everywhere, in the order of their names.
func (c *Cluster) keys(kind schema.GroupKind, namespace string) []Key {
	var keys []Key

	for place, objects := range within(c.objects[kind], namespace) {
		for name := range objects {
			keys = append(keys, named(kind, place, name))
		}
	}

	slices.SortFunc(keys, compareKeys)

	return keys
}

// all calls f for every object of a namespace, or with an empty one for every object.
func (c *Cluster) all(namespace string, f func(Key, client.Object)) {
	for kind, in := range c.objects {
		for place, objects := range within(in, namespace) {
			for name, obj := range maps.Clone(objects) {
				f(named(kind, place, name), obj)
			}
		}
	}
}

// within are the objects of one namespace, or with an empty one of all.
func within(all map[string]map[string]client.Object, namespace string) map[string]map[string]client.Object {
	if namespace == "" {
		return all
	}

	return map[string]map[string]client.Object{namespace: all[namespace]}
}

func compareKeys(a, b Key) int {
	return cmp.Or(cmp.Compare(a.Kind.Kind, b.Kind.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
		cmp.Compare(a.Kind.Group, b.Kind.Group))
}

// insert stores a new object, with what the API server gives it.
func (c *Cluster) insert(u *unstructured.Unstructured) {
	c.initialize(u)
	c.store(u)
}

// initialize gives a new object what the API server gives it, also where it is not stored.
func (c *Cluster) initialize(u *unstructured.Unstructured) {
	if u.GetUID() == "" {
		u.SetUID(uuid.NewUUID())
	}

	if created := u.GetCreationTimestamp(); created.IsZero() {
		u.SetCreationTimestamp(metav1.NewTime(c.now.Truncate(time.Second)))
	}

	if _, hasSpec := u.Object["spec"]; hasSpec {
		u.SetGeneration(1)
	}
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

	advance(u, live)
	c.store(u)
}

// advance counts another version of an object, also where it is not stored.
func advance(u, live *unstructured.Unstructured) {
	if !reflect.DeepEqual(u.Object["spec"], live.Object["spec"]) {
		u.SetGeneration(live.GetGeneration() + 1)
	}
}

func (c *Cluster) store(u *unstructured.Unstructured) {
	u = u.DeepCopy()
	c.operate(u)
	c.set(keyOf(u), u)
}

// takesNew says why a namespace gets no new object, as the API server does (NamespaceLifecycle); nil when it does.
func (c *Cluster) takesNew(key Key, gvk schema.GroupVersionKind) error {
	switch ns := c.get(named(namespaceKind, "", key.Namespace)); {
	case key.Namespace == "", ns != nil && ns.GetDeletionTimestamp() == nil:
		return nil
	case ns == nil:
		return errNoNamespace(key.Namespace)
	default:
		err := apierrors.NewForbidden(c.resource(gvk), key.Name, fmt.Errorf(
			"unable to create new content in namespace %s because it is being terminated", key.Namespace))
		err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
			Type: corev1.NamespaceTerminatingCause, Message: "namespace " + key.Namespace + " is being terminated",
			Field: "metadata.namespace",
		})

		return err
	}
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

func (c *Cluster) notFound(key Key, gvk schema.GroupVersionKind) error {
	return apierrors.NewNotFound(c.resource(gvk), key.Name)
}

// errNoNamespace is the API server's answer to who writes into a namespace that is not there.
func errNoNamespace(name string) error {
	return apierrors.NewNotFound(corev1.Resource("namespaces"), name)
}
