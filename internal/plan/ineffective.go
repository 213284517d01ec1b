package plan

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/projected"
)

const (
	namespacesResource = "namespaces"
	leasesGroup        = "coordination.k8s.io"
)

// findUseless names what of the copies helps nobody in a member: rules about what is in no namespace, and the right to lead.
// Neither harms anybody, so they are projected all the same.
func (p *ScopePlan) findUseless(f *facts.Facts) {
	leads := map[string]bool{}

	for i := range p.Copies {
		c := &p.Copies[i]
		if c.Kind != projected.Role {
			continue
		}

		for j := range c.Rules {
			p.Ineffective = append(p.Ineffective, ineffective(&c.Rules[j], f)...)
			leads[c.Slot] = leads[c.Slot] || slices.Contains(c.Rules[j].APIGroups, leasesGroup)
		}
	}

	for i := range p.Copies {
		c := &p.Copies[i]
		source, _ := projected.ParseSource(c.Source)

		if c.Kind == projected.RoleBinding && (c.OfCopy && leads[c.RoleRef.Name] || isCalledLeading(c.SourceRole, source.Name)) {
			p.Leases = append(p.Leases, source.Name)
		}
	}

	p.Ineffective = slices.Compact(slices.Sorted(slices.Values(p.Ineffective)))
	slices.Sort(p.Leases)
}

// isCalledLeading says whether names are those that kubebuilder, Helm charts and IBM's operators give to what leader election
// needs, which may be ConfigMaps and events instead of Leases.
func isCalledLeading(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		return strings.Contains(strings.ReplaceAll(strings.ToLower(name), "-", ""), "leaderelect")
	})
}

// ineffective are the parts of a rule of a Role that mean nothing, in words. Wildcards mean what there is in a namespace, and
// a resource that is not known to be cluster-scoped is not named.
func ineffective(r *rbacv1.PolicyRule, f *facts.Facts) []string {
	var out []string

	for _, what := range ResourcesOf(r) {
		verbs := r.Verbs

		// A request that names a namespace counts as one in it.
		if what == namespacesResource {
			verbs = slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool { return verb != "list" && verb != "watch" })
		}

		if _, clusterScoped := f.ClusterScoped[what]; clusterScoped && len(verbs) > 0 {
			out = append(out, inWords(verbs, what))
		}
	}

	return out
}

// maxWords is how long the verbs of a rule, and what they are about, are told. Whoever writes the rule decides how long they are,
// and the verbs are told again with each resource.
const maxWords = 250

func inWords(verbs []string, what string) string {
	return printable.Cut(strings.Join(verbs, ", "), maxWords) + " " + printable.Cut(what, maxWords)
}
