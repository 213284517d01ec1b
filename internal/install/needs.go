package install

import (
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Present are the targets in which something can be written now: those that exist, are not being deleted, and are accessible.
// What an account may do in any other is unknown, and must not keep the operator from these.
func Present(targets []string, namespaces map[string]facts.Namespace) []string {
	return slices.DeleteFunc(slices.Clone(targets), func(name string) bool {
		ns, found := namespaces[name]

		return name != corev1.NamespaceAll && (!found || ns.Terminating || ns.Closed != "")
	})
}

// Needs is everything that an account must hold to install a ClusterServiceVersion for targets, in every place: to write the
// CSV's annotations, the operator's accounts, roles, bindings and deployments, and what those roles hand out. Each right on
// an object that is named beforehand is limited to its name; the API server takes the right to create for any name, or none.
func Needs(csv *olm.ClusterServiceVersion, namespace string, targets []string) []authority.Place {
	return needs(csv, namespace, compile.Install{Targets: targets})
}

// NeedsConfined is Needs where Ambit has rights in single namespaces only: nothing is written in the cluster as a whole, and the
// account itself has to see what it wrote, and to take it back.
func NeedsConfined(csv *olm.ClusterServiceVersion, namespace string, targets []string) []authority.Place {
	return needs(csv, namespace, compile.Install{Targets: targets, Confined: true})
}

func needs(csv *olm.ClusterServiceVersion, namespace string, in compile.Install) []authority.Place {
	csv = csv.DeepCopy()
	csv.Namespace = namespace

	if in.Confined {
		csv.Spec.WebhookDefinitions = nil // They cannot be set up, and would have the account ask for Secrets in vain.
	}

	s := compile.ClusterServiceVersion(csv, in)

	places := []authority.Place{{Namespace: namespace, Rules: ownNeeds(csv)}}

	if len(s.Roles) > 0 {
		for _, member := range s.Members.Named {
			rules := authority.Installing(member)
			if in.Confined {
				rules = append(rules, takingBack())
			}

			places = append(places, authority.Place{Namespace: member, Rules: rules, Handed: handed(&s, true)})
		}
	}

	if in.Confined {
		return authority.Places(places)
	}

	if rules := webhookNeeds(csv); len(rules) > 0 {
		places = append(places, authority.Place{Rules: rules})
	}

	if len(s.Defines) > 0 {
		places = append(places, authority.Place{Rules: authority.Installing(""), Handed: handed(&s, false)})
	}

	return authority.Places(places)
}

// takingBack is the right to see Roles and RoleBindings, and to delete them: nobody else could take away there what is granted.
func takingBack() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"rolebindings", "roles"},
		Verbs: []string{"delete", "get", "list", "watch"},
	}
}

// handed are the rules that a scope hands out in each member, or in the cluster.
func handed(s *scope.Scope, local bool) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule

	for i := range s.Binds {
		if s.Binds[i].Local == local {
			rules = append(rules, s.Binds[i].Rules...)
		}
	}

	return rules
}

// ownNeeds are the rights in the CSV's own namespace on anything but roles and bindings.
func ownNeeds(csv *olm.ClusterServiceVersion) []rbacv1.PolicyRule {
	rules := onNamed(olm.GroupName, "clusterserviceversions", []string{csv.Name}, "patch")
	rules = append(rules, creating("", "serviceaccounts", ownAccounts(csv))...)

	specs := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	deployments := collect.Map(specs, func(s olm.StrategyDeploymentSpec) string { return s.Name })
	rules = append(rules, creating("apps", "deployments", deployments)...)

	serving := ServingOf(csv)
	rules = append(rules, writing("", "services", collect.Map(serving, func(s Serving) string { return s.Service }))...)

	return append(rules, writing("", "secrets", collect.Map(serving, func(s Serving) string { return s.Secret }))...)
}

// webhookNeeds are the rights in the cluster on webhook configurations, and on the definitions that are converted.
func webhookNeeds(csv *olm.ClusterServiceVersion) []rbacv1.PolicyRule {
	var (
		rules       []rbacv1.PolicyRule
		definitions []string
	)

	named := WebhookResources(csv)
	for _, resource := range []string{resourceValidating, resourceMutating} {
		rules = append(rules, writing("admissionregistration.k8s.io", resource, named[resource])...)
	}

	for i := range csv.Spec.WebhookDefinitions {
		if d := &csv.Spec.WebhookDefinitions[i]; d.Type == olm.ConversionWebhook {
			definitions = append(definitions, d.ConversionCRDs...)
		}
	}

	if len(definitions) > 0 {
		rules = append(rules, onNamed("apiextensions.k8s.io", "customresourcedefinitions", definitions, "patch")...)
	}

	return rules
}

// writing are the rights to create and to change objects, and to look at one that exists already.
func writing(group, resource string, names []string) []rbacv1.PolicyRule {
	if len(names) == 0 {
		return nil
	}

	return append(creating(group, resource, names), onNamed(group, resource, names, "get")...)
}

// creating are the rights to create and to change objects. The request that creates one does not name it.
func creating(group, resource string, names []string) []rbacv1.PolicyRule {
	if len(names) == 0 {
		return nil
	}

	return append(onNamed(group, resource, names, "patch"),
		rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"create"}})
}

func onNamed(group, resource string, names []string, verbs ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: slices.Clone(names), Verbs: verbs,
	}}
}
