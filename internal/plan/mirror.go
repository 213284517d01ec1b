package plan

import (
	"cmp"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// resolveAccounts finds whose permissions are projected: the service accounts of the operands, and those listed by name.
// The pod templates count as well as the pods, so that a restart or a scale to zero revokes nothing.
func (p *ScopePlan) resolveAccounts(operatorNamespace *facts.OperatorNamespace) {
	wanted := sets.New(p.Scope.Accounts.Named...)

	if p.Scope.Accounts.All {
		wanted = wanted.Union(sets.KeySet(operatorNamespace.Accounts))
	}

	if p.Scope.Accounts.OfOperands {
		p.addOperands(operatorNamespace, wanted)
	}

	for _, name := range sets.List(wanted) {
		if _, exists := operatorNamespace.Accounts[name]; exists {
			p.Accounts = append(p.Accounts, name)
		} else {
			p.MissingAccounts = append(p.MissingAccounts, name)
		}
	}
}

func (p *ScopePlan) addOperands(operatorNamespace *facts.OperatorNamespace, wanted sets.Set[string]) {
	for i := range operatorNamespace.Workloads {
		if t := &operatorNamespace.Workloads[i].Template; p.Scope.Operands.Matches(t.Labels) {
			wanted.Insert(t.Account)
		}
	}

	for i := range operatorNamespace.Pods {
		if t := &operatorNamespace.Pods[i].Template; p.Scope.Operands.Matches(t.Labels) {
			wanted.Insert(t.Account)
		}
	}
}

// mirror copies each RoleBinding that names a projected account, and the Role behind it. A copy never says more than its
// source: the rules are the source's own, the subjects are projected accounts that the source names.
func (p *ScopePlan) mirror(f *facts.Facts, subjectsOf map[string][]rbacv1.Subject) []Copy {
	roles, slots := map[string]Copy{}, sets.Set[string]{}

	var bindings []Copy

	for _, name := range slices.Sorted(maps.Keys(subjectsOf)) {
		binding, subjects := f.OperatorNamespace.Bindings[name], subjectsOf[name]

		// Somebody may have given an object of theirs that name, or that slot.
		slot := binding.Slot
		_, isBinding := f.OperatorNamespace.Bindings[slot]

		if _, isRole := f.OperatorNamespace.Roles[slot]; isBinding || isRole || slots.Has(slot) {
			slot = ""
		}

		slots.Insert(slot)

		ref, exists := p.roleRef(binding.RoleRef, slot, f, roles)
		if !exists {
			p.DanglingBindings = append(p.DanglingBindings, Dangling(name, binding.RoleRef.Kind, binding.RoleRef.Name))

			continue
		}

		b := p.copyOf(projected.RoleBinding, name, slot, binding.RoleRef.Name, func(o *projected.Object) {
			o.RoleRef, o.Subjects = ref, subjects
		})
		b.OfCopy = ref.Kind == string(projected.Role)
		bindings = append(bindings, b)
	}

	copies := collect.Map(slices.Sorted(maps.Keys(roles)), func(name string) Copy { return roles[name] })

	return append(copies, bindings...)
}

// roleRef says what the copy of a binding refers to: the copy of the same Role, by its slot, or the same ClusterRole. A binding
// whose role does not exist is not copied: whoever may create that role in a member would decide what it grants.
func (p *ScopePlan) roleRef(source rbacv1.RoleRef, slot string, f *facts.Facts, roles map[string]Copy) (rbacv1.RoleRef, bool) {
	if source.Kind == "ClusterRole" {
		_, exists := f.ClusterRoles[source.Name]

		return source, exists || f.ClusterRoles == nil
	}

	rules, exists := f.OperatorNamespace.Roles[source.Name]
	if !exists {
		return rbacv1.RoleRef{}, false
	}

	role, made := roles[source.Name]
	if !made {
		role = p.copyOf(projected.Role, source.Name, slot, source.Name, func(o *projected.Object) { o.Rules = rules })
		roles[source.Name] = role
	}

	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Slot}, true
}

// copyOf copies an object by its name, or by its slot if it has one: a plan, which is made before the object, knows that alone.
func (p *ScopePlan) copyOf(kind projected.Kind, name, slot, role string, fill func(*projected.Object)) Copy {
	source := projected.Source{Kind: string(kind), Namespace: p.Scope.Key.Namespace, Name: cmp.Or(slot, name)}
	known := projected.Slot(p.ScopeHash, source)
	source.Name = name
	c := p.newCopy(kind, known, role, source.String())
	fill(&c.Object)

	return c.finished()
}

func (p *ScopePlan) newCopy(kind projected.Kind, slot, role, source string) Copy {
	c := Copy{SourceRole: role, Object: projected.Object{
		Kind: kind, Slot: slot, Name: slot, ScopeHash: p.ScopeHash, Owner: p.Owner, Source: source,
	}}

	if o := &p.Scope.Owner; p.Scope.OwnerUID != "" {
		c.OwnerRefs = []projected.OwnerRef{{
			APIVersion: o.Group + "/" + p.Scope.OwnerVersion, Kind: o.Kind, Name: o.Name, UID: p.Scope.OwnerUID,
			Namespace: o.Namespace,
		}}
	}

	return c
}

// finished is the copy once its content is complete.
func (c *Copy) finished() Copy {
	c.Sum = c.Digest(scope.ManagedBy)

	return *c
}

// subjects keeps the projected accounts that a binding names, sorted. Every subject is a service account with its
// namespace (CVE-2023-46254 in capsule-proxy: a service account was matched by name alone).
func (p *ScopePlan) subjects(source []rbacv1.Subject) []rbacv1.Subject {
	return collect.Map(p.accountsNamedBy(source), func(account string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: p.Scope.Key.Namespace, Name: account}
	})
}

// accountsNamedBy are the projected accounts that subjects name, sorted. A group stands for all of them, once or often.
func (p *ScopePlan) accountsNamedBy(subjects []rbacv1.Subject) []string {
	operatorNamespace, named := p.Scope.Key.Namespace, sets.Set[string]{}

	for i := range subjects {
		switch s := &subjects[i]; s.Kind {
		case rbacv1.ServiceAccountKind:
			// Without a namespace, the API server's authorizer takes the one of the binding (appliesToUser in
			// k8s.io/kubernetes/pkg/registry/rbac/validation/rule.go).
			if cmp.Or(s.Namespace, operatorNamespace) == operatorNamespace {
				named.Insert(p.projectedAccount(s.Name)...)
			}
		case rbacv1.GroupKind:
			if s.Name == scope.GroupAccounts || s.Name == scope.GroupOfAccounts(operatorNamespace) {
				return p.Accounts
			}
		case rbacv1.UserKind:
			named.Insert(p.projectedAccount(scope.AccountIn(operatorNamespace, s.Name))...)
		}
	}

	return sets.List(named)
}

func (p *ScopePlan) projectedAccount(name string) []string {
	if i, found := slices.BinarySearch(p.Accounts, name); found {
		return p.Accounts[i : i+1]
	}

	return nil
}

// Dangling names a binding whose role does not exist, for users.
func Dangling(binding, kind, role string) string {
	return printable.Name(binding) + ": " + kind + " " + printable.Name(role)
}
