package install

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
)

// Confined is what else is known where Ambit has rights in single namespaces only: nothing can be made in the cluster as a whole,
// and no policy asks who wrote a ClusterServiceVersion.
type Confined struct {
	// Accounts are the service accounts of the namespace that Ambit runs as, or acts as in members.
	Accounts []string
	// AmbitNamespace is the namespace of the account that Ambit runs as, and Secret one of that namespace that nobody else may read.
	AmbitNamespace, Secret string
	// Cluster is what operators' accounts lack of their clusterPermissions, by account.
	Cluster map[string]ClusterLack
}

// ClusterLack is what an account lacks in the cluster as a whole.
type ClusterLack struct {
	Rules []rbacv1.PolicyRule
	// Unknown says why that is not known; empty when it is.
	Unknown string
}

// ResolveNamed finds the targets of a group where it can only name them. Nothing that it says means all namespaces.
func (g *Group) ResolveNamed() Targets {
	const advice = "this Ambit serves namespaces by name alone; list them in spec.targetNamespaces"

	switch {
	case len(g.Named) > 0:
		return g.Resolve(nil, "")
	case g.Selector != nil:
		return Targets{Problem: "spec.selector selects nothing: " + advice}
	default:
		return Targets{Problem: "an OperatorGroup without targetNamespaces is for all namespaces: " + advice}
	}
}

// ClusterPermissions are those that a CSV wants, by account.
func ClusterPermissions(csv *olm.ClusterServiceVersion) map[string][]rbacv1.PolicyRule {
	out := map[string][]rbacv1.PolicyRule{}
	for _, p := range csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions {
		account := compile.AccountOr(p.ServiceAccountName)
		out[account] = append(out[account], p.Rules...)
	}

	return out
}

// actsAsAmbit says how a CSV would get at the account that Ambit runs as; empty when it would not. Whoever may write a CSV
// decides what code runs, as which account of the namespace, and with which Secrets of it.
func (w *Snapshot) actsAsAmbit(csv *olm.ClusterServiceVersion) string {
	c := w.Confined
	if c == nil || w.Group == nil {
		return ""
	}

	for _, name := range append(accounts(csv), podAccounts(csv)...) {
		if slices.Contains(c.Accounts, name) {
			return "service account " + name + " is Ambit's own, and no operator's"
		}
	}

	const elsewhere = "; install it in another namespace that this Ambit serves"

	if slices.Contains(append([]string{w.Namespace}, w.Group.Targets...), c.AmbitNamespace) {
		if words := leadsToAmbit(csv); words != "" {
			return "its permissions would let it act as Ambit, which runs in namespace " + c.AmbitNamespace + ": " + words + elsewhere
		}
	}

	if w.Namespace != c.AmbitNamespace {
		return ""
	}

	for _, name := range podAccounts(csv) {
		if live, exists := w.Accounts[name]; exists && !live.Made {
			return "Ambit runs in this namespace, so service account " + name + " has to be one of the operator's own" + elsewhere
		}
	}

	switch {
	case namesSecret(csv, c.Secret):
		return "Secret " + c.Secret + " is Ambit's own" + elsewhere
	case reachesNode(csv):
		return "Ambit runs in this namespace, so no pod may reach its node" + elsewhere
	default:
		return ""
	}
}

// reachesNode says whether a pod of a CSV would get at the machine that it runs on, and so at the tokens of all other pods there.
func reachesNode(csv *olm.ClusterServiceVersion) bool {
	return slices.ContainsFunc(csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs, func(s olm.StrategyDeploymentSpec) bool {
		pod := &s.Spec.Template.Spec

		return pod.HostPID || pod.HostIPC || pod.HostNetwork ||
			slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.HostPath != nil }) ||
			slices.ContainsFunc(slices.Concat(pod.InitContainers, pod.Containers), isPrivileged)
	})
}

func isPrivileged(c corev1.Container) bool {
	s := c.SecurityContext
	if s == nil {
		return false
	}

	return s.Privileged != nil && *s.Privileged || s.Capabilities != nil && len(s.Capabilities.Add) > 0 ||
		s.ProcMount != nil && *s.ProcMount != corev1.DefaultProcMount
}

func podAccounts(csv *olm.ClusterServiceVersion) []string {
	specs := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs

	return collect.Map(specs, func(s olm.StrategyDeploymentSpec) string { return facts.AccountOf(&s.Spec.Template.Spec) })
}

// leadsToAmbit says, in words, which of the permissions of a CSV lead to another account of the namespace in which they are
// granted: to run pods, to read or to write Secrets, to ask for tokens, or to be somebody else; or to what Ambit does for whoever
// declares it.
func leadsToAmbit(csv *olm.ClusterServiceVersion) string {
	var found []rbacv1.PolicyRule

	for _, p := range csv.Spec.InstallStrategy.StrategySpec.Permissions {
		for i := range p.Rules {
			if leads(&p.Rules[i]) {
				found = append(found, p.Rules[i])
			}
		}
	}

	if len(found) == 0 {
		return ""
	}

	return authority.Words(found, maxWords)
}

