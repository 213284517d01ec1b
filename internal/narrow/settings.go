package narrow

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/kustomize/kyaml/yaml"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// settings are what a declaration says about where, whom and as whom: each gives something that the declaration does not name.
type settings struct {
	doc *Document
	key string
	// whose and where say what for; say has the settings.
	whose, where string
	say          []setting
	// operands are the labels of the pods whose accounts a scope projects; nil where it does so with no labels.
	operands labels.Selector
}

// setting is one of them. Only the same one is no more, or one of unless.
type setting struct{ name, value, unless string }

func (v *declared) takeScope(d *Document) error {
	nss := emptyScope(d)
	if err := d.into(nss); err != nil {
		return err
	}

	nss.SetNamespace(v.at(d))
	nss.SetDeletionTimestamp(nil) // When it is deleted, the API server says.

	s, _ := compile.AnyNamespaceScope(nss)
	of := settings{
		doc: d, key: identity(d.APIVersion+d.Kind, v.at(d), d.Name),
		whose: "whoever " + d.String() + " serves", where: "in its members",
	}
	of.members(&s.Members)

	if s.Accounts.All {
		of.add("accounts", "all of its namespace")
	}

	for _, name := range s.Accounts.Named {
		of.say = append(of.say, setting{"accounts", name, "all of its namespace"})
	}

	if s.Accounts.OfOperands {
		of.add("accounts of workloads with labels", s.Operands.String())
		of.operands = s.Operands
	}

	by := "Ambit"
	if s.Delegate != "" {
		by = "service account " + s.Delegate
	}

	of.add("written as", by)

	if s.AllowSubset {
		of.add("allowSubsetProjection", "true")
	}

	if s.InjectCSVs {
		of.add("csvInjector", "enabled")
	}

	v.settings = append(v.settings, of)

	return nil
}

// managedOperators is the annotation of a ClusterServiceVersion which says into which packages scopes inject their labels: their
// accounts are projected then.
const managedOperators = "nss.operator.ibm.com/managed-operators"

func (v *declared) takeManaged(d *Document) {
	of := settings{
		doc: d, key: identity(scope.KindCSV, v.at(d), d.Name), whose: "the operators whose packages " + d.String() + " names",
		where: "in the members of the NamespaceScopes of namespace " + v.at(d),
	}

	for name := range strings.SplitSeq(text(d.body, "metadata", "annotations", managedOperators), ",") {
		if name = strings.TrimSpace(name); name != "" {
			of.add("packages", name)
		}
	}

	v.settings = append(v.settings, of)
}

func (v *declared) takeGroup(d *Document) error {
	g := &operatorsv1.OperatorGroup{}
	if err := d.into(g); err != nil {
		return err
	}

	of := settings{
		doc: d, key: identity(operatorsv1.OperatorGroupKind, v.at(d), d.Name),
		whose: "the operators of " + d.String(), where: "in its targets",
	}

	switch {
	case len(g.Spec.TargetNamespaces) > 0:
		of.members(&scope.Members{Named: g.Spec.TargetNamespaces})
	case g.Spec.Selector != nil:
		if selector, err := compile.Selector(g.Spec.Selector.Raw); err == nil {
			of.members(&scope.Members{Selector: selector})
		}
	default:
		of.members(&scope.Members{Everywhere: true})
	}

	if by := g.Spec.ServiceAccountName; by != "" {
		of.say = append(of.say, setting{"limited by", "service account " + by, "nobody"})
	} else {
		of.add("limited by", "nobody")
	}

	v.settings = append(v.settings, of)

	return nil
}

func (s *settings) add(name, value string) { s.say = append(s.say, setting{name: name, value: value}) }

const allNamespaces = "all"

func (s *settings) members(m *scope.Members) {
	if m.Everywhere {
		s.add("namespaces", allNamespaces)
	}

	for _, name := range m.Named {
		s.say = append(s.say, setting{"namespaces", name, allNamespaces})
	}

	if m.Selector != nil {
		s.say = append(s.say, setting{"namespaces with labels", m.Selector.String(), allNamespaces})
	}
}

// said is what the declaration with a key says in one setting.
type said struct{ key, name, value string }

func saidIn(all []settings) map[said]bool {
	out := map[said]bool{}

	for i := range all {
		for _, of := range all[i].say {
			out[said{all[i].key, of.name, of.value}] = true
		}
	}

	return out
}

// beyond is what they say beyond what was said before.
func (s *settings) beyond(had map[said]bool) *More {
	more := map[string][]string{}

	for _, of := range s.say {
		all := said{s.key, strings.TrimSuffix(of.name, " with labels"), of.unless}
		if !had[said{s.key, of.name, of.value}] && (of.unless == "" || !had[all]) {
			more[of.name] = append(more[of.name], of.value)
		}
	}

	if len(more) == 0 {
		return nil
	}

	m := newMore(s.doc)
	m.Whose, m.Places = s.whose, []string{s.where}

	for _, name := range slices.Sorted(maps.Keys(more)) {
		m.Says = append(m.Says, name+": "+strings.Join(more[name], ", "))
	}

	return &m
}

