package plan

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/rights"
)

// Handout is what whoever writes a copy has to hold: all of its rules, or the one that allows to hand out others. The API server
// lets nobody write a rule that they do not hold, unless they may escalate; nor bind a role whose rules they do not hold, unless
// they may bind it (k8s.io/kubernetes/pkg/registry/rbac, policybased storage of roles and rolebindings).
type Handout struct {
	Rules   []rbacv1.PolicyRule
	Instead rbacv1.PolicyRule
	// Known says that the rules are known. Those of a ClusterRole of somebody else's are not.
	Known bool
}

// Handout is that of the copy. copies is all that the scope projects.
func (c *Copy) Handout(copies []Copy) Handout {
	if !c.Kind.IsBinding() {
		// Without a name: the request that creates a role names none.
		return Handout{Rules: c.handedOut(), Instead: rbacRule(c.Kind, "", "escalate"), Known: true}
	}

	kind := projected.Kind(c.RoleRef.Kind)
	h := Handout{Instead: rbacRule(kind, c.RoleRef.Name, "bind"), Known: kind == projected.Role}

	for i := range copies {
		if copies[i].Kind == kind && copies[i].Name == c.RoleRef.Name {
			h.Rules, h.Known = copies[i].Rules, true

			break
		}
	}

	return h
}

// handedOut are the rules that a role gives. An aggregated role may give anything
// (k8s.io/kubernetes/pkg/registry/rbac/clusterrole/policybased: "must have cluster-admin privileges to use the
// aggregationRule").
func (c *Copy) handedOut() []rbacv1.PolicyRule {
	if len(c.Aggregates) == 0 {
		return c.Rules
	}

	return rights.Everything()
}

func rbacRule(kind projected.Kind, name, verb string) rbacv1.PolicyRule {
	return rights.To(rbacv1.Resource(kind.Resource()), name, verb)
}
