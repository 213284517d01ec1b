package install

import (
	"fmt"
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/ambit-k8s/ambit/internal/compile"
)

const (
	allOf = "*"
	// maxWebhooks is how many webhook definitions of one CSV are served. Each of them may be called for every write in the targets.
	maxWebhooks = 100
	// namespacesResource is cluster-scoped, but the namespaceSelector of a webhook is matched against the labels of the namespace
	// itself.
	namespacesResource = "namespaces"
)

// guarded are the API groups that no operator may stand in the way of: those that give and take permissions, that say who
// somebody is and what they may do, that install operators, and that limit them. A webhook that changes what Ambit writes there
// would speak with Ambit's rights. OLM refuses its own group, all groups, and admissionregistration (ValidWebhookRules in
// pkg/controller/install/webhook.go).
func guarded() []string {
	return append([]string{
		"admissionregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "rbac.authorization.k8s.io",
	}, declaredIn()...)
}

// webhookProblem says why the webhooks of a CSV cannot be set up for targets; empty when they can.
func (w *Snapshot) webhookProblem(csv *olm.ClusterServiceVersion, targets []string) string {
	defined := csv.Spec.WebhookDefinitions
	if n := len(defined); n > maxWebhooks {
		return fmt.Sprintf("it has %d webhookdefinitions, and %d are the most", n, maxWebhooks)
	}

	for i := range defined {
		d := &defined[i]

		var why string

		switch {
		case !lists(csv, d.DeploymentName):
			why = fmt.Sprintf("it has no deployment %q to answer", d.DeploymentName)
		case !isFound(csv, d.DeploymentName):
			why = fmt.Sprintf("the pods of deployment %q have no label by which a Service could find them", d.DeploymentName)
		case slices.ContainsFunc(defined[:i], func(o olm.WebhookDescription) bool { return contradict(&o, d) }):
			why = fmt.Sprintf("another one has port %d of deployment %q, too, with another target port", portOf(d), d.DeploymentName)
		case slices.ContainsFunc(defined[:i], func(o olm.WebhookDescription) bool { return collide(&o, d) }):
			why = fmt.Sprintf("another deployment than %q answers for webhooks by Service %s, too; give one of the two another name",
				d.DeploymentName, serviceOf(d.DeploymentName))
		case d.Type == olm.ConversionWebhook:
			why = conversionProblem(csv, defined[:i], d)
		default:
			why = w.rulesProblem(csv, d.Rules, compile.IsEverywhere(targets))
		}

		if why != "" {
			return fmt.Sprintf("webhook %s: %s", d.GenerateName, why)
		}
	}

	return ""
}

// contradict says whether two webhooks want one port of a Service to lead to two of its pods.
func contradict(a, b *olm.WebhookDescription) bool {
	return a.DeploymentName == b.DeploymentName && portOf(a) == portOf(b) && len(addPort(addPort(nil, a), b)) > 1
}

// collide says whether two webhooks are those of two Deployments whose names make one name of a Service.
func collide(a, b *olm.WebhookDescription) bool {
	return a.DeploymentName != b.DeploymentName && serviceOf(a.DeploymentName) == serviceOf(b.DeploymentName)
}

// isFound says whether a Service can find the pods of a Deployment.
func isFound(csv *olm.ClusterServiceVersion, deployment string) bool {
	return slices.ContainsFunc(csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs, func(s olm.StrategyDeploymentSpec) bool {
		return s.Name == deployment && len(selects(&s.Spec)) > 0
	})
}

// rulesProblem says what of the rules reaches beyond what the operator may stand in the way of.
func (w *Snapshot) rulesProblem(csv *olm.ClusterServiceVersion, rules []admissionv1.RuleWithOperations, everywhere bool) string {
	if why := reachesTooFar(rules); why != "" || everywhere {
		return why
	}

	for i := range rules {
		if isAboutMore(&rules[i]) {
			return "one of its rules is about namespaces and, by *, about everything else; its group is for some namespaces only: " +
				"give namespaces a rule of their own"
		}

		if beyond := w.beyondTargets(csv, &rules[i]); beyond != "" {
			return "its rules are about " + beyond + ", which are in no namespace, and the operator does not bring them; its group " +
				"is for some namespaces only"
		}
	}

	return ""
}

