package authorize

import (
	"context"
	"fmt"
	"slices"

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
// What goes with a grant that is gone is not among them, nor are the grants that stay, which were named, and what goes with
// those.
func (w *session) kept(ctx context.Context, gone, stay []grantedObject) ([]*rbacv1.RoleBinding, error) {
	grants, named := map[metav1.OwnerReference]struct{}{}, namedOf(stay)
	for _, g := range slices.Concat(gone, named) {
		grants[asOwner(g.kind, g.GetName(), g.GetUID())] = struct{}{}
	}

	var out []*rbacv1.RoleBinding

	err := w.rbac(ctx, w.namespace, func(_ string, obj client.Object) {
		b, is := obj.(*rbacv1.RoleBinding)
		isNamed := slices.ContainsFunc(named, func(g grantedObject) bool { return g.GetUID() == obj.GetUID() })

		if is && !isNamed && !goesWith(b, grants) && slices.ContainsFunc(b.Subjects, w.isOfOthers) {
			out = append(out, b)
		}
	})

	return out, err
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
func goesWith(obj metav1.Object, owners map[metav1.OwnerReference]struct{}) bool {
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
