package read

import (
	"maps"
	"reflect"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	// maxGrants is how many bindings are looked at for one operator namespace. The others are counted.
	maxGrants = 100
	// maxClusterGrants is the same for templates and instances, which have no namespace.
	maxClusterGrants = 1000
	// maxBound is how many subjects are looked at because of one change. Everything else waits for that.
	maxBound = 10_000
	// maxSubjects is the Weight of the subjects of ClusterRoleBindings that are remembered, 40,000 in the same namespaces or 10,000
	// in different ones: the largest bindings are left out first. What finds them takes up to four times as much.
	maxSubjects = 4 << 20
	// fewSubjects is the Weight of a binding that counts for nothing there.
	fewSubjects = 1 << 10
)

// grant is whom a ClusterRoleBinding binds, and the ClusterRole that it refers to.
type grant struct {
	role string
	// owner is the scope that Ambit made it for; empty for all others.
	owner    string
	subjects []rbacv1.Subject
	// unknown says that the subjects are left out.
	unknown bool
}

// weight is what a binding counts for. There is never room for one that was left out while it was listed.
func (g *grant) weight() int {
	switch {
	case g == nil:
		return 0
	case g.unknown:
		return maxSubjects + 1
	default:
		return Weight(g)
	}
}

// ClusterGrant is a ClusterRoleBinding, with those of its subjects that were asked for and what its ClusterRole says.
type ClusterGrant struct {
	facts.ClusterBinding

	Rules []rbacv1.PolicyRule
}

// Asked says whose ClusterRoleBindings are asked for: those of service accounts of namespaces, by name or by group, and of users
// and groups.
type Asked struct {
	Namespaces []string
	Others     []rbacv1.Subject
}

// grantKey is the key under which the bindings of a subject are found.
type grantKey struct{ kind, name string }

// keys are those under which the bindings are found that are asked for.
func (a *Asked) keys() map[grantKey]struct{} {
	out := map[grantKey]struct{}{}

	for _, namespace := range a.Namespaces {
		out[grantKey{rbacv1.ServiceAccountKind, namespace}] = struct{}{}
	}

	if len(a.Namespaces) > 0 {
		for _, group := range scope.GroupsOfAllAccounts() {
			out[grantKey{rbacv1.GroupKind, group}] = struct{}{}
		}
	}

	for i := range a.Others {
		out[keyOfSubject(&a.Others[i])] = struct{}{}
	}

	return out
}

// keyOfSubject is the key under which the bindings of a subject are found. The accounts of a namespace share one.
func keyOfSubject(s *rbacv1.Subject) grantKey {
	if s.Kind == rbacv1.ServiceAccountKind {
		return grantKey{s.Kind, s.Namespace}
	}

	if namespace, is := scope.NamespaceOfGroup(s.Name); is && s.Kind == rbacv1.GroupKind {
		return grantKey{rbacv1.ServiceAccountKind, namespace}
	}

	return grantKey{s.Kind, s.Name}
}

// grants finds ClusterRoleBindings by whom they bind, and by the ClusterRole that they refer to. What is kept of one is little:
// there may be any number, and few of them are about the accounts of an operator namespace.
type grants struct {
	by namesBy[grantKey]
	of namesBy[string]
	// cluster are the keys that were last asked for on behalf of templates and instances.
	cluster map[grantKey]struct{}
	// large are the bindings of which it is known whom they bind, but for small ones.
	large *allowance
}

// convertGrant reads whom a binding binds.
func convertGrant(obj client.Object, made bool) *grant {
	b, ok := obj.(*rbacv1.ClusterRoleBinding)
	if !ok || len(b.Subjects) == 0 {
		return nil
	}

	g := &grant{role: shared(b.RoleRef.Name), subjects: make([]rbacv1.Subject, 0, len(b.Subjects))}
	if made {
		g.owner = shared(b.Annotations[scope.AnnotationOwner])
	}

	for i := range b.Subjects {
		s := scope.Holder(&b.Subjects[i])
		s.Kind, s.Namespace, s.Name = shared(s.Kind), shared(s.Namespace), shared(s.Name)
		g.subjects = append(g.subjects, s)
	}

	return g
}

// index replaces a binding by another version of it; nil stands for none.
func (g *grants) index(name string, before, after *grant) {
	if before != nil {
		g.of.take(before.role, name)

		for i := range before.subjects {
			g.by.take(keyOfSubject(&before.subjects[i]), name)
		}
	}

	if after != nil {
		g.of.put(after.role, name)

		for i := range after.subjects {
			g.by.put(keyOfSubject(&after.subjects[i]), name)
		}
	}
}

// namesBy are names by a key. None is empty.
type namesBy[K comparable] map[K]map[string]struct{}

func (n namesBy[K]) put(key K, name string) {
	if n[key] == nil {
		n[key] = map[string]struct{}{}
	}

	n[key][name] = struct{}{}
}

func (n namesBy[K]) take(key K, name string) {
	if delete(n[key], name); len(n[key]) == 0 {
		delete(n, key)
	}
}

func grantOf(r *clusterRecord) *grant {
	if r == nil {
		return nil
	}

	return r.grant
}

