package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ambit-k8s/ambit/internal/projected"
)

// errNotSimulated is the answer to requests that nothing here makes.
var errNotSimulated = errors.New("this request is not simulated")

// user reads and writes the cluster as somebody.
type user struct {
	*Simulation

	// name is that of a user whom the API server asks for their rights; empty for Ambit itself.
	name string
	// actor is the user that Ambit itself is, and that acts as name; empty where it is not asked whether it may, or not
	// known who it is.
	actor string
}

var _ client.Client = (*user)(nil)

// Scheme is that of the cluster.
func (u *user) Scheme() *runtime.Scheme { return u.cluster.scheme }

// RESTMapper is that of the cluster.
func (u *user) RESTMapper() meta.RESTMapper { return u.cluster.mapper }

// GroupVersionKindFor is the kind of an object.
func (u *user) GroupVersionKindFor(obj runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(obj, u.cluster.scheme) //nolint:wrapcheck // It is asked in place of the client.
}

// IsObjectNamespaced says whether the objects of a kind have a namespace.
func (u *user) IsObjectNamespaced(obj runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(obj, u.cluster.scheme, u.cluster.mapper) //nolint:wrapcheck // As above.
}

// Get reads an object.
func (u *user) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	u.mu.Lock()
	defer u.mu.Unlock()

	gvk, err := u.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}

	name := Key{gvk.GroupKind(), key}
	if err := u.mayAsk(&request{verb: "get", named: true, key: name, gvk: gvk}); err != nil {
		return err
	}

	exists, err := u.cluster.read(name, obj)
	if err == nil && !exists {
		err = u.cluster.notFound(name, gvk)
	}

	return err
}

// List lists objects.
func (u *user) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	u.mu.Lock()
	defer u.mu.Unlock()

	o := &client.ListOptions{}
	o.ApplyOptions(options)

	gvk, err := u.GroupVersionKindFor(list)
	if err != nil {
		return err
	}

	// Like the clients of controller-runtime, it takes the kind of the items for that of a list, too.
	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")

	var items []runtime.Object

	for _, key := range u.cluster.keys(gvk.GroupKind(), o.Namespace) {
		if !u.isSelected(o, u.cluster.get(key)) {
			continue
		}

		item, err := u.item(list, gvk)
		if err == nil {
			_, err = u.cluster.read(key, item)
		}

		if err != nil {
			return err
		}

		items = append(items, item)
	}

	return meta.SetList(list, items) //nolint:wrapcheck // It fails for what is no list.
}

// item returns an empty object for a list.
func (u *user) item(list client.ObjectList, gvk schema.GroupVersionKind) (client.Object, error) {
	if _, is := list.(*unstructured.UnstructuredList); is {
		return &unstructured.Unstructured{}, nil
	}

	made, err := u.cluster.scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", gvk.Kind, err)
	}

	obj, _ := made.(client.Object)

	return obj, nil
}

func (u *user) isSelected(o *client.ListOptions, live client.Object) bool {
	if o.LabelSelector != nil && !o.LabelSelector.Matches(labels.Set(live.GetLabels())) {
		return false
	}

	if o.FieldSelector == nil {
		return true
	}

	return !slices.ContainsFunc(o.FieldSelector.Requirements(), func(r fields.Requirement) bool {
		values := []string{live.GetName()}
		if r.Field != metav1.ObjectNameField {
			values = u.indexes[r.Field](live)
		}

		return !slices.Contains(values, r.Value)
	})
}

// Create makes an object, or answers a review.
func (u *user) Create(_ context.Context, obj client.Object, options ...client.CreateOption) error {
	u.mu.Lock()
	defer u.mu.Unlock()

	if review, is := obj.(*authorizationv1.SelfSubjectRulesReview); is {
		return u.review(review)
	}

	o := &client.CreateOptions{}
	o.ApplyOptions(options)

	gvk, err := u.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}

	key := Key{gvk.GroupKind(), client.ObjectKeyFromObject(obj)}
	asks := &request{verb: toCreate, key: key, gvk: gvk, object: obj, dryRun: len(o.DryRun) > 0}

	if err := u.mayAsk(asks); err != nil {
		return err
	}

	if err := u.cluster.takesNew(key, gvk); err != nil {
		return err
	}

	if err := u.mayHandOut(asks); err != nil {
		return err
	}

	if err := valid(asks); err != nil {
		return err
	}

	if u.cluster.get(key) != nil {
		return apierrors.NewAlreadyExists(u.cluster.resource(gvk), key.Name)
	}

	if _, is := projected.KindOf(obj); is {
		u.createCopy(obj, asks, o.FieldManager)

		return nil
	}

	made, err := u.cluster.toJSON(obj)
	if err != nil {
		return err
	}

	delete(made.Object, "status")

	if made, err = note(empty(gvk), made, o.FieldManager); err != nil {
		return err
	}

	if u.cluster.initialize(made); asks.dryRun {
		return fromJSON(made, obj)
	}

	u.cluster.insert(made)
	_, err = u.cluster.read(key, obj)

	return err
}

