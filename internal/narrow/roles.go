package narrow

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/rights"
)

// wellKnown returns the ClusterRoles of every cluster that operators are commonly bound to
// (k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go).
func wellKnown(name string) *rbacv1.ClusterRole {
	r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}

	switch name {
	case "cluster-admin":
		r.Rules = rights.Everything()
	case "system:auth-delegator":
		r.Rules = []rbacv1.PolicyRule{
			{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{verbCreate}},
			{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{verbCreate}},
		}
	default:
		return nil
	}

	return r
}

// kubernetesRoles are the other ClusterRoles of every cluster, besides those with the prefixes. An API server that starts gives
// them back the rules that they lack.
var kubernetesRoles = []string{
	"admin", "edit", "view", "system:aggregate-to-admin", "system:aggregate-to-edit", "system:aggregate-to-view",
	"system:basic-user",
	"system:discovery", "system:heapster", "system:kube-aggregator", "system:kube-controller-manager", "system:kube-dns",
	"system:kube-scheduler", "system:kubelet-api-admin", "system:monitoring", "system:node", "system:node-bootstrapper",
	"system:node-problem-detector", "system:node-proxier", "system:persistent-volume-provisioner", "system:public-info-viewer",
	"system:service-account-issuer-discovery", "system:volume-scheduler",
}

// isKubernetes says whether every cluster has a ClusterRole, and bindings of it that are in no files.
func isKubernetes(name string) bool {
	return wellKnown(name) != nil || slices.Contains(kubernetesRoles, name) ||
		strings.HasPrefix(name, "system:controller:") || strings.HasPrefix(name, "system:certificates.k8s.io:")
}

// isKubernetesRole says whether every cluster may have a Role.
func isKubernetesRole(namespace, name string) bool {
	return (namespace == metav1.NamespaceSystem || namespace == metav1.NamespacePublic) &&
		(strings.HasPrefix(name, "system:") || name == authenticationReader)
}

// authenticationReader is the Role of kube-system by which API servers of extensions read one ConfigMap.
const authenticationReader = "extension-apiserver-authentication-reader"

// given is what rulesOf returned before: narrowing asks for each role as often as there are bindings.
type given struct {
	rules   []rbacv1.PolicyRule
	unknown []string
}

// rulesOf are the rules that a binding of the whole cluster gives, and what says of others that nobody here knows: a role that is
// nowhere, or the labels by which one takes the rules of roles that may be in the cluster.
func (in *input) rulesOf(name string, o *Options) (rules []rbacv1.PolicyRule, unknown []string) {
	if of, is := in.given[name]; is {
		return of.rules, of.unknown
	}

	rules, unknown = in.rulesVia(name, o, map[string]bool{})
	if r := in.clusterRoles[name]; r != nil && r.AggregationRule != nil {
		rules = compacted(rules)
	}

	slices.Sort(unknown)
	unknown = slices.Compact(unknown)
	in.given[name] = given{rules, unknown}

	return rules, unknown
}

// rulesVia leaves out the roles that were seen: some may take the rules of each other.
func (in *input) rulesVia(name string, o *Options, seen map[string]bool) (rules []rbacv1.PolicyRule, unknown []string) {
	seen[name] = true

	r := in.clusterRoles[name]
	if r == nil {
		return own(name, o)
	}

	if isKubernetes(name) {
		// Whatever the files say: it comes back, at once by what it takes, or when the API server starts.
		rules, unknown = own(name, o)
	}

	rules = slices.Concat(r.Rules, rules)

	if r.AggregationRule == nil {
		return append(rules, keptTaking(name, o)...), unknown
	}

	more, open := in.takenElsewhere(r, o)
	rules, unknown = append(rules, more...), append(unknown, open...)

	for _, of := range in.takenFrom(r) {
		if !seen[of] {
			more, open := in.rulesVia(of, o, seen)
			rules, unknown = append(rules, more...), append(unknown, open...)
		}
	}

	return rules, unknown
}

