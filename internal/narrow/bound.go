package narrow

import (
	"maps"
	"slices"
	"strings"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/rights"
)

// beyondRoles is what the roles of a new version give to whoever is bound to them, by a binding that may be in none of the files,
// beyond those of the old one, or those of the cluster where the old one does not have them. To a role that is nowhere yet,
// nobody is bound, unless the old version or somebody in the cluster did so before it was there.
func beyondRoles(old, young *version, o *Options) ([]More, error) {
	var had, has []grant

	referred, there := old.referred(), sync.OnceValue(o.referredThere)
	isBound := func(kind, namespace, name string) bool {
		return referred[identity(kind, namespace, name)] || there()[identity(kind, namespace, name)]
	}

	for _, name := range young.names {
		to := rbacv1.Subject{Kind: kindClusterRole, Name: name}

		switch {
		case old.clusterRoles[name] != nil:
			had = append(had, old.grantOf(old.clusterRoles[name], o, to))
		case isKubernetes(name) || elsewhere(name, o) != nil:
			g := grant{subject: to, places: []place{{}}}
			g.rules, g.unknown = own(name, o)
			had = append(had, g)
		case !isBound(kindClusterRole, "", name):
			continue
		}

		has = append(has, young.grantOf(young.clusterRoles[name], o, to))
	}

	for _, key := range slices.Sorted(maps.Keys(young.roles)) {
		namespace, name, _ := strings.Cut(key, "/")
		g := grant{
			subject: rbacv1.Subject{Kind: kindRole, Namespace: namespace, Name: name}, places: []place{{namespace: namespace}},
			role: kindRole + " " + name, doc: young.roles[key].doc,
		}

		if rules, is := old.rulesOfRole(namespace, name, o); is || isKubernetesRole(namespace, name) {
			g.rules = rules
			had = append(had, g)
		} else if !isBound(kindRole, namespace, name) {
			continue
		}

		g.rules = young.roles[key].Rules
		has = append(has, g)
	}

	return beyondGrants(had, has)
}

// referred are the roles to which bindings refer. A version that leaves a binding out may not delete it.
func (in *input) referred() map[string]bool {
	out := map[string]bool{}
	for _, b := range slices.Concat(in.everywhere, in.bindings) {
		out[referredBy(b.Namespace, &b.roleRef)] = true
	}

	return out
}

// referredThere are those to which the bindings of the cluster refer that can be read.
func (o *Options) referredThere() map[string]bool {
	out := map[string]bool{}
	lists, _ := o.bindingsThere()

	for _, bindings := range lists {
		for i := range bindings {
			out[referredBy(bindings[i].Namespace, &bindings[i].RoleRef)] = true
		}
	}

	return out
}

// bindingsThere are the lists of bindings of the cluster, and whether all could be read.
func (o *Options) bindingsThere() (lists [][]rbacv1.RoleBinding, known bool) {
	known = true

	for _, list := range []func() ([]rbacv1.RoleBinding, bool){o.RoleBindings, o.Everywhere} {
		if list != nil {
			bindings, read := list()
			lists, known = append(lists, bindings), known && read
		}
	}

	return lists, known
}

func referredBy(namespace string, ref *rbacv1.RoleRef) string {
	if ref.Kind != kindRole {
		namespace = ""
	}

	return identity(ref.Kind, namespace, ref.Name)
}

// withoutSaid leaves out of some things what others say of the same rules of the same role.
func withoutSaid(all, others []More) []More {
	// Roles of two namespaces may have one name.
	roleOf := func(m *More) string {
		if strings.HasPrefix(m.Role, kindRole+" ") {
			return m.Namespace + "/" + m.Role
		}

		return m.Role
	}

	said := map[string][]*More{}
	for i := range others {
		said[roleOf(&others[i])] = append(said[roleOf(&others[i])], &others[i])
	}

	return slices.DeleteFunc(all, func(m More) bool {
		return slices.ContainsFunc(said[roleOf(&m)], func(other *More) bool {
			return other.Unknown || !m.Unknown && rights.Covers(other.Rules, m.Rules)
		})
	})
}
