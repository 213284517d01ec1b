package simulation

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// copyist is a user who writes Roles and bindings as their types have them, and everything else as JSON.
type copyist struct {
	*user

	scopes *Scopes
}

var _ client.Client = (*copyist)(nil)

// Get reads an object.
func (u *copyist) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	at, is := copyKeyOf(obj)
	if !is {
		return u.user.Get(ctx, key, obj, options...)
	}

	at.Namespace, at.Name = key.Namespace, key.Name

	live := u.scopes.copy(at)
	if live == nil {
		return u.cluster.notFound(u.keyOf(at), gvkOf(at))
	}

	fill(obj, live)

	return nil
}

// Create makes an object, or answers a review.
func (u *copyist) Create(_ context.Context, obj client.Object, options ...client.CreateOption) error {
	at, is := copyKeyOf(obj)
	if !is {
		return u.create(obj, options...)
	}

	o := &client.CreateOptions{}
	o.ApplyOptions(options)

	asks := u.asksFor("create", at, o.DryRun)
	asks.object = obj

	if err := u.allowed(asks); err != nil {
		return err
	}

	if u.scopes.copy(at) != nil {
		return apierrors.NewAlreadyExists(u.cluster.resource(asks.gvk), at.Name)
	}

	obj.SetUID(uuid.NewUUID())
	obj.SetCreationTimestamp(metav1.NewTime(u.cluster.now()))

	if !asks.dryRun {
		u.keepCopy(at, obj, o.FieldManager)
	}

	return nil
}

func (u *copyist) asksFor(verb string, at facts.ClusterKey, dryRun []string) *request {
	return &request{verb: verb, named: verb != "create", key: u.keyOf(at), gvk: gvkOf(at), dryRun: len(dryRun) > 0}
}

// keepCopy stores a version of an object, with who wrote it, and gives the caller what is stored.
func (u *copyist) keepCopy(at facts.ClusterKey, obj client.Object, manager string) {
	entries := obj.GetManagedFields()
	wrote := slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager })

	if !wrote && manager != "" {
		obj.SetManagedFields(append(slices.Clone(entries), metav1.ManagedFieldsEntry{
			Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate,
		}))
	}

	kept, _ := obj.DeepCopyObject().(client.Object) // A copy has the type of its original.
	u.scopes.put(at, kept)
	obj.SetResourceVersion(kept.GetResourceVersion())
}

// Delete deletes an object.
func (u *copyist) Delete(_ context.Context, obj client.Object, options ...client.DeleteOption) error {
	at, is := copyKeyOf(obj)
	if !is {
		return u.remove(obj, options...)
	}

	o := &client.DeleteOptions{}
	o.ApplyOptions(options)

	asks := u.asksFor("delete", at, o.DryRun)
	if err := u.allowed(asks); err != nil {
		return err
	}

	live := u.scopes.copy(at)

	switch {
	case live == nil:
		return u.cluster.notFound(asks.key, asks.gvk)
	case !meets(live, o.Preconditions):
		return apierrors.NewConflict(u.cluster.resource(asks.gvk), at.Name, errPrecondition)
	case asks.dryRun || live.GetDeletionTimestamp() != nil:
	case len(live.GetFinalizers()) == 0:
		u.scopes.put(at, nil)
	default:
		going, _ := live.DeepCopyObject().(client.Object) // A copy has the type of its original.
		now := metav1.NewTime(u.cluster.now())
		going.SetDeletionTimestamp(&now)
		u.keepCopy(at, going, "")
	}

	return nil
}

// Patch changes an object.
func (u *copyist) Patch(_ context.Context, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
	at, is := copyKeyOf(obj)
	if !is {
		return u.patchAs(obj, patch, options...)
	}

	o := &client.PatchOptions{}
	o.ApplyOptions(options)

	asks := u.asksFor("patch", at, o.DryRun)

	live := u.scopes.copy(at)
	if live == nil {
		return u.cluster.notFound(asks.key, asks.gvk)
	}

	same, err := u.patchCopy(obj, live, patch)
	if err != nil {
		return err
	}

	asks.object, asks.live = obj, live
	if err := u.allowed(asks); err != nil {
		return err
	}

	switch {
	case obj.GetResourceVersion() != live.GetResourceVersion():
		return apierrors.NewConflict(u.cluster.resource(asks.gvk), at.Name, errChanged)
	case same || asks.dryRun:
	case obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0:
		u.scopes.put(at, nil)
	default:
		u.keepCopy(at, obj, o.FieldManager)
	}

	return nil
}

// patchCopy fills in an object with what a patch makes of the live one, and says whether that is the same.
func (u *copyist) patchCopy(obj, live client.Object, patch client.Patch) (same bool, err error) {
	was, err := u.cluster.toJSON(live)
	if err != nil {
		return false, err
	}

	body, err := patch.Data(obj)
	if err != nil {
		return false, fmt.Errorf("reading the patch of %s: %w", obj.GetName(), err)
	}

	// Without the name of a manager, nobody keeps a record of the fields.
	now, err := patched(was, patch.Type(), body, &patching{})
	if err != nil {
		return false, err
	}

	return reflect.DeepEqual(was.Object, now.Object), fromJSON(now, obj)
}

// SubResource is what evicts pods.
func (u *copyist) SubResource(name string) client.SubResourceClient {
	if name != "eviction" {
		return notSimulated{}
	}

	return &evictions{copyist: u}
}

// evictions ends pods. No budget keeps it from that: whether one would is known at that time only.
type evictions struct {
	notSimulated

	copyist *copyist
}

// Create ends a pod.
func (e *evictions) Create(_ context.Context, pod, _ client.Object, _ ...client.SubResourceCreateOption) error {
	gvk, key := corev1.SchemeGroupVersion.WithKind("Pod"), client.ObjectKeyFromObject(pod)

	err := e.copyist.allowed(&request{
		verb: "create", named: true, subresource: "eviction", gvk: gvk, key: Key{gvk.GroupKind(), key},
	})
	if err == nil && !e.copyist.scopes.evict(key) {
		err = apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
	}

	return err
}

func (*copyist) keyOf(at facts.ClusterKey) Key {
	return named(gvkOf(at).GroupKind(), at.Namespace, at.Name)
}

func gvkOf(at facts.ClusterKey) schema.GroupVersionKind {
	return rbacv1.SchemeGroupVersion.WithKind(string(at.Kind))
}

// fill makes an object a copy of another one of its type.
func fill(obj, from client.Object) {
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(from.DeepCopyObject()).Elem())
}
