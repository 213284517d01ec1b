package plan

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/rights"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// explicit returns what a scope makes that itself says what to make: Roles, ClusterRoles, and bindings of them. Nothing else has
// their names, so a generateName captures nothing. Only the name of a fixed ClusterRole is known beforehand: it is not made where
// somebody else has one of that name.
func (p *ScopePlan) explicit(f *facts.Facts) []Copy {
	var copies []Copy

	// A ClusterRole is somebody else's that exists and that Ambit did not make.
	foreign := func(name string) bool {
		live, exists := f.ClusterRoles[name]
		if !exists || live.Made {
			return false
		}

		p.Foreign = append(p.Foreign, name)

		return true
	}

	for i := range p.Scope.Defines {
		role := &p.Scope.Defines[i]
		if !role.Fixed || !foreign(role.Name) {
			copies = append(copies, p.clusterRole(role))
		}
	}

	for i := range p.Scope.Roles {
		role := &p.Scope.Roles[i]
		c := p.newCopy(projected.Role, role.Name, role.Name, role.Source)
		c.Rules = role.Rules
		copies = append(copies, c.finished())
	}

	for i := range p.Scope.Binds {
		copies = append(copies, p.binding(&p.Scope.Binds[i]))
	}

	if !p.Everywhere {
		p.findIneffective(f)
	}

	p.Foreign = slices.Compact(slices.Sorted(slices.Values(p.Foreign)))

	return copies
}

func (p *ScopePlan) clusterRole(role *scope.ClusterRole) Copy {
	c := p.newCopy(projected.ClusterRole, role.Name, role.Name, role.Source)
	c.Rules, c.Aggregates = role.Rules, role.Aggregates

	if role.Guarded {
		c.Rules = append(slices.Clone(role.Rules), scope.GuardRule())
	}

	c.Fixed, c.Guarded = role.Fixed, role.Guarded

	return c.finished()
}

func (p *ScopePlan) binding(b *scope.Binding) Copy {
	kind, of := projected.RoleBinding, projected.ClusterRole

	switch {
	case b.Local:
		of = projected.Role
	case p.Everywhere || b.Everywhere:
		kind = projected.ClusterRoleBinding
	}

	source := projected.Source{Kind: string(of), Name: b.Role}
	name, from := projected.Slot(p.ScopeHash, source), source.String()

	// A role of an install is bound once, under its own name.
	if p.Scope.Installed() {
		name, from = b.Role, p.Owner
	}

	c := p.newCopy(kind, name, b.Role, from)
	c.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: string(of), Name: b.Role}
	c.Subjects, c.OfCopy = b.Subjects, true

	return c.finished()
}

// findIneffective names what the rules say about things that have no namespace. The rules are bound all the same: a rule that
// means nothing harms nobody.
func (p *ScopePlan) findIneffective(f *facts.Facts) {
	for i := range p.Scope.Binds {
		if p.Scope.Binds[i].Everywhere {
			continue
		}

		for j := range p.Scope.Binds[i].Rules {
			r := &p.Scope.Binds[i].Rules[j]
			p.Ineffective = append(p.Ineffective, ineffective(r, f)...)

			for _, url := range r.NonResourceURLs {
				p.Ineffective = append(p.Ineffective, inWords(r.Verbs, url))
			}
		}
	}

	p.Ineffective = slices.Compact(slices.Sorted(slices.Values(p.Ineffective)))
}

// ClusterScoped are the resources, of those that the rules of scopes name, that have no namespace, as facts have them.
func ClusterScoped(scopes []scope.Scope, has func(group, resource string) bool) map[string]struct{} {
	out := map[string]struct{}{}

	for i := range scopes {
		for _, b := range scopes[i].Binds {
			for j := range b.Rules {
				for _, what := range ResourcesOf(&b.Rules[j]) {
					if resource := schema.ParseGroupResource(what); has(resource.Group, resource.Resource) {
						out[what] = struct{}{}
					}
				}
			}
		}
	}

	return out
}

// ResourcesOf returns what a rule names, as "resource" or "resource.group", without subresources and wildcards.
func ResourcesOf(r *rbacv1.PolicyRule) []string {
	var out []string

	for _, group := range rights.Distinct(r.APIGroups) {
		for _, resource := range rights.Distinct(r.Resources) {
			resource, _, _ = strings.Cut(resource, "/")
			if resource == rbacv1.ResourceAll || group == rbacv1.APIGroupAll {
				continue
			}

			out = append(out, strings.TrimSuffix(resource+"."+group, "."))
		}
	}

	return out
}
