package authorize

import (
	"context"
	"fmt"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// maxKept is how many of the bindings that stay are named one by one.
const maxKept = 10

// kept are the bindings of the namespace that still give accounts of the other one something. Whoever holds a grant may
// write roles and rolebindings: take the labels off the grant, by which it is known, or bind what it holds under any name.
// The grants that stay are not among them, which were named, nor what goes with those. What goes with a grant that is gone has
// some time for that: by such a binding, its holder may still take off its owners, and have garbage collection do other things.
func (w *session) kept(ctx context.Context, gone, stay []grantedObject, timeout time.Duration) ([]*rbacv1.RoleBinding, error) {
	named := namedOf(stay)

	for deadline := time.Now().Add(timeout); ; {
		kept, going, err := w.keptNow(ctx, gone, named)
		if err != nil || len(going) == 0 || !time.Now().Before(deadline) {
			return append(kept, going...), err
		}

		if err := pause(ctx, "what goes with the grant"); err != nil {
			return nil, err
		}
	}
}

// keptNow tells what stays from what goes with the grants that are gone. What a grant that stays owns, too, stays with that.
func (w *session) keptNow(ctx context.Context, gone, named []grantedObject) (kept, going []*rbacv1.RoleBinding, err error) {
	stays := map[metav1.OwnerReference]bool{}

	for i, g := range slices.Concat(gone, named) {
		stays[asOwner(g.kind, g.GetName(), g.GetUID())] = i >= len(gone)
	}

	isOfOneThatStays := func(r metav1.OwnerReference) bool { return stays[asOwner(r.Kind, r.Name, r.UID)] }

	err = w.rbac(ctx, w.namespace, func(_ string, obj client.Object) {
		b, is := obj.(*rbacv1.RoleBinding)
		isNamed := slices.ContainsFunc(named, func(g grantedObject) bool { return g.GetUID() == obj.GetUID() })

		switch {
		case !is || isNamed || !slices.ContainsFunc(b.Subjects, w.isOfOthers):
		case !goesWith(b, stays):
			kept = append(kept, b)
		case !slices.ContainsFunc(b.OwnerReferences, isOfOneThatStays):
			going = append(going, b)
		}
	})

	return kept, going, err
}

// namedOf are those of the grants that stay which were named: the Roles, and with them what binds these. Whoever holds a grant
// may give its labels to a binding of anything.
func namedOf(stay []grantedObject) []grantedObject {
	return collect.Filter(stay, func(g grantedObject) bool {
		b, is := g.Object.(*rbacv1.RoleBinding)

		return !is || b.RoleRef.Kind == roleKind && slices.ContainsFunc(stay, func(of grantedObject) bool {
			return of.kind == roleKind && of.GetName() == b.RoleRef.Name
		})
	})
}

// goesWith says whether garbage collection removes an object once these are gone. Another owner keeps it, and so does a
// finalizer, or a reference with the UID of one of these that says another kind: what cannot be looked up is never found to be
// gone.
func goesWith(obj metav1.Object, owners map[metav1.OwnerReference]bool) bool {
	refs := obj.GetOwnerReferences()

	return len(refs) > 0 && len(obj.GetFinalizers()) == 0 && !slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool {
		_, is := owners[asOwner(r.Kind, r.Name, r.UID)]

		return !is || r.APIVersion != rbacv1.SchemeGroupVersion.String()
	})
}

// asOwner is what an owner is known by, of the kinds of RBAC.
func asOwner(kind, name string, uid types.UID) metav1.OwnerReference {
	return metav1.OwnerReference{Kind: kind, Name: name, UID: uid}
}

// isOfOthers says whether a subject means accounts of the other namespace.
func (w *session) isOfOthers(s rbacv1.Subject) bool {
	holder := scope.Holder(&s)

	return holder.Kind == rbacv1.ServiceAccountKind && holder.Namespace == w.to ||
		holder.Kind == rbacv1.GroupKind && slices.Contains(explain.Account{Namespace: w.to}.Groups(), holder.Name)
}

// showKept names what stays, and how each is removed.
func (o *RevokeOptions) showKept(kept []*rbacv1.RoleBinding) error {
	notes := collect.Map(kept[:min(len(kept), maxKept)], func(b *rbacv1.RoleBinding) string {
		return fmt.Sprintf("RoleBinding %s in namespace %s stays, and gives accounts of %s what %s %s allows; if it "+
			"should not: %s", printable.Name(b.Name), o.Namespace, o.To, b.RoleRef.Kind, printable.Name(b.RoleRef.Name),
			printable.Deletion("rolebinding", o.Namespace, b.Name))
	})

	if more := len(kept) - maxKept; more > 0 {
		notes = append(notes,
			fmt.Sprintf("%d more RoleBindings in namespace %s give accounts of %s something", more, o.Namespace, o.To))
	}

	return o.notes(notes)
}
