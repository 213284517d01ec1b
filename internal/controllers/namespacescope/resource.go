package namespacescope

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// resource is a scope as its author wrote it, of whichever kind.
type resource struct {
	client.Object

	// status is part of Object; what is set here is set there.
	status *operatorv1.NamespaceScopeStatus
	// spec is what its author wrote.
	spec  any
	owner scope.Owner
	// leftOut says that it is over the limit of its namespace, and counts as having no members.
	leftOut bool
	// excess says that it is left out because there are too many.
	excess bool
	// contested says that it could not be held because it had just been changed.
	contested bool
	// place is among the scopes of its namespace, the smallest first; zero where that is not known.
	place int
	// compile says what the resource means.
	compile func() scope.Scope
}

// before returns a copy to compare with later.
func (r *resource) before() client.Object {
	before, _ := r.DeepCopyObject().(client.Object) // A copy has the type of its original.

	return before
}

func (r *resource) isDeleted() bool { return r.GetDeletionTimestamp() != nil }

func objects(resources []resource) []client.Object {
	return collect.Map(resources, func(r resource) client.Object { return r.Object })
}

// Kinds returns an empty object of each kind that is reconciled here.
func Kinds() []client.Object {
	return []client.Object{&operatorv1.NamespaceScope{}, &namespacescopev1alpha1.NamespaceScope{}}
}

// HasScope says whether a namespace has a scope of any kind.
func HasScope(ctx context.Context, c client.Reader, namespace string) (bool, error) {
	found, err := list(ctx, c, namespace, &changes.Written{})

	return len(found) > 0, err
}

// HasWork says whether a namespace has a scope that is not over.
func HasWork(ctx context.Context, c client.Reader, namespace string) (bool, error) {
	found, err := list(ctx, c, namespace, &changes.Written{})

	return slices.ContainsFunc(found, func(r resource) bool { return !r.isOver() }), err
}

// isOver says whether a scope is being deleted, and Ambit has nothing to do for it any more. Somebody else's finalizer may keep
// it.
func (r *resource) isOver() bool {
	return r.GetDeletionTimestamp() != nil && !controllerutil.ContainsFinalizer(r, operatorv1.Finalizer)
}

// list returns all scopes of a namespace, as copies that may be changed, none of them older than what was written last.
func list(ctx context.Context, c client.Reader, namespace string, written *changes.Written) ([]resource, error) {
	var (
		now    operatorv1.NamespaceScopeList
		before namespacescopev1alpha1.NamespaceScopeList
		cached []client.Object
		out    []resource
	)

	for _, l := range []client.ObjectList{&now, &before} {
		if err := c.List(ctx, l, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing the NamespaceScopes of namespace %s: %w", namespace, err)
		}
	}

	for i := range now.Items {
		nss := changes.Newest(written, &now.Items[i]).DeepCopy()
		cached = append(cached, &now.Items[i])
		out = append(out, resource{
			Object: nss, status: &nss.Status, spec: &nss.Spec, owner: compile.OwnerOf(nss),
			compile: func() scope.Scope { return compile.NamespaceScope(nss) },
		})
	}

	for i := range before.Items {
		nss := changes.Newest(written, &before.Items[i]).DeepCopy()
		cached = append(cached, &before.Items[i])
		out = append(out, resource{
			Object: nss, status: &nss.Status, spec: &nss.Spec, owner: compile.LegacyOwner(nss),
			compile: func() scope.Scope { return compile.LegacyNamespaceScope(nss) },
		})
	}

	written.Keep(namespace, cached)

	return out, nil
}
