// Package preflight says which permissions somebody needs to write a set of objects, as the API server will ask for them. It is
// pure. The method add decides what an object needs; a further kind that makes other objects is turned into those there.
package preflight

import (
	"maps"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/rights"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Everywhere is the namespace of what is needed in the whole cluster.
const Everywhere = ""

// Object is an object to write.
type Object struct {
	scope.Object

	// Resource is what the API server calls its kind; Namespaced says that it is in a namespace.
	Resource   schema.GroupResource
	Namespaced bool
}

// Subject is who would write.
type Subject struct {
	rbacv1.Subject
}

// Account is a service account as the subject.
func Account(namespace, name string) Subject {
	return Subject{rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}}
}

// String names the subject for users.
func (s Subject) String() string {
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		return "Service account " + s.Namespace + "/" + s.Name
	case "":
		return "You"
	default:
		return s.Kind + " " + s.Name
	}
}

// Need is what is needed in a namespace.
type Need struct {
	Namespace string
	// Rules are rights on the objects themselves. Handed are the rights that the objects hand out: whoever writes them has to hold
	// these, or Instead.
	Rules  []rbacv1.PolicyRule
	Handed []Handed
}

// Handed are rules that a role or a binding gives to somebody. The API server lets nobody hand out what they do not hold, unless
// they may escalate roles, or bind them (k8s.io/kubernetes/pkg/registry/rbac, policybased storage). The right to use an account,
// which the guard asks for, is one of these, too: it also has another right that does instead.
type Handed struct {
	Rules   []rbacv1.PolicyRule
	Instead rbacv1.PolicyRule
}

// Install is what installing an operator needs in a place.
func Install(p authority.Place) Need {
	resource := "roles"
	if p.Namespace == Everywhere {
		resource = "clusterroles"
	}

	n := Need{Namespace: p.Namespace, Rules: p.Rules}
	if len(p.Handed) > 0 {
		n.Handed = []Handed{{p.Handed, rights.To(rbacv1.Resource(resource), "", "bind", "escalate")}}
	}

	return n
}

// Needs says what writing objects needs. Objects that name no namespace are written into each of the namespaces. roles finds the
// rules of a role that is not among the objects; it returns false if they are not known.
func Needs(objects []Object, namespaces []string, roles func(kind, namespace, name string) ([]rbacv1.PolicyRule, bool)) []Need {
	n := &needs{at: map[string]*Need{}, objects: objects, roles: roles}

	for i := range objects {
		o := &objects[i]

		n.add(o, o.places(namespaces), namespaces)
	}

	return n.all()
}

func (o *Object) places(namespaces []string) []string {
	switch {
	case !o.Namespaced:
		return []string{Everywhere}
	case o.GetNamespace() != "":
		return []string{o.GetNamespace()}
	default:
		return namespaces
	}
}

// Together merges the needs of each namespace into one, sorted by namespace.
func Together(all []Need) []Need {
	n := &needs{at: map[string]*Need{}}

	for i := range all {
		one := n.in(all[i].Namespace)
		one.Rules, one.Handed = append(one.Rules, all[i].Rules...), append(one.Handed, all[i].Handed...)
	}

	return n.all()
}

type needs struct {
	at      map[string]*Need
	objects []Object
	roles   func(kind, namespace, name string) ([]rbacv1.PolicyRule, bool)
}

// all are the needs, sorted by namespace.
func (n *needs) all() []Need {
	return collect.Map(slices.Sorted(maps.Keys(n.at)), func(name string) Need { return *n.at[name] })
}

func (n *needs) in(namespace string) *Need {
	if n.at[namespace] == nil {
		n.at[namespace] = &Need{Namespace: namespace}
	}

	return n.at[namespace]
}

// writing are the rights that kubectl apply uses. The request that creates an object does not name it. An object without a name
// can only be created.
func writing(o *Object) []rbacv1.PolicyRule {
	rules := []rbacv1.PolicyRule{rights.To(o.Resource, "", "create")}
	if o.GetName() != "" {
		rules = append(rules, rights.To(o.Resource, o.GetName(), "get", "patch"))
	}

	return rules
}

// escalating is the right to write a role whatever it hands out: by its name, and by none, because the request that creates a
// role names none.
func escalating(o *Object) rbacv1.PolicyRule {
	r := rights.To(o.Resource, "", "escalate")
	r.ResourceNames = slices.Compact([]string{"", o.GetName()})

	return r
}

func (n *needs) add(o *Object, places, namespaces []string) {
	if t, is := o.Object.(*operatorsv1alpha1.ScopeTemplate); is {
		n.addTemplate(t, namespaces)
	}

	for _, place := range places {
		need := n.in(place)
		need.Rules = append(need.Rules, writing(o)...)
		need.Handed = append(need.Handed, attested(o)...)

		switch obj := o.Object.(type) {
		case *rbacv1.Role:
			need.Handed = append(need.Handed, Handed{obj.Rules, escalating(o)})
		case *rbacv1.ClusterRole:
			need.Handed = append(need.Handed, Handed{rights.GivenBy(obj), escalating(o)})
		case *rbacv1.RoleBinding:
			need.Handed = append(need.Handed, n.bound(obj.RoleRef, place))
		case *rbacv1.ClusterRoleBinding:
			need.Handed = append(need.Handed, n.bound(obj.RoleRef, Everywhere))
		}
	}
}

