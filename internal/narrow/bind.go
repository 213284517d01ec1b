package narrow

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/rights"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// narrowBinding rewrites one ClusterRoleBinding.
func (r *run) narrowBinding(b *binding) error {
	var narrowed, others []rbacv1.Subject

	for i := range b.subjects {
		if r.isNarrowed(&b.subjects[i]) {
			if s := scope.Holder(&b.subjects[i]); !slices.Contains(narrowed, s) {
				narrowed = append(narrowed, s)
			}
		} else {
			others = append(others, b.subjects[i])
		}
	}

	if len(narrowed) == 0 {
		return nil
	}

	s := r.sorted[b.roleRef.Name]
	if s == nil {
		r.report.unknownRole(b)

		return nil
	}

	s.bound = true

	for i := range narrowed {
		of := r.serve(Account{Namespace: narrowed[i].Namespace, Name: narrowed[i].Name})
		of.before = append(of.before, s.rules...)
		of.after = append(of.after, s.Cluster...)
		of.kept = append(of.kept, s.Kept...)
		of.namespaced = append(of.namespaced, s.Namespaced...)
		of.bindings = append(of.bindings, b.Name)
	}

	if len(s.Namespaced) == 0 {
		if s.open {
			r.report.openRole(b)
		}

		return nil // What it gives has no effect in a namespace, or is kept.
	}

	r.report.sorted(s)

	if err := r.bindRest(b, s, narrowed); err != nil {
		return err
	}

	if err := b.leave(others); err != nil {
		return err
	}

	if len(others) == 0 {
		r.report.LeftOut = append(r.report.LeftOut, "clusterrolebinding "+b.Name)
	}

	return r.bindInNamespaces(b, s, narrowed)
}

// leave keeps a binding for its other subjects; without any, the output leaves it out.
func (b *binding) leave(others []rbacv1.Subject) error {
	if len(others) == 0 {
		b.doc.dropped = true

		return nil
	}

	return b.doc.replace("subjects", others)
}

const suffixCluster, suffixNamespaced = "-cluster-scoped", "-namespaced"

// bindRest binds what has an effect in the whole cluster only.
func (r *run) bindRest(b *binding, s *sortedRole, subjects []rbacv1.Subject) error {
	if len(s.Cluster) == 0 {
		return nil
	}

	role, from := r.restOf(s, subjects), kindClusterRoleBinding+"/"+b.Name
	name := r.freeName(kindClusterRoleBinding, "", b.Name+suffixCluster, from, suffixCluster, nil)

	of := &rbacv1.ClusterRoleBinding{
		TypeMeta: typeOf(kindClusterRoleBinding), ObjectMeta: metaFrom(&b.ObjectMeta, "", name, from),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kindClusterRole, Name: role}, Subjects: subjects,
	}

	return r.follow(b.doc, of)
}

// restOf is the name of the ClusterRole that has what a ClusterRole gives in the whole cluster only.
func (r *run) restOf(s *sortedRole, subjects []rbacv1.Subject) string {
	switch {
	case s.inPlace:
		return s.name
	case s.rest == "":
		s.rest = r.freeName(kindClusterRole, "", s.name+suffixCluster, kindClusterRole+"/"+s.name, suffixCluster, subjects)
	}

	return s.rest
}

// bindInNamespaces gives the rest in the namespaces of the accounts, from where a scope projects it into its members.
func (r *run) bindInNamespaces(b *binding, s *sortedRole, subjects []rbacv1.Subject) error {
	if r.As == AsTemplate {
		return nil // The template has it.
	}

	byNamespace := map[string][]rbacv1.Subject{}
	for _, of := range subjects {
		byNamespace[of.Namespace] = append(byNamespace[of.Namespace], of)
	}

	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		role, err := r.roleIn(namespace, s, subjects)
		if err != nil {
			return err
		}

		from := kindClusterRoleBinding + "/" + b.Name
		name := r.freeName(kindRoleBinding, namespace, b.Name, from, suffixNamespaced, nil)

		if err := r.add(&rbacv1.RoleBinding{
			TypeMeta: typeOf(kindRoleBinding), ObjectMeta: metaFrom(&b.ObjectMeta, namespace, name, from),
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kindRole, Name: role}, Subjects: byNamespace[namespace],
		}); err != nil {
			return err
		}
	}

	return nil
}

