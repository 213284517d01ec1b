package read

import (
	"cmp"
	"maps"
	"reflect"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// clusterTable holds what is known of every ClusterRole, or ClusterRoleBinding, whoever made it. Those that Ambit made are
// among the projected objects as well.
type clusterTable = table[clusterRecord]

type clusterRecord struct {
	version uint64
	// made says that the API server recorded Ambit as a writer of it.
	made bool
	// aggregated is the field Aggregated of facts.ClusterRole.
	aggregated *rbacv1.ClusterRole
	// grant is set for a ClusterRoleBinding that binds somebody; rules are those of a ClusterRole.
	grant *grant
	rules ruleSet
	// projected is set where the object bears a mark of Ambit. It is handed on, and not kept here.
	projected *projectedRecord
}

func (s *Store) convertCluster(obj client.Object) (clusterRecord, bool) {
	r := clusterRecord{version: scope.ParseVersion(obj.GetResourceVersion()), made: writtenByAmbit(obj.GetManagedFields())}
	if p, marked := s.projected.convert(obj); marked {
		r.projected = &p
	}

	if role, ok := obj.(*rbacv1.ClusterRole); ok && r.made && isAggregated(role) {
		r.aggregated = aggregated(role)
	}

	r.grant, r.rules = convertGrant(obj, r.made), convertRules(obj)

	return r, true
}

// weight is what is bounded of all that a table holds.
func (r *clusterRecord) weight() int {
	size := r.rules.size()
	if r.aggregated != nil {
		size += Weight(*r.aggregated)
	}

	return size + r.grant.weight()
}

// lighten leaves out what a ClusterRole says, or whom a ClusterRoleBinding binds. What was left out is known again once it is
// written anew.
func (r *clusterRecord) lighten() {
	r.rules = ruleSet{sum: r.rules.sum}

	if r.aggregated != nil {
		r.aggregated = &rbacv1.ClusterRole{}
	}

	if r.grant != nil {
		r.grant = &grant{role: r.grant.role, owner: r.grant.owner, unknown: true}
	}
}

// isAggregated says whether a ClusterRole that Ambit made belongs to no scope. Marks of a scope that somebody put on a
// user ClusterRole do not hide it.
func isAggregated(role *rbacv1.ClusterRole) bool {
	if role.Annotations[scope.AnnotationAPI] != "" {
		return true
	}

	return role.Labels[scope.LabelScope] == "" && role.Annotations[scope.AnnotationOwner] == "" &&
		role.Annotations[scope.AnnotationSource] == ""
}

// aggregated leaves out what no decision of Ambit's depends on, and everything of one that nobody can have meant so.
func aggregated(role *rbacv1.ClusterRole) *rbacv1.ClusterRole {
	role = &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{
			Name: role.Name, ResourceVersion: role.ResourceVersion, Labels: role.Labels, OwnerReferences: role.OwnerReferences,
			Annotations: only(role.Annotations, scope.AnnotationAPI, scope.AnnotationOwner, scope.AnnotationSource),
		},
		Rules: role.Rules, AggregationRule: role.AggregationRule,
	}

	if Weight(*role) > maxRules {
		return &rbacv1.ClusterRole{}
	}

	return role.DeepCopy()
}

func only(annotations map[string]string, keys ...string) map[string]string {
	annotations = maps.Clone(annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool { return !slices.Contains(keys, key) })

	return annotations
}

// differsAggregated says whether something else has to be decided about a ClusterRole that belongs to no scope.
func differsAggregated(before, after *clusterRecord) bool {
	if before.aggregated == nil || after.aggregated == nil {
		return before.aggregated != after.aggregated
	}

	now := *after.aggregated
	now.ResourceVersion = before.aggregated.ResourceVersion

	return !reflect.DeepEqual(*before.aggregated, now)
}

// clusterSink fills a table of cluster-scoped objects, and the projected objects among them into theirs.
func (s *Store) clusterSink(kind projected.Kind, t *clusterTable) sink[clusterRecord] {
	of := s.projected.sink(kind)
	most, small := maxRuleSets, smallRuleSet

	if kind.IsBinding() {
		most, small = maxSubjects, fewSubjects
	}

	return sink[clusterRecord]{
		convert: s.convertCluster,
		most:    most, small: small, weigh: func(r clusterRecord) int { return r.weight() }, lighten: (*clusterRecord).lighten,
		put: func(key types.NamespacedName, r clusterRecord, a arrival) {
			if r.projected != nil {
				of.put(key, *r.projected, a)
			} else {
				of.drop(key, a.version)
			}

			r.projected = nil
			t.put(key, r, a)
		},
		drop: func(key types.NamespacedName, version uint64) {
			of.drop(key, version)
			t.drop(key, version)
		},
		keys: t.keys,
	}
}

// clusterRoleChanged asks for the plans to which a ClusterRole may matter that came, changed or went.
func (s *Store) clusterRoleChanged(key types.NamespacedName, before, after *clusterRecord) {
	s.boundRules(key)

	switch {
	case s.waiting > 0:
	case before == nil || after == nil:
		of := s.boundByRole(key.Name)
		if !cmp.Or(after, before).made {
			s.roleChanged(of) // A binding may have been there before it.
		}

		if after == nil && (!before.made || before.aggregated != nil) {
			s.makersChanged()
		}

		s.existenceChanged(key.Name, of)
	default:
		if differsAggregated(before, after) {
			s.makersChanged()
		}

		if before.rules.sum != after.rules.sum {
			of := s.boundByRole(key.Name)
			s.roleChanged(of)
			s.boundChanged(of)
		}
	}
}

// makersChanged asks for a plan for each reconcile key that makes ClusterRoles: one of somebody else's is gone, so that its name
// may be free, or one for the users of an API, which belongs to no key, is gone or has become another.
func (s *Store) makersChanged() {
	s.listener.ClusterChanged(append(s.installKeys(), scope.TemplatesKey()), false)
}

// existenceChanged asks for a plan for each reconcile key to which it matters whether a ClusterRole exists: those whose operator
// namespace binds it, and those about somebody who is bound to it in the whole cluster. It matters to no other, and Ambit itself
// makes three for each OperatorGroup.
func (s *Store) existenceChanged(role string, of *bound) {
	for namespace, in := range s.operatorNamespaces {
		if in.bindsClusterRole(role) {
			s.listener.KeyUnblocked(scope.NamespaceScopes.In(namespace))
		}
	}

	s.boundChanged(of)
}
