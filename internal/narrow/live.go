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
// read.
func (r *run) roleBindings() (all []*binding, known bool) {
	there := r.notOfInput(kindRoleBinding, r.RoleBindings)

	return slices.Concat(r.bindings, there.all), there.known
}

// everywhereThere are the ClusterRoleBindings of the cluster that the input does not have, and whether they could be read.
func (r *run) everywhereThere() (all []*binding, known bool) {
	there := r.notOfInput(kindClusterRoleBinding, r.Everywhere)

	return there.all, there.known
}

// notOfInput are those bindings of a kind that the cluster has and the input does not, as they were when they were first asked
// for. Without a cluster there are none. RoleBindings that Ambit made there come and go with its scopes, so nothing that lasts is
// made from them.
func (r *run) notOfInput(kind string, list func() ([]rbacv1.RoleBinding, bool)) *liveBindings {
	if of := r.live[kind]; of != nil {
		return of
	}

	out := &liveBindings{known: true}
	r.live[kind] = out

	if list == nil {
		return out
	}

	there, known := list()
	out.known = known

	for i := range there {
		b := &there[i]
		if r.identities[identity(kind, b.Namespace, b.Name)] != nil ||
			kind == kindRoleBinding && b.Labels[scope.LabelManagedBy] == scope.ManagedBy {
			continue
		}

		out.all = append(out.all, &binding{
			ObjectMeta: b.ObjectMeta, roleRef: b.RoleRef, subjects: b.Subjects, live: true,
			doc: &Document{Kind: kind, Namespace: b.Namespace, Name: b.Name},
		})
	}

	return out
}
