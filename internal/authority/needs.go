package authority

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/rights"
)

const (
	rolesResource           = "roles"
	bindingsResource        = "rolebindings"
	clusterRolesResource    = "clusterroles"
	clusterBindingsResource = "clusterrolebindings"

	create = "create"
	patch  = "patch"
)

// OfChange returns what is missing for one change in a member: the verb itself, and for what the change hands out the
// right to hand it out, as the API server asks for it. copies is all that the scope projects.
func OfChange(held []rbacv1.PolicyRule, c *plan.Change, copies []plan.Copy) []rbacv1.PolicyRule {
	resource := c.Key.Kind.Resource()

	var wanted []rbacv1.PolicyRule

	switch c.Action {
	case plan.Create:
		wanted = append(wanted, rule(resource, "", create))
	case plan.Update, plan.Empty, plan.Hold:
		wanted = append(wanted, rule(resource, c.Key.Name, patch))
	case plan.Delete:
		wanted = append(wanted, rule(resource, c.Key.Name, "delete"))
	}

	missing := MissingToWrite(held, wanted)

	switch {
	case c.Copy == nil:
	case c.Rules != nil:
		missing = append(missing, unlessAllowed(held, rule(resource, "", "escalate"), c.Rules)...)
	default:
		missing = append(missing, ofCopy(held, c.Copy, copies)...)
	}

	return missing
}

// OfMember returns what is missing in a member to write, correct and take back everything that a scope projects there.
func OfMember(held []rbacv1.PolicyRule, copies []plan.Copy) []rbacv1.PolicyRule {
	missing := MissingToWrite(held, Writing())

	for i := range copies {
		missing = append(missing, ofCopy(held, &copies[i], copies)...)
	}

	return Merge(missing)
}

// Writing are the rights on projected objects themselves, whatever is in them.
func Writing() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{bindingsResource, rolesResource},
		Verbs: []string{create, "delete", patch},
	}}
}

// Installing are the rights on roles and bindings that an install needs in a member, or in the whole cluster where member is
// empty. What it leaves behind is taken away by the garbage collector and by Ambit itself, so deleting is not among them.
func Installing(member string) []rbacv1.PolicyRule {
	resources := []string{bindingsResource, rolesResource}
	if member == "" {
		resources = []string{clusterBindingsResource, clusterRolesResource}
	}

	return []rbacv1.PolicyRule{{APIGroups: []string{rbacv1.GroupName}, Resources: resources, Verbs: []string{create, patch}}}
}

// InOperatorNamespace are the rights in the operator namespace: on the watch list, and to restart its readers. The right to
// create the ConfigMap can be limited to its name, because it is created by server-side apply, which names it
// (createAuthorizerAttributes in k8s.io/apiserver/pkg/endpoints/handlers/patch.go).
func InOperatorNamespace(watchList string) []rbacv1.PolicyRule {
	var restarting []rbacv1.PolicyRule

	for i := range facts.WorkloadTypes {
		if t := &facts.WorkloadTypes[i]; t.Restart == facts.ByTemplate {
			restarting = append(restarting, OfInjection(t.Kind)...)
		}
	}

	return slices.Concat([]rbacv1.PolicyRule{
		{
			APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{watchList},
			Verbs: []string{create, "delete", patch},
		},
		{APIGroups: []string{""}, Resources: []string{"pods/eviction"}, Verbs: []string{create}},
	}, Merge(restarting))
}

// OfInjection is the right in the operator namespace to inject into a workload, or into a ClusterServiceVersion.
func OfInjection(kind facts.WorkloadKind) []rbacv1.PolicyRule {
	group, resource := "operators.coreos.com", "clusterserviceversions"
	if t := kind.Type(); t != nil {
		group, resource = t.Resource.Group, t.Resource.Resource
	}

	return []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{patch}}}
}

// OfWebhooks is the right to limit webhooks to members, in the whole cluster.
func OfWebhooks() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{"admissionregistration.k8s.io"},
		Resources: []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, Verbs: []string{patch},
	}}
}

// ofCopy returns what is missing to hand out what a copy says.
func ofCopy(held []rbacv1.PolicyRule, c *plan.Copy, copies []plan.Copy) []rbacv1.PolicyRule {
	h := c.Handout(copies)
	if !h.Known {
		// Whoever holds all of its rules need not be allowed to bind it. Which rules those are is not known here; the API server
		// says.
		return Missing(held, []rbacv1.PolicyRule{h.Instead})
	}

	return unlessAllowed(held, h.Instead, h.Rules)
}

func unlessAllowed(held []rbacv1.PolicyRule, instead rbacv1.PolicyRule, rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	missing := Missing(held, rules)
	if len(missing) > 0 && Missing(held, []rbacv1.PolicyRule{instead}) == nil {
		return nil
	}

	return missing
}

func rule(resource, name string, verbs ...string) rbacv1.PolicyRule {
	return rights.To(rbacv1.Resource(resource), name, verbs...)
}
