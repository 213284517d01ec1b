package simulation

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/rights"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Asker returns what a user holds in a namespace, as the API server says; known is false where it cannot be asked.
type Asker func(user, namespace string) (held []rbacv1.PolicyRule, known bool, err error)

// toCreate is the verb of requests that make something.
const toCreate = "create"

// request is what somebody asks for.
type request struct {
	verb string
	key  Key
	gvk  schema.GroupVersionKind
	// subresource is what is written of it; empty for the object itself.
	subresource string
	// named says that the request names the object, as all do but those that create it otherwise than by server-side apply.
	named bool
	// object is what would be there, and live what is.
	object, live client.Object
	dryRun       bool
	// within says that it is part of another request, so that nobody asks again who acts as whom.
	within bool
	// held is what whoever asks holds there, where that is known.
	held  []rbacv1.PolicyRule
	known bool
}

// review answers what a user may do, as the API server's authorizer does.
func (u *user) review(review *authorizationv1.SelfSubjectRulesReview) error {
	gvk := authorizationv1.SchemeGroupVersion.WithKind("SelfSubjectRulesReview")
	if err := u.mayActFor(&request{verb: toCreate, gvk: gvk}); err != nil {
		return err
	}

	held, known, err := u.held(u.name, review.Spec.Namespace)
	if err != nil {
		return err
	}

	if !known {
		held = rights.Everything()
	}

	for _, r := range held {
		review.Status.ResourceRules = append(review.Status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources, ResourceNames: r.ResourceNames,
		})

		if len(r.NonResourceURLs) > 0 {
			review.Status.NonResourceRules = append(review.Status.NonResourceRules, authorizationv1.NonResourceRule{
				Verbs: r.Verbs, NonResourceURLs: r.NonResourceURLs,
			})
		}
	}

	return nil
}

// held is what a user holds in a namespace: what the API server says, and what the roles in memory give once some were written.
// Where somebody is about to write roles or bindings, the API server's answer may be what they take away: if all of them are in
// memory, these decide alone. Ambit itself, where nobody knows who that is, may do everything.
func (s *Simulation) held(name, namespace string) (rules []rbacv1.PolicyRule, known bool, err error) {
	if name == "" {
		return nil, false, nil
	}

	if namespace == scope.Cluster {
		namespace = ""
	}

	whole := s.HasRBAC(namespace)
	if !whole || s.cluster.proposed[""]+s.cluster.proposed[namespace] == 0 {
		if rules, known, err = s.Ask(name, namespace); err != nil {
			return nil, false, err
		}
	}

	written := s.cluster.permissions[""]+s.cluster.permissions[namespace] > 0
	if known && !written || !known && !whole {
		return rules, known, nil
	}

	return slices.Concat(s.byRoles(name, namespace), rules), true, nil
}

// byRoles is what the roles and bindings in memory give.
func (s *Simulation) byRoles(user, namespace string) []rbacv1.PolicyRule {
	place, name, _ := scope.AccountOfUser(user)
	account := explain.Account{Namespace: place, Name: name}
	all := s.clusterWide()
	roles := &explain.Roles{Roles: map[string]*rbacv1.Role{}, ClusterRoles: all.roles}

	out, known := all.gives[user]
	if !known {
		out = rulesOf(explain.Of(account, nil, all.bindings, roles))
		all.gives[user] = out
	}

	if namespace == "" {
		return out
	}

	var bindings []rbacv1.RoleBinding

	readAll(s.cluster, "Role", namespace, func(r *rbacv1.Role) { roles.Roles[r.Name] = r })
	readAll(s.cluster, "RoleBinding", namespace, func(b *rbacv1.RoleBinding) {
		s.fill(b.RoleRef)

		bindings = append(bindings, *b)
	})

	return slices.Concat(out, rulesOf(explain.Of(account, bindings, nil, roles)))
}

func rulesOf(held []explain.Right) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for i := range held {
		out = append(out, held[i].Rules...)
	}

	return out
}

func readAll[T any, P interface {
	*T
	client.Object
}](c *Cluster, kind, namespace string, take func(P)) {
	for _, key := range c.keys(schema.GroupKind{Group: rbacv1.GroupName, Kind: kind}, namespace) {
		if typed, is := c.get(key).(P); is {
			take(typed)

			continue
		}

		out := P(new(T))
		if _, err := c.read(key, out); err == nil {
			take(out)
		}
	}
}

// mayAsk refuses what the API server's authorizer would refuse.
func (u *user) mayAsk(r *request) error {
	if u.name == "" {
		return nil
	}

	if !r.within {
		if err := u.mayActFor(r); err != nil {
			return err
		}
	}

	var err error
	if r.held, r.known, err = u.held(u.name, r.key.Namespace); err != nil || !r.known {
		return err
	}

	resource, name := u.askedFor(r)

	if !rights.Allow(r.held, resource, name, r.verb) {
		missing := []rbacv1.PolicyRule{rights.To(resource, name, r.verb)}

		return u.refuse(r, resource, name, missing, errors.New(words(u.name, r.verb, resource, r.key.Namespace)))
	}

	return nil
}