// own are the rules of a ClusterRole where it is not in the input.
func own(name string, o *Options) (rules []rbacv1.PolicyRule, unknown []string) {
	if of := elsewhere(name, o); of != nil {
		return of.Rules, nil
	}

	return nil, []string{kindClusterRole + " " + name}
}

// keptTaking are the rules of a ClusterRole of the cluster that takes those of others: it goes on taking them where files say
// nothing of an aggregationRule.
func keptTaking(name string, o *Options) []rbacv1.PolicyRule {
	all, _ := o.rolesThere()

	for i := range all {
		if all[i].Name == name && all[i].AggregationRule != nil {
			return all[i].Rules
		}
	}

	return nil
}

// rolesThere are the ClusterRoles of the cluster, and false where nobody knows them.
func (o *Options) rolesThere() ([]rbacv1.ClusterRole, bool) {
	if o.ClusterRoles == nil {
		return nil, false
	}

	all, known := o.ClusterRoles()

	return slices.Clip(all), known
}

// elsewhere is a ClusterRole that is not in the input; nil where nobody knows it.
func elsewhere(name string, o *Options) *rbacv1.ClusterRole {
	if o.Roles != nil {
		if r := o.Roles(name); r != nil {
			return r
		}
	}

	return wellKnown(name)
}

// takenFrom are the ClusterRoles of the input whose rules one takes by their labels.
func (in *input) takenFrom(r *clusterRole) []string {
	if known, is := in.taken[r.Name]; is {
		return known
	}

	names := collect.Filter(in.names, func(name string) bool {
		return name != r.Name && r.takes(in.clusterRoles[name].Labels)
	})
	in.taken[r.Name] = names

	return names
}

// takenElsewhere are the rules that a ClusterRole takes, by labels, of those that are in the cluster alone. If these cannot be
// read, it has the rules of the cluster's own one of its name, as long as that one takes by the same labels.
func (in *input) takenElsewhere(r *clusterRole, o *Options) (rules []rbacv1.PolicyRule, unknown []string) {
	if all, known := o.rolesThere(); known {
		for _, name := range slices.Sorted(maps.Keys(in.left)) {
			all = append(all, *in.left[name].ClusterRole)
		}

		for i := range all {
			if in.clusterRoles[all[i].Name] == nil && r.takes(all[i].Labels) {
				rules = append(rules, all[i].Rules...)
			}
		}

		return rules, nil
	}

	if of := elsewhere(r.Name, o); of != nil && equality.Semantic.DeepEqual(of.AggregationRule, r.AggregationRule) {
		return of.Rules, nil
	}

	labels, err := json.Marshal(r.AggregationRule.ClusterRoleSelectors)
	if err != nil {
		labels = []byte(r.Name) // Selectors can be written.
	}

	return nil, []string{"ClusterRoles with the labels " + string(labels)}
}

// wellKnownRole are the rules of a Role of every cluster that operators are commonly bound to: it lets API servers of extensions
// read one ConfigMap (plugin/pkg/auth/authorizer/rbac/bootstrappolicy/namespace_policy.go of Kubernetes). They are nil for every
// other Role.
func wellKnownRole(namespace, name string) []rbacv1.PolicyRule {
	if namespace != metav1.NamespaceSystem || name != authenticationReader {
		return nil
	}

	return []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"},
		ResourceNames: []string{"extension-apiserver-authentication"},
	}}
}

// rulesBound are the rules that a binding gives where it is, and what says of others that nobody here knows.
func (in *input) rulesBound(b *binding, o *Options) (rules []rbacv1.PolicyRule, unknown []string) {
	if b.roleRef.Kind != kindRole {
		return in.rulesOf(b.roleRef.Name, o)
	}

	rules, known := in.rulesOfRole(b.Namespace, b.roleRef.Name, o)
	if !known {
		unknown = []string{kindRole + " " + b.roleRef.Name}
	}

	return rules, unknown
}