func leads(r *rbacv1.PolicyRule) bool {
	reads := []string{"get", "list", "watch"}
	writes := slices.ContainsFunc(r.Verbs, func(verb string) bool { return !slices.Contains(reads, verb) })

	for _, group := range r.APIGroups {
		if writes && isAny(group, runsOrGrants()...) {
			return true
		}

		if writes && isAny(group, declaredIn()...) && slices.ContainsFunc(r.Resources, declares) {
			return true
		}

		if isAny(group, "") && slices.ContainsFunc(r.Resources, func(resource string) bool { return leadsInCore(resource, writes) }) {
			return true
		}
	}

	return false
}

// runsOrGrants are the API groups of what runs pods, says who may do what, or makes tokens.
func runsOrGrants() []string {
	return []string{"apps", "batch", "apps.openshift.io", "build.openshift.io", rbacv1.GroupName, "authentication.k8s.io"}
}

// declaredIn are the API groups of what declares takes for a declaration.
func declaredIn() []string {
	return []string{"operator.ibm.com", "namespacescope.ibm.com", olm.GroupName}
}

// declares says whether Ambit acts for whoever writes objects of a resource, with what the owners of members granted to it or to
// the accounts that install: no policy asks here who that is.
func declares(resource string) bool {
	return isAny(resource, "namespacescopes", "operatorgroups", "clusterserviceversions")
}

// leadsInCore is leads for a resource of the core group. To run something in a pod, a get is enough.
func leadsInCore(resource string, writes bool) bool {
	kind, sub, _ := strings.Cut(resource, "/")

	switch {
	case isAny(kind, "secrets"):
		return true
	case kind == "pods" && !slices.Contains([]string{"", "log", "status"}, sub):
		return true
	default:
		return writes && slices.Contains([]string{"pods", "replicationcontrollers", "serviceaccounts"}, kind)
	}
}

func isAny(what string, names ...string) bool {
	return what == rbacv1.ResourceAll || slices.Contains(names, what)
}

// namesSecret says whether any string in the Deployments of a CSV is the name of a Secret. Many fields can refer to one, and more
// are to come.
func namesSecret(csv *olm.ClusterServiceVersion, secret string) bool {
	text, err := json.Marshal(csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs)

	return err != nil || strings.Contains(string(text), `"`+secret+`"`)
}

// cannotBeMade adds the requirements of a CSV that are cluster-scoped, and that somebody else has to meet.
func (w *Snapshot) cannotBeMade(csv *olm.ClusterServiceVersion, add func(olm.RequirementStatus, string)) {
	if w.Confined == nil {
		return
	}

	for account, rules := range ClusterPermissions(csv) {
		s := olm.RequirementStatus{
			Group: rbacv1.GroupName, Version: "v1", Kind: "ClusterRoleBinding", Name: account,
			Status: olm.RequirementStatusReasonPresent, Message: "service account " + account + " holds its clusterPermissions",
		}

		lack, asked := w.Confined.Cluster[account]
		if !asked {
			lack = ClusterLack{Rules: rules}
		}

		switch {
		case lack.Unknown != "":
			s.Status = olm.RequirementStatusReasonNotAvailable
			s.Message = "whether service account " + account + " holds its clusterPermissions is not known: " + lack.Unknown
		case len(lack.Rules) > 0:
			s.Status = olm.RequirementStatusReasonNotPresent
			s.Message = fmt.Sprintf("this Ambit grants nothing in the cluster as a whole; let an administrator grant service account "+
				"%s: %s", account, authority.Words(lack.Rules, maxWords))
		default:
			add(s, "")

			continue
		}

		add(s, "clusterPermissions of service account "+account)
	}

	for i := range csv.Spec.WebhookDefinitions {
		d := &csv.Spec.WebhookDefinitions[i]

		add(olm.RequirementStatus{
			Group: "admissionregistration.k8s.io", Version: "v1", Kind: string(d.Type), Name: d.GenerateName,
			Status: ReasonNotSupported, Message: "this Ambit creates nothing cluster-scoped, such as webhook configurations",
		}, fmt.Sprintf("%s %s", d.Type, d.GenerateName))
	}
}

// Beyond says in words what a CSV needs that is cluster-scoped, which Ambit cannot make there, for somebody who asks beforehand.
func Beyond(csv *olm.ClusterServiceVersion, has func(crd olm.CRDDescription) bool) []string {
	var out []string

	for _, d := range csv.GetAllCRDDescriptions() {
		if !has(d) {
			out = append(out, fmt.Sprintf("CustomResourceDefinition %s (%s)", d.Name, d.Version))
		}
	}

	for i := range csv.Spec.WebhookDefinitions {
		out = append(out, fmt.Sprintf("%s %s", csv.Spec.WebhookDefinitions[i].Type, csv.Spec.WebhookDefinitions[i].GenerateName))
	}

	slices.Sort(out)

	return out
}

// UserRolesBeyond names the user ClusterRoles that somebody else has to make for the CSVs of a namespace; empty when there are
// none.
func (w *Snapshot) UserRolesBeyond(csvs []*olm.ClusterServiceVersion) string {
	var names []string

	for _, csv := range csvs {
		for _, role := range w.APIRoles(csv) {
			names = append(names, role.Name)
		}
	}

	if len(names) == 0 {
		return ""
	}

	slices.Sort(names)

	return "this Ambit makes nothing that has no namespace; for people who use the APIs, let an administrator make ClusterRoles " +
		"such as " + first(slices.Compact(names))
}