// mayHandOut refuses what the API server refuses to who hands out what they do not hold. It looks at that once mayAsk has allowed
// the request itself, and the object is known.
func (u *user) mayHandOut(r *request) error {
	if r.gvk.Group != rbacv1.GroupName || !r.known {
		return nil
	}

	resource := u.cluster.resource(r.gvk)
	missing, isThere := u.notHeld(r, resource)

	switch {
	case !isThere:
		return apierrors.NewNotFound(resource, handedOut(r.object).ref.Name)
	case missing != nil:
		why := fmt.Errorf("user %q is attempting to grant RBAC permissions not currently held", u.name)

		return u.refuse(r, resource, r.key.Name, missing, why)
	}

	return nil
}

func (u *user) refuse(r *request, resource schema.GroupResource, name string, missing []rbacv1.PolicyRule, why error) error {
	if !r.dryRun {
		u.lack(u.name, []authority.Place{{Namespace: r.key.Namespace, Rules: missing}})
	}

	return apierrors.NewForbidden(resource, name, why)
}

// askedFor is what the authorizer is asked for. It does not see the name of an object that is created, except by server-side
// apply.
func (u *user) askedFor(r *request) (resource schema.GroupResource, name string) {
	resource = u.cluster.resource(r.gvk)
	if r.subresource != "" {
		resource.Resource += "/" + r.subresource
	}

	if r.named {
		name = r.key.Name
	}

	return resource, name
}

// words are the API server's own (RBACAuthorizer and responsewriters.ForbiddenStatusError of k8s.io/apiserver).
func words(user, verb string, resource schema.GroupResource, namespace string) string {
	where := "at the cluster scope"
	if namespace != "" {
		where = fmt.Sprintf("in the namespace %q", namespace)
	}

	return fmt.Sprintf("User %q cannot %s resource %q in API group %q %s", user, verb, resource.Resource, resource.Group, where)
}

// notHeld is what a role or a binding would hand out, and whoever writes it neither holds nor may hand out. Whoever leaves it as
// it is hands out nothing (policybased storages of k8s.io/kubernetes/pkg/registry/rbac). Who may not bind the role gets an answer
// about it only if it is there.
func (u *user) notHeld(r *request, resource schema.GroupResource) (missing []rbacv1.PolicyRule, isThere bool) {
	would := handedOut(r.object)
	if r.live != nil && would.is(handedOut(r.live)) {
		return nil, true
	}

	lacks := func(verb, resource, name string) []rbacv1.PolicyRule {
		if what := rbacv1.Resource(resource); !rights.Allow(r.held, what, name, verb) {
			return []rbacv1.PolicyRule{rights.To(what, name, verb)}
		}

		return nil
	}

	if would.ref == (rbacv1.RoleRef{}) {
		name := ""
		if r.named {
			name = r.key.Name
		}

		if lacks("escalate", resource.Resource, name) == nil {
			return nil, true
		}

		return authority.Missing(r.held, would.rules), true
	}

	if missing = lacks("bind", strings.ToLower(would.ref.Kind)+"s", would.ref.Name); missing == nil {
		return nil, true
	}

	if rules, known := u.rulesBound(would.ref, r.key.Namespace); known {
		return authority.Missing(r.held, rules), true
	}

	place := r.key.Namespace
	if projected.Kind(would.ref.Kind) == projected.ClusterRole {
		place = ""
	}

	return missing, !u.HasRBAC(place)
}

// handed is what a role or a binding hands out.
type handed struct {
	rules    []rbacv1.PolicyRule
	ref      rbacv1.RoleRef
	subjects []rbacv1.Subject
}

// is compares one field after the other: equality.Semantic, to which null and empty are the same, cannot compare unexported
// fields.
func (h handed) is(other handed) bool {
	return equality.Semantic.DeepEqual(h.rules, other.rules) && h.ref == other.ref &&
		equality.Semantic.DeepEqual(h.subjects, other.subjects)
}

// handedOut reads a role or a binding. An aggregated role may give anything.
func handedOut(obj client.Object) handed {
	switch o := obj.(type) {
	case *rbacv1.Role:
		return handed{rules: o.Rules}
	case *rbacv1.ClusterRole:
		return handed{rules: rights.GivenBy(o)}
	case *rbacv1.RoleBinding:
		return handed{ref: o.RoleRef, subjects: o.Subjects}
	case *rbacv1.ClusterRoleBinding:
		return handed{ref: o.RoleRef, subjects: o.Subjects}
	case *unstructured.Unstructured:
		typed := projected.Kind(o.GetKind()).Empty("", "")
		if runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, typed) == nil {
			return handedOut(typed)
		}
	}

	return handed{rules: rights.Everything()}
}

// rulesBound are the rules that a binding gives by the role that it refers to, and whether that role is known. Whoever binds an
// aggregated one has to hold what it gives; who may write it is another question.
func (s *Simulation) rulesBound(ref rbacv1.RoleRef, namespace string) (rules []rbacv1.PolicyRule, known bool) {
	if projected.Kind(ref.Kind) == projected.ClusterRole {
		all := s.clusterWide()
		s.fill(ref)

		role := all.roles[ref.Name]
		if role == nil {
			return nil, false
		}

		return role.Rules, true
	}

	role := s.cluster.get(named(schema.GroupKind{Group: rbacv1.GroupName, Kind: ref.Kind}, namespace, ref.Name))
	if role == nil {
		return nil, false
	}

	return handedOut(role).rules, true
}
