package narrow

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/reach"
)

// Account is a service account.
type Account = explain.Account

// The kinds that are looked into.
const (
	kindClusterRole        = "ClusterRole"
	kindClusterRoleBinding = "ClusterRoleBinding"
	kindRole               = "Role"
	kindRoleBinding        = "RoleBinding"
	kindServiceAccount     = "ServiceAccount"
	kindPod                = "Pod"
	kindScope              = "NamespaceScope"
	kindTemplate           = "ScopeTemplate"
	kindInstance           = "ScopeInstance"
	kindPolicy             = "ValidatingAdmissionPolicy"
	kindPolicyBinding      = "ValidatingAdmissionPolicyBinding"
	kindConfigMap          = "ConfigMap"
	kindDefinition         = "CustomResourceDefinition"
)

// clusterRole, role and binding are objects with their documents.
type (
	clusterRole struct {
		*rbacv1.ClusterRole

		doc *Document
	}
	role struct {
		*rbacv1.Role

		doc *Document
	}
	// binding is a RoleBinding, or without a namespace a ClusterRoleBinding.
	binding struct {
		metav1.ObjectMeta

		roleRef  rbacv1.RoleRef
		subjects []rbacv1.Subject
		doc      *Document
		// live says that it is not of the input, but of the cluster.
		live bool
	}
)

// input is what a stream holds.
type input struct {
	clusterRoles map[string]*clusterRole
	roles        map[string]*role
	// everywhere are ClusterRoleBindings, bindings are RoleBindings.
	everywhere, bindings []*binding
	workloads            []*workload
	accounts             map[Account]bool
	// identities are the objects that are there, by kind, namespace and name.
	identities map[string]*Document
	namespaces []string
}

// maxAtoms is how many single rights a role may stand for. The largest real ones stand for a few thousand.
const maxAtoms = 200_000

var errNoVersion = errors.New("it has no apiVersion, so nobody knows what it is, and kubectl would refuse it")

var errTooManyRights = errors.New("its rules stand for more than 200,000 single rights; split it")

// gather reads the objects of a stream. Objects without a namespace are in the given one.
func gather(s *Stream, namespace string, kinds *reach.Kinds) (*input, error) {
	in := &input{
		clusterRoles: map[string]*clusterRole{}, roles: map[string]*role{}, accounts: map[Account]bool{},
		identities: map[string]*Document{},
	}

	var errs []error

	s.each(func(d *Document) {
		if err := in.take(d, namespace, kinds); err != nil {
			errs = append(errs, err)
		}
	})

	return in, errors.Join(errs...)
}

func identity(kind, namespace, name string) string { return kind + "/" + namespace + "/" + name }

func (in *input) take(d *Document, namespace string, kinds *reach.Kinds) error {
	if d.APIVersion == "" && isRead(d.Kind) {
		return fmt.Errorf("%s of %s, line %d: %w", d, d.Source, d.Line, errNoVersion)
	}

	at := d.Namespace
	if at == "" && d.Kind != kindClusterRole && d.Kind != kindClusterRoleBinding {
		at = namespace
	}

	// An object that names no namespace may be cluster-scoped: not every kind is known.
	in.identities[identity(d.Kind, at, d.Name)] = d
	in.identities[identity(d.Kind, d.Namespace, d.Name)] = d

	switch d.Kind {
	case kindDefinition:
		return addDefinition(d, kinds)
	case kindServiceAccount:
		in.accounts[Account{Namespace: at, Name: d.Name}] = true
	case "Namespace":
		in.namespaces = append(in.namespaces, d.Name)
	case kindClusterRole, kindRole:
		return in.takeRole(d, at)
	case kindClusterRoleBinding, kindRoleBinding:
		return in.takeBinding(d, at)
	default:
		w, err := workloadOf(d, at)
		if w != nil {
			in.workloads = append(in.workloads, w)
		}

		return err
	}

	return nil
}