// roleIn makes the Role of a namespace, once.
func (r *run) roleIn(namespace string, s *sortedRole, subjects []rbacv1.Subject) (string, error) {
	key := namespace + "/" + s.name
	if name, done := r.roleDone[key]; done {
		return name, nil
	}

	name := r.freeName(kindRole, namespace, s.name, kindClusterRole+"/"+s.name, suffixNamespaced, subjects)
	r.roleDone[key] = name

	return name, r.add(&rbacv1.Role{TypeMeta: typeOf(kindRole), ObjectMeta: r.metaOfPart(s, namespace, name), Rules: s.Namespaced})
}

// metaOfPart is the metadata of a part of a ClusterRole.
func (r *run) metaOfPart(s *sortedRole, namespace, name string) metav1.ObjectMeta {
	of := &metav1.ObjectMeta{}
	if there := r.clusterRoles[s.name]; there != nil {
		of = &there.ObjectMeta
	}

	return metaFrom(of, namespace, name, kindClusterRole+"/"+s.name)
}

// rewriteRoles leaves in ClusterRoles what has an effect in the whole cluster only.
func (r *run) rewriteRoles() error {
	for _, name := range slices.Sorted(maps.Keys(r.sorted)) {
		s := r.sorted[name]
		if len(s.Namespaced) == 0 || !s.bound {
			continue
		}

		of := r.clusterRoles[name]

		switch {
		case s.inPlace && len(s.Cluster) == 0:
			of.doc.dropped = true
		case s.inPlace:
			if err := of.doc.replace("rules", s.Cluster); err != nil {
				return err
			}
		case len(s.Cluster) > 0:
			if err := r.addRest(s, of); err != nil {
				return err
			}
		}
	}

	return nil
}

// addRest makes a ClusterRole for the rest, beside one that others use as it is.
func (r *run) addRest(s *sortedRole, of *clusterRole) error {
	rest := &rbacv1.ClusterRole{
		TypeMeta: typeOf(kindClusterRole), ObjectMeta: r.metaOfPart(s, "", r.restOf(s, nil)), Rules: s.Cluster,
	}

	if of == nil {
		return r.add(rest)
	}

	// Who takes the rules of the one by its labels would take these as well, and keep them when that one gives less.
	if r.isTakenByLabels(rest) {
		rest.Labels = nil
	}

	return r.follow(of.doc, rest)
}

// staying is about the bindings of the whole cluster that stay for others. By a group, an account goes on holding what they give.
func (r *run) staying() {
	members := r.byGroup()

	for _, b := range r.everywhere {
		for i := range b.subjects {
			s := &b.subjects[i]
			if r.isNarrowed(s) {
				continue
			}

			var holders []*served
			if s.Kind == rbacv1.GroupKind {
				holders = members[s.Name]
			}

			if len(holders) == 0 || !r.stays(b, s, holders) {
				r.report.notef("ClusterRoleBinding %s: %s %s is no operator of the input, and is left as it is",
					printable.Name(b.Name), s.Kind, printable.Name(strings.TrimPrefix(s.Namespace+"/"+s.Name, "/")))
			}
		}
	}
}

// stays adds to what accounts hold what a binding goes on giving them by a group, and says whether that was worth a warning.
// Everybody is in the group of everybody, and what is kept was meant to stay.
func (r *run) stays(b *binding, s *rbacv1.Subject, holders []*served) bool {
	role := r.sorted[b.roleRef.Name]
	if role == nil {
		if s.Name != scope.GroupAuthenticated {
			r.report.unknownRole(b)
		}

		return s.Name != scope.GroupAuthenticated
	}

	for _, a := range holders {
		a.before = append(a.before, role.rules...)
		a.after = append(a.after, role.rules...)
	}

	if s.Name == scope.GroupAuthenticated || !role.open && rights.Covers(role.Kept, role.Namespaced) {
		return false
	}

	r.report.heldByGroup(b, s, holders)

	return true
}

// byGroup are the accounts that may be meant by a group: those that are served, and others that were named, or of the input.
func (r *run) byGroup() map[string][]*served {
	all, known := map[string][]*served{}, map[Account]bool{}
	add := func(s *served) {
		if known[s.Account] {
			return
		}

		known[s.Account] = true
		for _, name := range s.Groups() {
			all[name] = append(all[name], s)
		}
	}

	for _, s := range r.served {
		add(s)
	}

	named := r.Accounts
	if len(named) == 0 {
		named = slices.AppendSeq(slices.Collect(maps.Keys(r.accounts)), maps.Keys(r.workloads))
	}

	for _, a := range named {
		add(&served{Account: a})
	}

	return all
}