func newMore(d *Document) More {
	return More{Rules: []rbacv1.PolicyRule{}, Rights: []reach.Right{}, Role: d.String(), Source: d.Source, Line: d.Line}
}

// The groups whose kinds have somebody give rights, install something, say who may run what, or change what others write: what is
// not read of them may give anything. Of a group with a slash, that kind alone.
const (
	groupOria   = "operators.io.operator-framework"
	groupLegacy = "namespacescope.ibm.com"
)

func opaqueGroups() []string {
	return []string{
		olm.GroupName, groupOria, groupLegacy, operatorv1.GroupVersion.Group, "olm.operatorframework.io", "helm.cattle.io",
		"helm.toolkit.fluxcd.io", "kustomize.toolkit.fluxcd.io", "pkg.crossplane.io", "kappctrl.k14s.io", "packaging.carvel.dev",
		"fleet.cattle.io", "management.cattle.io", "hnc.x-k8s.io", "rbacmanager.reactiveops.io", "core.oam.dev",
		"addons.cluster.x-k8s.io", "helm.crossplane.io", "iamauthenticator.k8s.aws", "policy.open-cluster-management.io",
		"apps.open-cluster-management.io", "argoproj.io/Application", "argoproj.io/ApplicationSet",
		"argoproj.io/AppProject", "security.openshift.io", "authorization.openshift.io", "work.open-cluster-management.io",
		"source.toolkit.fluxcd.io", "fluxcd.controlplane.io", "configsync.gke.io", "configmanagement.gke.io", "kro.run",
		"apiextensions.crossplane.io", "kubernetes.crossplane.io", "kubernetes.m.crossplane.io", "helm.m.crossplane.io",
		"kyverno.io", "policies.kyverno.io", "mutations.gatekeeper.sh", "user.openshift.io",
		"authentication.concierge.pinniped.dev",
		admissionv1.GroupName + "/MutatingAdmissionPolicy", admissionv1.GroupName + "/MutatingAdmissionPolicyBinding",
	}
}

// carriesRights says whether an object that nothing here reads may give rights: it is of a kind that is for that, it is called
// like a kind that is, or it holds something that looks like rules or bindings.
func carriesRights(d *Document) bool {
	group, _, _ := strings.Cut(d.APIVersion, "/")

	switch {
	case slices.Contains(opaqueGroups(), group) || slices.Contains(opaqueGroups(), group+"/"+d.Kind):
		return true
	case slices.Contains([]string{kindClusterRole, kindRole, kindClusterRoleBinding, kindRoleBinding}, d.Kind):
		return !isRBAC(d)
	case slices.Contains([]string{scope.KindCSV, kindScope, kindTemplate, kindInstance}, d.Kind):
		return true
	case d.Kind == kindConfigMap:
		// A catalog, and what says who somebody is: to Amazon's clusters, and to the API servers of extensions.
		return at(d.body, "data", "clusterServiceVersions") != nil ||
			slices.Contains([]string{"aws-auth", "extension-apiserver-authentication"}, d.Name)
	case d.Kind == "Secret":
		// A token that makes whoever has it a member of groups.
		return text(d.body, "type") == string(corev1.SecretTypeBootstrapToken) || hasRules(d.body)
	case d.Kind == kindDefinition || group == "flowcontrol.apiserver.k8s.io":
		return false // They speak of verbs, and give none.
	default:
		return hasRules(d.body)
	}
}

// ruleKeys are the keys of rules, bindings, and what has them, and of what gets tokens of all accounts that mount its volumes.
var ruleKeys = []string{"verbs", "roleRef", "clusterPermissions", "clusterRoleName", "clusterRoles", "tokenRequests"}

func hasRules(n *yaml.Node) bool {
	for of := range nodes(n) {
		for key := range pairs(of) {
			if slices.Contains(ruleKeys, followed(key).Value) {
				return true
			}
		}
	}

	return false
}

// beyondOpaque are objects that nobody here can compare by what they give, and that are not as they were.
func beyondOpaque(before, after *declared) ([]More, error) {
	had := map[string]any{}

	for _, d := range before.opaque {
		content, err := d.content()
		if err != nil {
			return nil, err
		}

		had[identity(d.APIVersion+"/"+d.Kind, before.at(d), d.Name)] = content
	}

	var out []More

	for _, d := range after.opaque {
		content, err := d.content()
		if err != nil {
			return nil, err
		}

		if was, is := had[identity(d.APIVersion+"/"+d.Kind, after.at(d), d.Name)]; is && equality.Semantic.DeepEqual(was, content) {
			continue
		}

		m := newMore(d)
		m.Whose, m.Unknown = "somebody", true
		out = append(out, m)
	}

	return out, nil
}

// content is what an object says, its metadata and status aside.
func (d *Document) content() (map[string]any, error) {
	if err := d.makePlain(); err != nil { // What is compared is what kubectl would send.
		return nil, d.failed(err)
	}

	content := map[string]any{}
	if err := d.into(&content); err != nil {
		return nil, err
	}

	delete(content, "metadata")
	delete(content, "status")

	if len(content) == 0 {
		return nil, fmt.Errorf("%s of %s, line %d, is empty", d, d.Source, d.Line)
	}

	return content, nil
}