func isRBAC(d *Document) bool { return strings.HasPrefix(d.APIVersion, rbacv1.GroupName+"/") }

func (in *input) takeRole(d *Document, namespace string) error {
	if !isRBAC(d) {
		return nil
	}

	obj := &rbacv1.ClusterRole{} // A Role has the same fields.
	if err := d.into(obj); err != nil {
		return err
	}

	switch {
	case tooManyRights(obj.Rules):
		return fmt.Errorf("%s of %s, line %d: %w", d, d.Source, d.Line, errTooManyRights)
	case d.Kind == kindRole && in.roles[namespace+"/"+obj.Name] != nil:
		return twice(d, in.roles[namespace+"/"+obj.Name].doc)
	case d.Kind == kindRole:
		in.roles[namespace+"/"+obj.Name] = &role{&rbacv1.Role{ObjectMeta: obj.ObjectMeta, Rules: obj.Rules}, d}
	case in.clusterRoles[obj.Name] != nil:
		return twice(d, in.clusterRoles[obj.Name].doc)
	default:
		in.clusterRoles[obj.Name] = &clusterRole{obj, d}
	}

	return nil
}

// twice refuses what is there twice: which of them is applied depends on how.
func twice(d, other *Document) error {
	return fmt.Errorf("%s is there twice: in %s, line %d, and in %s, line %d", d, other.Source, other.Line, d.Source, d.Line)
}

// tooManyRights says whether rules stand for more single rights than are compared.
func tooManyRights(rules []rbacv1.PolicyRule) bool {
	atoms := 0

	for i := range rules {
		r := &rules[i]
		atoms += len(r.Verbs) * (len(r.APIGroups)*len(r.Resources)*max(1, len(r.ResourceNames)) + len(r.NonResourceURLs))
	}

	return atoms > maxAtoms
}

func (in *input) takeBinding(d *Document, namespace string) error {
	if !isRBAC(d) {
		return nil
	}

	obj := &rbacv1.RoleBinding{} // A ClusterRoleBinding has the same fields.
	if err := d.into(obj); err != nil {
		return err
	}

	b := &binding{ObjectMeta: obj.ObjectMeta, roleRef: obj.RoleRef, subjects: obj.Subjects, doc: d}
	if d.Kind == kindClusterRoleBinding {
		b.Namespace = ""
		in.everywhere = append(in.everywhere, b)
	} else {
		b.Namespace = namespace
		in.bindings = append(in.bindings, b)
	}

	return nil
}

// addDefinition reads the few fields that matter from the document itself: definitions are most of what charts hold.
func addDefinition(d *Document, kinds *reach.Kinds) error {
	if spec := child(d.body, "spec"); spec != nil {
		if err := onlyPlain(spec, []string{"group", "names", "scope"}); err != nil {
			return fmt.Errorf("%s of %s: %w", d, d.Source, err)
		}
	}

	group, plural, where := text(d.body, "spec", "group"), text(d.body, "spec", "names", "plural"), text(d.body, "spec", "scope")
	if group == "" || plural == "" || where != "Namespaced" && where != "Cluster" {
		return fmt.Errorf("%s of %s, line %d, is no definition: its spec lacks group, names.plural or scope", d, d.Source, d.Line)
	}

	if of := (reach.Resource{Group: group, Name: plural}); !kinds.AddCustom(of, where == "Namespaced") {
		return fmt.Errorf("%s of %s, line %d, says that the scope of %s is %s, which it is not, and no definition can change that; "+
			"leave the definition out, or delete the one that is there before", d, d.Source, d.Line, printable.Name(of.String()), where)
	}

	return nil
}

// Roles answers for ClusterRoles that are not in the input; nil for one that is not known.
type Roles func(name string) *rbacv1.ClusterRole