// createCopy makes a Role or a binding, which stays as its type has it.
func (u *user) createCopy(obj client.Object, asks *request, manager string) {
	obj.SetUID(uuid.NewUUID())
	obj.SetCreationTimestamp(metav1.NewTime(u.cluster.now))
	wrote(obj, manager)

	if !asks.dryRun {
		kept, _ := obj.DeepCopyObject().(client.Object) // A copy has the type of its original.
		u.cluster.set(asks.key, kept)
		obj.SetResourceVersion(kept.GetResourceVersion())
	}
}

// Delete deletes an object.
func (u *user) Delete(_ context.Context, obj client.Object, options ...client.DeleteOption) error {
	u.mu.Lock()
	defer u.mu.Unlock()

	o := &client.DeleteOptions{}
	o.ApplyOptions(options)

	gvk, err := u.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}

	key := Key{gvk.GroupKind(), client.ObjectKeyFromObject(obj)}
	if err := u.mayAsk(&request{verb: "delete", named: true, key: key, gvk: gvk, dryRun: len(o.DryRun) > 0}); err != nil {
		return err
	}

	switch live := u.cluster.get(key); {
	case live == nil:
		return u.cluster.notFound(key, gvk)
	case !meets(live, o.Preconditions):
		return apierrors.NewConflict(u.cluster.resource(gvk), key.Name, errPrecondition)
	}

	if len(o.DryRun) == 0 {
		u.cluster.byAmbit = true
		u.cluster.delete(key)
		u.cluster.byAmbit = false
	}

	return nil
}

// meets says whether an object is the one that somebody wants to delete.
func meets(live client.Object, p *metav1.Preconditions) bool {
	return p == nil || (p.UID == nil || *p.UID == live.GetUID()) &&
		(p.ResourceVersion == nil || *p.ResourceVersion == live.GetResourceVersion())
}

var errPrecondition = errors.New("precondition failed: it is another one, or another version of it, by now")

// Patch changes an object.
func (u *user) Patch(_ context.Context, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
	o := &client.PatchOptions{}
	o.ApplyOptions(options)

	return u.patch(obj, patch, &patching{
		manager: o.FieldManager, force: o.Force != nil && *o.Force, dryRun: len(o.DryRun) > 0,
	})
}

// Status is what writes statuses, which are Ambit's own.
func (u *user) Status() client.SubResourceWriter { return u.SubResource(statusOf) }

// Update is not simulated: nothing that runs here asks for it, nor for Apply and DeleteAllOf.
func (*user) Update(context.Context, client.Object, ...client.UpdateOption) error {
	return errNotSimulated
}

// Apply is not simulated.
func (*user) Apply(context.Context, runtime.ApplyConfiguration, ...client.ApplyOption) error {
	return errNotSimulated
}

// DeleteAllOf is not simulated.
func (*user) DeleteAllOf(context.Context, client.Object, ...client.DeleteAllOfOption) error {
	return errNotSimulated
}

// SubResource is what evicts pods.
func (u *user) SubResource(name string) client.SubResourceClient { return &subresource{u, name} }

// The subresources that are written.
const (
	evictionOf = "eviction"
	statusOf   = "status"
)

// subresource refuses everything but to write a status, and to evict a pod.
type subresource struct {
	user *user
	name string
}

// Create ends a pod. No PodDisruptionBudget prevents that here: only the cluster can tell, at that time, whether one would.
func (s *subresource) Create(_ context.Context, pod, _ client.Object, _ ...client.SubResourceCreateOption) error {
	if s.name != evictionOf {
		return errNotSimulated
	}

	u := s.user
	u.mu.Lock()
	defer u.mu.Unlock()

	gvk := corev1.SchemeGroupVersion.WithKind("Pod")
	key := Key{gvk.GroupKind(), client.ObjectKeyFromObject(pod)}

	err := u.mayAsk(&request{verb: toCreate, named: true, subresource: evictionOf, gvk: gvk, key: key})

	switch {
	case err != nil:
	case u.cluster.get(key) == nil:
		err = u.cluster.notFound(key, gvk)
	default:
		u.cluster.delete(key)
	}

	return err
}

// Patch changes a status.
func (s *subresource) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	if s.name != statusOf {
		return errNotSimulated
	}

	return s.user.patch(obj, patch, &patching{status: true})
}

// Get is not simulated, and nor are Update and Apply.
func (*subresource) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return errNotSimulated
}

// Update is not simulated.
func (*subresource) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return errNotSimulated
}

// Apply is not simulated.
func (*subresource) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errNotSimulated
}