// reachesTooFar says which API groups rules are about that no operator may stand in the way of, wherever it works.
func reachesTooFar(rules []admissionv1.RuleWithOperations) string {
	for i := range rules {
		for _, group := range rules[i].APIGroups {
			if group == allOf {
				return "its rules are about all API groups; name those that the operator is about"
			}

			if slices.Contains(guarded(), group) {
				return "its rules are about the API group " + group + ", which no operator may stand in the way of"
			}
		}
	}

	return ""
}

// beyondTargets names a cluster-scoped resource of others that a rule is explicitly about.
func (w *Snapshot) beyondTargets(csv *olm.ClusterServiceVersion, r *admissionv1.RuleWithOperations) string {
	if w.isOwn(csv, r) {
		return ""
	}

	if r.Scope != nil && *r.Scope == admissionv1.ClusterScope {
		return strings.Join(r.Resources, ", ")
	}

	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			resource, _, _ = strings.Cut(resource, "/")
			if group == "" && resource == namespacesResource || w.IsClusterScoped == nil {
				continue
			}

			if w.IsClusterScoped(group, resource) {
				return resource
			}
		}
	}

	return ""
}

// isOwn says whether a rule is about nothing but APIs that the operator itself brings, by definitions that are there: anything
// can be called its own.
func (w *Snapshot) isOwn(csv *olm.ClusterServiceVersion, r *admissionv1.RuleWithOperations) bool {
	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			resource, _, _ = strings.Cut(resource, "/")
			name := resource + "." + group

			if resource == allOf || len(w.CRDs[name].Served) == 0 || !slices.ContainsFunc(csv.Spec.CustomResourceDefinitions.Owned,
				func(crd olm.CRDDescription) bool { return crd.Name == name }) {
				return false
			}
		}
	}

	return true
}

// namespacesOf is the part of a rule that is about namespaces themselves; it has no resources where there is none.
func namespacesOf(r *admissionv1.RuleWithOperations) *admissionv1.RuleWithOperations {
	out := r.DeepCopy()
	out.APIGroups, out.Resources = []string{""}, nil

	if slices.Contains(r.APIGroups, "") {
		out.Resources = slices.DeleteFunc(slices.Clone(r.Resources), func(resource string) bool {
			resource, _, _ = strings.Cut(resource, "/")

			return resource != namespacesResource
		})
	}

	return out
}

// isAboutMore says whether a rule is about namespaces and, without a name, about everything else.
func isAboutMore(r *admissionv1.RuleWithOperations) bool {
	return len(namespacesOf(r).Resources) > 0 && slices.ContainsFunc(r.Resources, func(resource string) bool {
		resource, _, _ = strings.Cut(resource, "/")

		return resource == allOf
	})
}

// limited are the rules of a webhook for a group that is for some namespaces: they are about nothing that has no namespace, but
// for what the operator brings, and for the targets themselves, of which a rule that is about more is a part. A selector of
// namespaces does not keep other cluster-scoped objects out.
func (w *Snapshot) limited(
	csv *olm.ClusterServiceVersion, rules []admissionv1.RuleWithOperations, everywhere bool,
) []admissionv1.RuleWithOperations {
	if everywhere {
		return rules
	}

	out := make([]admissionv1.RuleWithOperations, 0, len(rules))

	for i := range rules {
		r := &rules[i]
		if w.isOwn(csv, r) {
			out = append(out, *r)

			continue
		}

		targets := namespacesOf(r)
		if len(targets.Resources) > 0 {
			out = append(out, *targets)
		}

		if len(targets.Resources) < len(r.Resources) || len(targets.APIGroups) < len(r.APIGroups) {
			scope := admissionv1.NamespacedScope
			r.Scope = &scope
			out = append(out, *r)
		}
	}

	return out
}