// wellKnown returns the ClusterRoles of every cluster that operators are commonly bound to
// (k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go).
func wellKnown(name string) *rbacv1.ClusterRole {
	r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}

	switch name {
	case "cluster-admin":
		all := []string{wildcard}
		r.Rules = []rbacv1.PolicyRule{{APIGroups: all, Resources: all, Verbs: all}, {NonResourceURLs: all, Verbs: all}}
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

// rulesOf are the rules that a binding of the whole cluster gives. An aggregated ClusterRole has those of the ones that it
// selects; what the cluster itself would select is in the rules of the cluster's ClusterRole of that name.
func (in *input) rulesOf(name string, elsewhere Roles) (rules []rbacv1.PolicyRule, known bool) {
	if r := in.clusterRoles[name]; r != nil {
		if r.AggregationRule == nil {
			return r.Rules, true
		}

		return in.aggregated(r, elsewhere), true
	}

	if elsewhere != nil {
		if r := elsewhere(name); r != nil {
			return r.Rules, true
		}
	}

	if r := wellKnown(name); r != nil {
		return r.Rules, true
	}

	return nil, false
}

// wellKnownRole are the rules of a Role of every cluster that operators are commonly bound to: it lets API servers of extensions
// read one ConfigMap (plugin/pkg/auth/authorizer/rbac/bootstrappolicy/namespace_policy.go of Kubernetes). They are nil for every
// other role.
func wellKnownRole(b *binding) []rbacv1.PolicyRule {
	if b.Namespace != "kube-system" || b.roleRef.Kind != kindRole || b.roleRef.Name != "extension-apiserver-authentication-reader" {
		return nil
	}

	return []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch"},
		ResourceNames: []string{"extension-apiserver-authentication"},
	}}
}

// rulesBound are the rules that a binding gives where it is.
func (in *input) rulesBound(b *binding, o *Options) (rules []rbacv1.PolicyRule, known bool) {
	if b.roleRef.Kind != kindRole {
		return in.rulesOf(b.roleRef.Name, o.Roles)
	}

	if role := in.roles[b.Namespace+"/"+b.roleRef.Name]; role != nil {
		return role.Rules, true
	}

	if o.RoleIn != nil {
		if role := o.RoleIn(b.Namespace, b.roleRef.Name); role != nil {
			return role.Rules, true
		}
	}

	rules = wellKnownRole(b)

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

func (in *input) aggregated(r *clusterRole, elsewhere Roles) []rbacv1.PolicyRule {
	rules := slices.Clone(r.Rules)

	if elsewhere != nil {
		if live := elsewhere(r.Name); live != nil {
			rules = append(rules, live.Rules...)
		}
	}

	for _, name := range in.roleNames() {
		if of := in.clusterRoles[name]; of != r && explain.Aggregates(r.AggregationRule, of.Labels) {
			rules = append(rules, of.Rules...)
		}
	}

	return slices.CompactFunc(rules, func(a, b rbacv1.PolicyRule) bool {
		left, right := []rbacv1.PolicyRule{a}, []rbacv1.PolicyRule{b}

		return authority.Covers(left, right) && authority.Covers(right, left)
	})
}

func (in *input) roleNames() []string {
	names := make([]string, 0, len(in.clusterRoles))
	for name := range in.clusterRoles {
		names = append(names, name)
	}

	slices.Sort(names)

	return names
}

// feeds says whether a ClusterRole is part of others: those that Kubernetes or the input aggregate.
func (in *input) feeds(r *clusterRole) bool {
	for key := range r.Labels {
		if strings.HasPrefix(key, aggregateTo) {
			return true
		}
	}

	for _, of := range in.clusterRoles {
		if of != r && explain.Aggregates(of.AggregationRule, r.Labels) {
			return true
		}
	}

	return false
}

// Has says whether a stream has an object. What is cluster-scoped has no namespace, whatever its document says.
func (s *Stream) Has(kind, namespace, name string) bool {
	found := false

	s.each(func(d *Document) {
		found = found || d.Kind == kind && d.Name == name && (namespace == "" || d.Namespace == namespace)
	})

	return found
}
