package narrow

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// liveBindings are bindings of the cluster that the input does not have, and known says whether they could be read.
type liveBindings struct {
	all   []*binding
	known bool
}

// roleBindings are those of the input, and those of the cluster that the input does not have; known says whether these could be
// read. What Ambit made there comes and goes with its scopes, so nothing that lasts is made from it.
func (r *run) roleBindings() (all []*binding, known bool) {
	if r.RoleBindings == nil {
		return r.bindings, true
	}

	if r.live == nil {
		there, known := r.RoleBindings()
		r.live = r.notOfInput(kindRoleBinding, slices.DeleteFunc(slices.Clone(there), func(b rbacv1.RoleBinding) bool {
			return b.Labels[scope.LabelManagedBy] == scope.ManagedBy
		}))
		r.live.known = known
	}

	return slices.Concat(r.bindings, r.live.all), r.live.known
}

// everywhereThere are the ClusterRoleBindings of the cluster that the input does not have, and whether they could be read.
func (r *run) everywhereThere() (all []*binding, known bool) {
	if r.Everywhere == nil {
		return nil, true
	}

	if r.liveEverywhere == nil {
		there, known := r.Everywhere()
		r.liveEverywhere = r.notOfInput(kindClusterRoleBinding, there)
		r.liveEverywhere.known = known
	}

	return r.liveEverywhere.all, r.liveEverywhere.known
}

// notOfInput are those bindings of the cluster that the input does not have.
func (r *run) notOfInput(kind string, there []rbacv1.RoleBinding) *liveBindings {
	out := &liveBindings{}

	for i := range there {
		b := &there[i]
		if r.identities[identity(kind, b.Namespace, b.Name)] == nil {
			out.all = append(out.all, &binding{
				ObjectMeta: b.ObjectMeta, roleRef: b.RoleRef, subjects: b.Subjects, live: true,
				doc: &Document{Kind: kind, Namespace: b.Namespace, Name: b.Name},
			})
		}
	}

	return out
}