// rulesOfRole are the rules of a Role, of the cluster's own one where the input has none, or of that of every cluster; false
// where nobody here knows it.
func (in *input) rulesOfRole(namespace, name string, o *Options) (rules []rbacv1.PolicyRule, known bool) {
	if r := in.roles[namespace+"/"+name]; r != nil {
		return r.Rules, true
	}

	if o.RoleIn != nil {
		if r := o.RoleIn(namespace, name); r != nil {
			return r.Rules, true
		}
	}

	rules = wellKnownRole(namespace, name)

	return rules, rules != nil
}

// docOf is where the role of a binding was read; nil where it was not.
func (in *input) docOf(b *binding) *Document {
	if b.roleRef.Kind == kindRole {
		if of := in.roles[b.Namespace+"/"+b.roleRef.Name]; of != nil {
			return of.doc
		}
	} else if of := in.clusterRoles[b.roleRef.Name]; of != nil {
		return of.doc
	}

	return nil
}

// compacted leaves out rules that repeat the one before.
func compacted(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	return slices.CompactFunc(rules, func(a, b rbacv1.PolicyRule) bool {
		left, right := []rbacv1.PolicyRule{a}, []rbacv1.PolicyRule{b}

		return rights.Covers(left, right) && rights.Covers(right, left)
	})
}

// feeds says whether a ClusterRole is part of others: those that Kubernetes or the input aggregate.
func (in *input) feeds(r *clusterRole) bool {
	for key := range r.Labels {
		if strings.HasPrefix(key, aggregateTo) {
			return true
		}
	}

	for _, of := range in.clusterRoles {
		if of != r && of.takes(r.Labels) {
			return true
		}
	}

	return false
}

// isTakenByLabels says whether another ClusterRole of the input or of the cluster takes the rules of one by its labels.
func (r *run) isTakenByLabels(role *rbacv1.ClusterRole) bool {
	for _, of := range r.clusterRoles {
		if of.takes(role.Labels) {
			return true
		}
	}

	return len(r.takenBy(role)) > 0
}

// takenBy are those ClusterRoles of the cluster that take the rules of another one by its labels.
func (o *Options) takenBy(role *rbacv1.ClusterRole) (names []string) {
	there, _ := o.rolesThere()
	for i := range there {
		if of := &there[i]; of.Name != role.Name && explain.Aggregates(of.AggregationRule)(role.Labels) {
			names = append(names, of.Name)
		}
	}

	return names
}

// usedElsewhere says whether a binding of the cluster that is not in the input refers to a ClusterRole, or another ClusterRole
// takes its rules. What cannot be read may.
func (r *run) usedElsewhere(role *rbacv1.ClusterRole) bool {
	refers := func(b rbacv1.RoleBinding) bool {
		return b.RoleRef.Kind == kindClusterRole && b.RoleRef.Name == role.Name && !r.isOfInput(&b)
	}

	lists, known := r.bindingsThere()
	if !known || slices.ContainsFunc(lists, func(all []rbacv1.RoleBinding) bool { return slices.ContainsFunc(all, refers) }) {
		return true
	}

	if _, known := r.rolesThere(); r.ClusterRoles != nil && !known {
		return true
	}

	return len(r.takenBy(role)) > 0
}

// isOfInput says whether a ClusterRoleBinding is in the input, or is what one of the input became when it was narrowed before: to
// narrow the same again has to give the same. A RoleBinding never is: what one of the input refers to is left as it is.
func (in *input) isOfInput(b *rbacv1.RoleBinding) bool {
	if b.Namespace != "" {
		return false
	}

	is := func(name string) bool { return in.bound[identity(kindClusterRoleBinding, "", name)] != nil }
	from, made := strings.CutPrefix(b.Annotations[AnnotationFrom], kindClusterRoleBinding+"/")

	return is(b.Name) || made && is(from)
}
