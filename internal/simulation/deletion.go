package simulation

import (
	"fmt"
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// delete deletes an object as the API server does, and then what belongs to it as the garbage collector does.
func (c *Cluster) delete(key Key) {
	obj := c.get(key)

	switch {
	case obj == nil:
	case len(obj.GetFinalizers()) == 0:
		c.remove(key)
	default:
		c.markDeleted(key, obj)
	}
}

func (c *Cluster) markDeleted(key Key, obj client.Object) {
	if obj.GetDeletionTimestamp() != nil {
		return
	}

	obj, _ = obj.DeepCopyObject().(client.Object) // A copy has the type of its original.
	now := metav1.NewTime(c.now)
	obj.SetDeletionTimestamp(&now)

	if obj.GetGeneration() > 0 {
		obj.SetGeneration(obj.GetGeneration() + 1)
	}

	c.set(key, obj)
}

// Delete deletes an object that somebody is about to delete. That counts as no change; what is deleted with it does. A
// namespace is terminating from then on: its objects of OLM's kinds are deleted, and nothing is said of the rest.
func (c *Cluster) Delete(obj client.Object) error {
	gvk, err := apiutil.GVKForObject(obj, c.scheme)
	if err != nil {
		return fmt.Errorf("deleting %s: %w", obj.GetName(), err)
	}

	key := Key{gvk.GroupKind(), client.ObjectKeyFromObject(obj)}
	if key.Kind != namespaceKind {
		c.delete(key)
		c.isNoChange(key)

		return nil
	}

	if live := c.get(key); live != nil {
		obj = live
	}

	c.markDeleted(key, obj)
	c.isNoChange(key)
	c.all(key.Name, func(key Key, _ client.Object) {
		if key.Kind.Group == olm.GroupName {
			c.delete(key)
		}
	})

	return nil
}

func (c *Cluster) remove(key Key) {
	gone := c.get(key)
	c.set(key, nil)

	if key.Kind.Group == rbacv1.GroupName && !read.IsOfAuthorization(gone) {
		return // No other RBAC object owns anything.
	}

	c.all(key.Namespace, func(other Key, obj client.Object) { c.release(other, obj, key, gone.GetUID()) })
}

// release takes an owner that is gone from an object, which is deleted with its last owner.
func (c *Cluster) release(key Key, obj client.Object, owner Key, uid types.UID) {
	refs := obj.GetOwnerReferences()
	if len(refs) == 0 {
		return
	}

	// Which Deployment a pod belongs to is known although its ReplicaSet is not.
	by := read.ControllerOf(obj)
	isOf := by.Name == owner.Name && string(by.Kind) == owner.Kind.Kind && key.Namespace == owner.Namespace

	left := slices.DeleteFunc(slices.Clone(refs), func(r metav1.OwnerReference) bool {
		return uid != "" && r.UID == uid || isOf && r.Controller != nil && *r.Controller
	})

	switch {
	case len(left) == len(refs):
	case len(left) == 0:
		c.collect(key, obj)
	default:
		obj, _ = obj.DeepCopyObject().(client.Object) // A copy has the type of its original.
		obj.SetOwnerReferences(left)
		c.set(key, obj)
	}
}

// collect deletes an object with the last of its owners. A copy that was made for a scope is noted, because no plan is about
// it, and so whoever looks on sees nothing of it.
func (c *Cluster) collect(key Key, obj client.Object) {
	c.delete(key)

	o, is := projected.From(obj)
	if of := scope.OwnerKey(o.Owner); is && isOfScopes(of) && c.get(key) == nil {
		c.collected[of] = append(c.collected[of], obj)
		delete(c.installed, key)
	}
}
