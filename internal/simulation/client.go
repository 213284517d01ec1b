package simulation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// errNotSimulated is the answer to requests that none of what runs here makes.
var errNotSimulated = errors.New("this request is not simulated")

// user reads and writes the cluster as somebody.
type user struct {
	*Simulation

	// name is that of a user whom the API server asks for their rights; empty for Ambit itself.
	name string
	// actor is who acts as the user, where that takes a right of its own; otherwise empty.
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

	live, err := u.cluster.get(name)
	if err != nil {
		return err
	}

	if live == nil {
		return u.cluster.notFound(name, gvk)
	}

	return fromJSON(live, obj)
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

	gvk.Kind = gvk.Kind[:len(gvk.Kind)-len("List")]

	var items []runtime.Object

	u.cluster.each(gvk.GroupKind(), o.Namespace, func(live *unstructured.Unstructured) {
		if err != nil || !u.isSelected(o, live) {
			return
		}

		var item runtime.Object
		if item, err = u.item(list, gvk, live); err == nil {
			items = append(items, item)
		}
	})

	if err != nil {
		return err
	}

	return meta.SetList(list, items) //nolint:wrapcheck // It fails for what is no list.
}

func (u *user) item(list client.ObjectList, gvk schema.GroupVersionKind, live *unstructured.Unstructured) (client.Object, error) {
	if _, is := list.(*unstructured.UnstructuredList); is {
		return live.DeepCopy(), nil
	}

	made, err := u.cluster.scheme.New(gvk)
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", gvk.Kind, err)
	}

	obj, _ := made.(client.Object)

	return obj, fromJSON(live, obj)
}

func (u *user) isSelected(o *client.ListOptions, live *unstructured.Unstructured) bool {
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
	return u.create(obj, options...)
}

func (u *user) create(obj client.Object, options ...client.CreateOption) error {
	u.mu.Lock()
	defer u.mu.Unlock()

	if review, is := obj.(*authorizationv1.SelfSubjectRulesReview); is {
		return u.review(review)
	}

	o := &client.CreateOptions{}
	o.ApplyOptions(options)

	made, err := u.cluster.toJSON(obj)
	if err != nil {
		return err
	}

	gvk, key := made.GroupVersionKind(), keyOf(made)
	if err := u.allowed(&request{verb: "create", key: key, gvk: gvk, object: made, dryRun: len(o.DryRun) > 0}); err != nil {
		return err
	}

	switch {
	case key.Namespace != "" && !u.cluster.exists(key.Namespace):
		return errNoNamespace(key.Namespace)
	case u.cluster.objects[key] != nil:
		return apierrors.NewAlreadyExists(u.cluster.resource(gvk), key.Name)
	}

	delete(made.Object, "status")

	if made, err = note(empty(gvk), made, o.FieldManager); err != nil {
		return err
	}

	if len(o.DryRun) == 0 {
		u.cluster.insert(made)
		made = u.cluster.objects[key]
	}

	return fromJSON(made, obj)
}

// Delete deletes an object.
func (u *user) Delete(_ context.Context, obj client.Object, options ...client.DeleteOption) error {
	return u.remove(obj, options...)
}

func (u *user) remove(obj client.Object, options ...client.DeleteOption) error {
	u.mu.Lock()
	defer u.mu.Unlock()

	o := &client.DeleteOptions{}
	o.ApplyOptions(options)

	gvk, err := u.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}

	key := Key{gvk.GroupKind(), client.ObjectKeyFromObject(obj)}
	if err := u.allowed(&request{verb: "delete", named: true, key: key, gvk: gvk, dryRun: len(o.DryRun) > 0}); err != nil {
		return err
	}

	live, err := u.cluster.get(key)

	switch {
	case err != nil:
		return err
	case live == nil:
		return u.cluster.notFound(key, gvk)
	case !meets(live, o.Preconditions):
		return apierrors.NewConflict(u.cluster.resource(gvk), key.Name, errPrecondition)
	}

	if len(o.DryRun) == 0 {
		u.cluster.delete(key)
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
	return u.patchAs(obj, patch, options...)
}

func (u *user) patchAs(obj client.Object, patch client.Patch, options ...client.PatchOption) error {
	o := &client.PatchOptions{}
	o.ApplyOptions(options)

	return u.patch(obj, patch, &patching{
		manager: o.FieldManager, force: o.Force != nil && *o.Force, dryRun: len(o.DryRun) > 0,
	})
}

// Status is what writes statuses.
func (u *user) Status() client.SubResourceWriter { return &statuses{notSimulated{}, u} }

// Update is not simulated, like what follows: nothing that runs here asks for it.
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

// SubResource is not simulated.
func (*user) SubResource(string) client.SubResourceClient { return notSimulated{} }

// statuses writes statuses, which are Ambit's own.
type statuses struct {
	notSimulated

	user *user
}

// Patch changes a status.
func (s *statuses) Patch(_ context.Context, obj client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	return s.user.patch(obj, patch, &patching{status: true})
}

// notSimulated refuses everything.
type notSimulated struct{}

// Get refuses.
func (notSimulated) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return errNotSimulated
}

// Create refuses.
func (notSimulated) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return errNotSimulated
}

// Update refuses.
func (notSimulated) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return errNotSimulated
}

// Patch refuses.
func (notSimulated) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return errNotSimulated
}

// Apply refuses.
func (notSimulated) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return errNotSimulated
}