// clusterBindingChanged notes whom a ClusterRoleBinding binds, and asks for the plans to which that may matter.
func (s *Store) clusterBindingChanged(key types.NamespacedName, before, after *clusterRecord) {
	was, is := grantOf(before), grantOf(after)
	s.grants.index(key.Name, was, is)

	// Whoever may write ClusterRoleBindings decides how many they bind.
	s.grants.large.addUnlessSmall(key, is.weight(), fewSubjects, func() { s.leaveSubjects(key) })

	if s.waiting > 0 {
		return
	}

	// What else is written on a binding changes nothing for whomever it binds.
	if freed := after == nil && !before.made; freed || !reflect.DeepEqual(was, is) {
		of := s.boundBy(was, is)
		s.clusterPermissionsChanged(facts.ClusterPermissions{Freed: freed}, of)
		s.boundChanged(of)
	}
}

// leaveSubjects leaves out whom a ClusterRoleBinding binds.
func (s *Store) leaveSubjects(key types.NamespacedName) {
	row := s.clusterBindings.rows[key]
	before := row.record.grant
	row.record.lighten()
	s.grants.index(key.Name, before, row.record.grant)
	s.clusterBindings.rows[key] = row
}

// bound is whom ClusterRoleBindings bind, as far as that matters to somebody.
type bound struct {
	// accountsOf are namespaces whose service accounts are among them, and everybody says that all accounts are.
	accountsOf map[string]struct{}
	everybody  bool
	// self says that Ambit may be among them, and templates that somebody is about whom templates and instances asked.
	self, templates bool
}

func (s *Store) boundBy(grants ...*grant) *bound {
	out, subjects := &bound{accountsOf: map[string]struct{}{}}, 0

	for _, g := range grants {
		if g == nil {
			continue
		}

		if subjects += len(g.subjects); subjects > maxBound || g.unknown {
			return &bound{everybody: true}
		}

		for i := range g.subjects {
			key := keyOfSubject(&g.subjects[i])
			if key.kind == rbacv1.ServiceAccountKind {
				out.accountsOf[key.name] = struct{}{}
			}

			_, asked := s.grants.cluster[key]
			out.templates = out.templates || asked
			out.self = out.self || s.mayBeSelf(key)
			out.everybody = out.everybody || key.kind == rbacv1.GroupKind && slices.Contains(scope.GroupsOfAllAccounts(), key.name)
		}
	}

	return out
}

// boundByRole are those who are bound to a ClusterRole in the whole cluster.
func (s *Store) boundByRole(role string) *bound {
	bindings := make([]*grant, 0, min(len(s.grants.of[role]), maxBound+1))

	for name := range s.grants.of[role] {
		if len(bindings) > maxBound {
			break // Each binds somebody.
		}

		bindings = append(bindings, s.clusterBindings.rows[types.NamespacedName{Name: name}].record.grant)
	}

	return s.boundBy(bindings...)
}

// boundChanged asks for a plan for each reconcile key that is about somebody who is bound. Whoever writes bindings decides how
// many these are, and how often.
func (s *Store) boundChanged(of *bound) {
	keys := map[scope.Key]struct{}{}

	for namespace := range of.accountsOf {
		for _, key := range []scope.Key{scope.NamespaceScopes.In(namespace), scope.Installs.In(namespace)} {
			if s.records(key) != nil {
				keys[key] = struct{}{}
			}
		}
	}

	if of.templates {
		keys[scope.TemplatesKey()] = struct{}{}
	}

	if of.everybody || len(keys) > 0 {
		s.listener.ClusterChanged(slices.SortedFunc(maps.Keys(keys), scope.Key.Compare), of.everybody)
	}
}

// ClusterGrants returns the ClusterRoleBindings of whoever is asked for, for a reconcile key, sorted by name, and how many more
// there are. None are known before everything was listed, and where nothing may be read cluster-wide.
func (s *Store) ClusterGrants(reconcileKey scope.Key, a *Asked) (found []ClusterGrant, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()

	keys, names, limit := a.keys(), map[string]struct{}{}, maxGrants

	if reconcileKey.Family == scope.Templates {
		s.grants.cluster, limit = keys, maxClusterGrants
	}

	for key := range keys {
		maps.Copy(names, s.grants.by[key])
	}

	if s.waiting > 0 || s.accesses != nil {
		return nil, 0
	}

	more, _ = s.grants.large.leftOut() // Any may be asked for.

	for i, name := range slices.Sorted(maps.Keys(names)) {
		if len(found) >= limit {
			return found, more + len(names) - i
		}

		switch g, known := s.clusterGrant(name, keys); {
		case !known:
			more++
		case g != nil:
			found = append(found, *g)
		}
	}

	return found, more
}

// clusterGrant is nil for one that gives nothing: whose ClusterRole does not exist, or says nothing. What a ClusterRole says may
// not be known.
func (s *Store) clusterGrant(name string, keys map[grantKey]struct{}) (g *ClusterGrant, known bool) {
	of := s.clusterBindings.rows[types.NamespacedName{Name: name}].record.grant
	role := s.clusterRoles.rows[types.NamespacedName{Name: of.role}].record
	rules, known := role.rules.read()

	if len(rules) == 0 {
		return nil, known
	}

	g = &ClusterGrant{ClusterBinding: facts.ClusterBinding{Name: name, Role: of.role, Owner: of.owner}, Rules: rules}

	for i := range of.subjects {
		if _, asked := keys[keyOfSubject(&of.subjects[i])]; asked {
			g.Subjects = append(g.Subjects, of.subjects[i])
		}
	}

	return g, true
}
