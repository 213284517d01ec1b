package overview

import (
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Reason is why a namespace is not fully served, as a status says it.
type Reason struct{ Reason, Message string }

// Known is what is known of an operator namespace besides the plan.
type Known struct {
	// OperatorNamespace is its name, and OperatorNamespaceClosed says that the permissions in it could not be read.
	OperatorNamespace       string
	OperatorNamespaceClosed bool
	// Closed says that what is in a namespace could not be read, and Hidden that not even the namespace itself could.
	Closed, Hidden func(namespace string) bool
	// Why says what the status knows of a namespace.
	Why func(namespace string) Reason
	// Rules returns the rules of a ClusterRole, if they may be read.
	Rules func(clusterRole string) []rbacv1.PolicyRule
}

// places divides the namespaces of a planned scope into those of which the plan can tell what is missing, those that cannot be
// served, and those of which nothing is known. For the last, the status says what it can.
func (k *Known) places(s *plan.ScopePlan) (seen, failed, unread []string) {
	for _, namespace := range s.Members {
		if k.OperatorNamespaceClosed || k.Closed(namespace) {
			unread = append(unread, namespace)
		} else {
			seen = append(seen, namespace)
		}
	}

	for i := range s.Absent {
		if s.Absent[i].Closed != "" {
			unread = append(unread, s.Absent[i].Namespace)
		} else if !keeps(s, s.Absent[i].Namespace) {
			failed = append(failed, s.Absent[i].Namespace)
		}
	}

	// A selector selects no namespace whose labels may not be read, so the status has to say which those are.
	for _, namespace := range slices.Concat(s.Scope.Reported, s.Scope.Failed) {
		if !s.Scope.Mirrors(namespace) && !s.Everywhere && !s.Scope.Deleting() &&
			(k.Closed(namespace) || k.Hidden(namespace)) &&
			!slices.Contains(seen, namespace) {
			unread = append(unread, namespace)
		}
	}

	slices.Sort(unread)

	return seen, failed, slices.Compact(unread)
}

// keeps says whether a namespace that is no longer served keeps what it has until operators have finished, as the status says.
func keeps(s *plan.ScopePlan, namespace string) bool {
	_, said := s.Scope.Finishing[namespace]

	return said && slices.ContainsFunc(s.Leaves, func(l plan.Finishing) bool { return l.Namespace == namespace && !l.Over })
}

// Unread are the namespaces of a planned scope of which nothing is known, sorted.
func (k *Known) Unread(s *plan.ScopePlan) []string {
	_, _, unread := k.places(s)

	return unread
}

// Empty are the namespaces of a planned scope in which nobody works, because it has no account. A namespace of which the status
// says why it is not served is none of them. A scope that says itself what to bind has none: its remarks say what it lacks.
func (k *Known) Empty(s *plan.ScopePlan) []MemberTree {
	if len(k.holders(s)) > 0 || s.Scope.Deleting() || s.Scope.Explicit() {
		return nil
	}

	out := []MemberTree{{Namespace: k.OperatorNamespace, State: OwnNamespace, Accounts: []AccountTree{}}}

	seen, _, _ := k.places(s)
	for _, namespace := range seen {
		if k.Why(namespace).Reason == "" {
			out = append(out, MemberTree{Namespace: namespace, State: Idle, Accounts: []AccountTree{}})
		}
	}

	return out
}

// OfScope returns the services of a planned scope. What its plan would still write is what is missing now.
func OfScope(s *plan.ScopePlan, scope string, k *Known) []Service {
	missing := map[string]map[string]struct{}{}

	for i := range s.Grant {
		c := &s.Grant[i]
		if missing[c.Namespace] == nil {
			missing[c.Namespace] = map[string]struct{}{}
		}

		missing[c.Namespace][string(c.Key.Kind)+c.Copy.Slot] = struct{}{}
	}

	var out []Service

	finishing := Reason{Finishing, "it leaves, and keeps its permissions until operators have finished there"}
	seen, failed, unread := k.places(s)

	for _, holder := range k.holders(s) {
		add := func(namespace string, state State, why Reason, roles []Role) {
			out = append(out, Service{
				Operator: holder.operator, Namespace: namespace, Scope: scope, State: state, Reason: why.Reason, Message: why.Message,
				Roles: roles,
			})
		}

		for _, namespace := range seen {
			out = append(out, holder.in(namespace, scope, missing[namespace], k.Why(namespace)))
		}

		for _, namespace := range slices.Sorted(maps.Keys(s.Scope.Finishing)) {
			if keeps(s, namespace) {
				add(namespace, Served, finishing, holder.roles)
			}
		}

		if !s.Scope.Explicit() {
			add(k.OperatorNamespace, OwnNamespace, Reason{}, holder.roles)
		}

		for _, namespace := range failed {
			add(namespace, Failed, k.Why(namespace), holder.lost())
		}

		for _, namespace := range unread {
			add(namespace, Unknown, k.unreadWhy(s, namespace), holder.roles)
		}
	}

	return out
}

// unreadWhy is the reason for a namespace of which nothing is known: what the status says, or what may not be read.
func (k *Known) unreadWhy(s *plan.ScopePlan, namespace string) Reason {
	if r := k.Why(namespace); r.Reason != "" {
		return r
	}

	what := "you may not read what is there"
	if k.OperatorNamespaceClosed {
		what = "you may not read what is in namespace " + k.OperatorNamespace
	}

	if slices.Contains(s.Scope.Reported, namespace) {
		return Reason{NotRead, what + "; its scope's status says that it is served"}
	}

	return Reason{NotRead, what + ", so whether it is served is unknown"}
}

// holders are those of the plan. If the operator namespace may not be read, they are the accounts, as far as they are known.
func (k *Known) holders(s *plan.ScopePlan) []*holder {
	out := holders(s, k.Rules)
	if !k.OperatorNamespaceClosed {
		return out
	}

	for i := range out {
		out[i].roles, out[i].objects = nil, nil
	}

	if len(out) == 0 && !s.Scope.Deleting() {
		out = append(out, &holder{operator: Operator{rbacv1.ServiceAccountKind, s.Scope.Key.Namespace, AnyAccount}})
	}

	return out
}

type holder struct {
	operator Operator
	roles    []Role
	// objects are what each of the roles needs in a namespace.
	objects [][]string
}

func (h *holder) lost() []Role {
	out := slices.Clone(h.roles)
	for i := range out {
		out[i].Missing = true
	}

	return out
}

func (h *holder) in(namespace, scope string, missing map[string]struct{}, why Reason) Service {
	out := Service{Operator: h.operator, Namespace: namespace, Scope: scope, State: Served, Roles: h.roles}
	lost := 0

	for i := range h.roles {
		if !slices.ContainsFunc(h.objects[i], func(o string) bool { _, is := missing[o]; return is }) {
			continue
		}

		if lost == 0 {
			out.Roles = slices.Clone(h.roles)
		}

		out.Roles[i].Missing = true
		lost++
	}

	switch {
	case len(h.roles) == 0:
		out.State = Idle
	case lost == 0:
		return out
	case lost == len(h.roles):
		out.State = Failed
	default:
		out.State = Partial
	}

	out.Reason, out.Message = why.Reason, why.Message
	if out.State != Idle && out.Reason == "" {
		out.Reason, out.Message = "Pending", "it is not written yet; is Ambit running?"
	}

	return out
}

// holders are the accounts that a scope projects, or the subjects that it binds, in order.
func holders(s *plan.ScopePlan, rules func(string) []rbacv1.PolicyRule) []*holder {
	found := map[Operator]*holder{}

	var out []*holder

	get := func(o Operator) *holder {
		if found[o] == nil {
			found[o] = &holder{operator: o}
			out = append(out, found[o])
		}

		return found[o]
	}

	for _, account := range s.Accounts {
		get(Operator{rbacv1.ServiceAccountKind, s.Scope.Key.Namespace, account})
	}

	copies := map[string]*plan.Copy{}
	for i := range s.Copies {
		copies[string(s.Copies[i].Kind)+s.Copies[i].Slot] = &s.Copies[i]
	}

	for i := range s.Copies {
		b := &s.Copies[i]
		if !b.Kind.IsBinding() {
			continue
		}

		role, objects := roleOf(s, b, copies, rules)

		for _, subject := range b.Subjects {
			h := get(Operator{subject.Kind, subject.Namespace, subject.Name})
			h.roles = append(h.roles, role)
			h.objects = append(h.objects, objects)
		}
	}

	return out
}

// roleOf is the role of a copied binding, and the objects that it takes.
func roleOf(
	s *plan.ScopePlan, b *plan.Copy, copies map[string]*plan.Copy, rules func(string) []rbacv1.PolicyRule,
) (Role, []string) {
	objects := []string{string(b.Kind) + b.Slot}
	ref, name := copies[b.RoleRef.Kind+b.RoleRef.Name], b.RoleRef.Name
	if made := s.ClusterRoles[name]; b.RoleRef.Kind == string(projected.ClusterRole) && made != "" {
		name = made
	}

	role := Role{Name: b.RoleRef.Kind + " " + name}

	if source, ok := projected.ParseSource(b.Source); ok && source.Kind == string(b.Kind) {
		role.Binding = named(b.Source)
	}

	if ref != nil {
		role.Name, role.Rules = named(ref.Source), scope.WithoutGuard(ref.Rules)
		objects = append(objects, string(ref.Kind)+ref.Slot)
	} else if b.RoleRef.Kind == string(projected.ClusterRole) {
		role.Rules = scope.WithoutGuard(rules(name))
	}

	return role, objects
}

// named is an annotation of the form <Kind>/<namespace>/<name>, for users.
func named(annotation string) string {
	kind, name, _ := strings.Cut(annotation, "/")

	return kind + " " + strings.TrimPrefix(name, "/")
}
