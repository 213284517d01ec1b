package narrow

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/rights"
)

// goesOn tells of ClusterRoleBindings of the cluster that the output does not have, and by which accounts go on holding in the
// whole cluster what is narrowed: those of a version with other names, or of a narrowing that kept more.
func (r *run) goesOn() {
	if len(r.served) == 0 {
		return
	}

	all, known := r.everywhereThere()
	if !known {
		r.report.notef("ClusterRoleBindings of the cluster could not be read: the accounts may hold more by those that are not in " +
			"the input")
	}

	for _, b := range all {
		if r.identities[identity(kindClusterRoleBinding, "", b.Name)] != nil {
			continue // It was made.
		}

		for _, s := range r.served {
			if b.isCopiedFor([]*served{s}) {
				r.goesOnBy(b, s)
			}
		}
	}
}

// goesOnBy is about one binding and one account.
func (r *run) goesOnBy(b *binding, s *served) {
	rules, _ := r.rulesOf(b.roleRef.Name, r.Options)

	if !slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		part := r.Kinds.Sort(&rule, r.Keep)

		return !rights.Covers(part.Kept, part.Namespaced)
	}) {
		return
	}

	s.before = append(s.before, rules...)
	s.after = append(s.after, rules...)
	r.report.stays = true
	r.report.warnf("%s of the cluster is not in the input, and by ClusterRole %s goes on giving %s in the whole cluster what has "+
		"an effect in namespaces. Narrow it by --from %s, or if nobody needs it: %s", b.doc, printable.Name(b.roleRef.Name), title(s),
		printable.Word(s.Namespace+"/"+s.Name), printable.Deletion("clusterrolebinding", "", b.Name))
}