// attested is what a ClusterTrustBundle of a signer needs: the right to attest for that signer, or for all of its domain
// (k8s.io/kubernetes/plugin/pkg/admission/certificates).
func attested(o *Object) []Handed {
	if o.Resource != (schema.GroupResource{Group: certificatesv1.GroupName, Resource: "clustertrustbundles"}) {
		return nil
	}

	signer, _, _ := unstructured.NestedString(contentOf(o.Object), "spec", "signerName")
	if signer == "" {
		return nil
	}

	domain, _, _ := strings.Cut(signer, "/")
	signers := schema.GroupResource{Group: certificatesv1.GroupName, Resource: "signers"}

	return []Handed{{[]rbacv1.PolicyRule{rights.To(signers, signer, "attest")}, rights.To(signers, domain+"/*", "attest")}}
}

// addTemplate adds what writing the ClusterRoles of a template needs, and binding them in the namespaces. Nobody knows beforehand
// what they will be called, so rights to names are none.
func (n *needs) addTemplate(t *operatorsv1alpha1.ScopeTemplate, namespaces []string) {
	compiled := compile.ScopeTemplate(t, true)
	everywhere := n.in(Everywhere)
	everywhere.Rules = append(everywhere.Rules, rights.To(rbacv1.Resource("clusterroles"), "", "create", "delete", "patch"))

	for i := range compiled.Scope.Defines {
		role := &compiled.Scope.Defines[i]
		everywhere.Handed = append(everywhere.Handed, Handed{role.Rules, rights.To(rbacv1.Resource("clusterroles"), "", "escalate")})
	}

	kind := "rolebindings"
	if len(namespaces) == 0 {
		kind, namespaces = "clusterrolebindings", []string{Everywhere}
	}

	for _, place := range namespaces {
		need := n.in(place)
		need.Rules = append(need.Rules, rights.To(rbacv1.Resource(kind), "", "create", "delete", "patch"))

		for i := range compiled.Binds {
			b := &compiled.Binds[i]
			need.Handed = append(need.Handed, Handed{b.Rules, rights.To(rbacv1.Resource("clusterroles"), "", "bind")})
		}
	}
}

// bound is what binding a role needs: its rules, or where they are not known the right to bind it.
func (n *needs) bound(ref rbacv1.RoleRef, namespace string) Handed {
	resource := "clusterroles"
	if ref.Kind == "Role" {
		resource = "roles"
	}

	out := Handed{Instead: rights.To(rbacv1.Resource(resource), ref.Name, "bind")}

	rules, known := n.rulesOf(ref, namespace)
	if out.Rules = rules; !known {
		out.Rules = []rbacv1.PolicyRule{out.Instead}
	}

	return out
}

// rulesOf are the rules of a role, as they are among the objects or in the cluster. What a ClusterRole of the objects takes from
// others is not known: these may be anywhere in the cluster.
func (n *needs) rulesOf(ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, bool) {
	for i := range n.objects {
		switch obj := n.objects[i].Object.(type) {
		case *rbacv1.Role:
			if ref.Kind == "Role" && obj.Name == ref.Name && (obj.Namespace == "" || obj.Namespace == namespace) {
				return obj.Rules, true
			}
		case *rbacv1.ClusterRole:
			if ref.Kind == "ClusterRole" && obj.Name == ref.Name {
				return obj.Rules, !rights.IsAggregated(obj)
			}
		}
	}

	return n.roles(ref.Kind, namespace, ref.Name)
}

// nameDigits is the length of the hash that ends the name of a grant.
const nameDigits = 10

// Grant returns the role and the binding that give rules to a subject in a namespace, or in the whole cluster.
func Grant(s Subject, namespace string, rules []rbacv1.PolicyRule) []scope.Object {
	subject := s.Subject
	if subject.Kind != rbacv1.ServiceAccountKind {
		subject.APIGroup = rbacv1.GroupName
	}

	head := metav1.ObjectMeta{
		Namespace: namespace, Name: "ambit-preflight-" + scope.Digest(nameDigits, s.Kind, s.Namespace, s.Name, namespace,
			authority.Words(rules, 1<<20)),
	}
	meta := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
	}

	if namespace == Everywhere {
		return []scope.Object{
			&rbacv1.ClusterRole{TypeMeta: meta("ClusterRole"), ObjectMeta: head, Rules: rules},
			&rbacv1.ClusterRoleBinding{
				TypeMeta: meta("ClusterRoleBinding"), ObjectMeta: head, Subjects: []rbacv1.Subject{subject},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: head.Name},
			},
		}
	}

	return []scope.Object{
		&rbacv1.Role{TypeMeta: meta("Role"), ObjectMeta: head, Rules: rules},
		&rbacv1.RoleBinding{
			TypeMeta: meta("RoleBinding"), ObjectMeta: head, Subjects: []rbacv1.Subject{subject},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: head.Name},
		},
	}
}
