package plan

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
)

// explicit returns what a scope makes that says so itself: ClusterRoles, and bindings of them. A ClusterRole that is
// somebody else's is neither made nor bound, whatever its name: a generateName must capture nothing.
func (p *ScopePlan) explicit(f *facts.Facts) []Copy {
	var copies []Copy

	foreign := func(name string) bool {
		if !isForeign(name, f) {
			return false
		}

		p.Foreign = append(p.Foreign, name)

		return true
	}

	for i := range p.Scope.Defines {
		role := &p.Scope.Defines[i]
		if !foreign(role.Name) {
			copies = append(copies, p.clusterRole(role.Name, role.Source, role.Rules))
		}
	}

	kind := projected.RoleBinding
	if p.Everywhere {
		kind = projected.ClusterRoleBinding
	}

	for i := range p.Scope.Binds {
		b := &p.Scope.Binds[i]
		if foreign(b.Role) {
			continue
		}

		source := projected.Source{Kind: string(projected.ClusterRole), Name: b.Role}
		c := p.newCopy(kind, projected.Name(p.hash, source), b.Role, source.String())
		c.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: string(projected.ClusterRole), Name: b.Role}
		c.Subjects = b.Subjects
		copies = append(copies, c.finished())
	}

	if !p.Everywhere {
		p.findIneffective(f)
	}

	slices.Sort(p.Foreign)
	p.Foreign = slices.Compact(p.Foreign)

	return copies
}

func (p *ScopePlan) clusterRole(name, source string, rules []rbacv1.PolicyRule) Copy {
	c := p.newCopy(projected.ClusterRole, name, name, source)
	c.Rules = rules

	return c.finished()
}

// findIneffective names what the rules say about things that have no namespace. The rules are bound all the same: a rule
// that means nothing harms nobody. A namespace itself counts as being in itself: the API server takes it so.
func (p *ScopePlan) findIneffective(f *facts.Facts) {
	for i := range p.Scope.Binds {
		for _, r := range p.Scope.Binds[i].Rules {
			for _, url := range r.NonResourceURLs {
				p.Ineffective = append(p.Ineffective, strings.Join(r.Verbs, ", ")+" "+url)
			}

			for _, what := range ResourcesOf(&r) {
				if _, clusterScoped := f.ClusterScoped[what]; clusterScoped && what != "namespaces" {
					p.Ineffective = append(p.Ineffective, strings.Join(r.Verbs, ", ")+" "+what)
				}
			}
		}
	}

	slices.Sort(p.Ineffective)
	p.Ineffective = slices.Compact(p.Ineffective)
}

// ResourcesOf returns what a rule names, as "resource" or "resource.group", without subresources and wildcards.
func ResourcesOf(r *rbacv1.PolicyRule) []string {
	var out []string

	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			resource, _, _ = strings.Cut(resource, "/")
			if resource == rbacv1.ResourceAll || group == rbacv1.APIGroupAll {
				continue
			}

			out = append(out, strings.TrimSuffix(resource+"."+group, "."))
		}
	}

	return out
}

// isForeign says whether a ClusterRole exists that Ambit did not make. One that it made and that lost its marks since is
// taken back.
func isForeign(name string, f *facts.Facts) bool {
	live, exists := f.ClusterRoles[name]
	if !exists || live.Made {
		return false
	}

	_, marked := f.Projected[wholeCluster][facts.ProjectedKey{Kind: projected.ClusterRole, Name: name}]

	return !marked
}
