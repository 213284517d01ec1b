package narrow

import (
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/kustomize/kyaml/yaml"
)

// What answers requests of others is a subject, too. Its rules say which requests: no kind of RBAC has such a name.
const (
	mutates   = "mutating webhook"
	validates = "validating webhook"
	converts  = "conversion webhook"
	serves    = "API server"
)

func (v *declared) answer(d *Document, by rbacv1.Subject, where []place, rule rbacv1.PolicyRule) {
	g := grant{places: where, rules: []rbacv1.PolicyRule{rule}, role: d.String(), doc: d}
	v.give(g, []rbacv1.Subject{by})
}

// answerAPI is about a group that a server of its own answers for: it gets all requests of everybody about it.
func (v *declared) answerAPI(d *Document, by, group string) {
	v.answer(d, rbacv1.Subject{Kind: serves, Name: by}, []place{{}}, rbacv1.PolicyRule{
		APIGroups: []string{group}, Resources: []string{wildcard}, Verbs: []string{"serve"},
	})
}

// limits are what keeps requests from a webhook. Only the same limits are no more.
type limits struct {
	Scope      admissionv1.ScopeType        `json:"scope,omitempty"`
	Namespaces *metav1.LabelSelector        `json:"namespaceSelector,omitempty"`
	Objects    *metav1.LabelSelector        `json:"objectSelector,omitempty"`
	Conditions []admissionv1.MatchCondition `json:"matchConditions,omitempty"`
	Policy     admissionv1.MatchPolicyType  `json:"matchPolicy,omitempty"`
}

// place is where requests come from that the limits let through.
func (l limits) place() place {
	text, err := json.Marshal(l)
	if err == nil && string(text) == "{}" {
		return place{}
	}

	return place{text: "where it is limited by " + string(text)}
}

// places are those of a rule. A webhook that gets equivalent requests gets the exact ones, too.
func (l limits) places(whole bool, policy *admissionv1.MatchPolicyType) []place {
	if policy != nil && *policy == admissionv1.Exact {
		l.Policy = admissionv1.Exact

		return []place{l.place()}
	}

	out := []place{l.place()}

	if whole {
		l.Policy = admissionv1.Exact
		out = append(out, l.place())
	}

	return out
}

func (v *declared) answerRules(
	d *Document, by rbacv1.Subject, rules []admissionv1.RuleWithOperations, policy *admissionv1.MatchPolicyType, l limits,
) {
	for _, selector := range []**metav1.LabelSelector{&l.Namespaces, &l.Objects} {
		if *selector != nil && len((*selector).MatchLabels)+len((*selector).MatchExpressions) == 0 {
			*selector = nil
		}
	}

	for i := range rules {
		// Names limit a rule as versions do: where there are none, it is about all.
		rule := rbacv1.PolicyRule{
			APIGroups: rules[i].APIGroups, Resources: rules[i].Resources, ResourceNames: slices.Clone(rules[i].APIVersions),
		}
		if slices.Contains(rule.ResourceNames, wildcard) {
			rule.ResourceNames = nil
		}

		for _, operation := range rules[i].Operations {
			rule.Verbs = append(rule.Verbs, strings.ToLower(string(operation)))
		}

		l.Scope = ""
		if of := rules[i].Scope; of != nil && *of != admissionv1.AllScopes {
			l.Scope = *of
		}

		v.answer(d, by, l.places(v.whole, policy), rule)
	}
}

func (v *declared) takeWebhooks(d *Document) error {
	all := &struct {
		Webhooks []struct {
			admissionv1.ValidatingWebhook `json:",inline"`
		} `json:"webhooks"`
	}{}
	if err := d.into(all); err != nil {
		return err
	}

	kind := validates
	if strings.HasPrefix(d.Kind, "Mutating") {
		kind = mutates
	}

	for i := range all.Webhooks {
		w := &all.Webhooks[i]
		by := rbacv1.Subject{Kind: kind}

		switch to := &w.ClientConfig; {
		case to.Service != nil:
			by.Name = "Service " + to.Service.Namespace + "/" + to.Service.Name
		case to.URL != nil:
			by.Name = *to.URL
		}

		v.answerRules(d, by, w.Rules, w.MatchPolicy, limits{
			Namespaces: w.NamespaceSelector, Objects: w.ObjectSelector, Conditions: w.MatchConditions,
		})
	}

	return nil
}

func (v *declared) takeAPIService(d *Document) error {
	if by := at(d.body, "spec", "service"); by != nil && by.Tag != "!!null" {
		v.answerAPI(d, "Service "+text(by, "namespace")+"/"+text(by, "name"), text(d.body, "spec", "group"))
	}

	return nil
}

// takeDefinition takes what converts the objects of a definition: it is given each of them, whoever made it.
func (v *declared) takeDefinition(d *Document) error {
	to := at(d.body, "spec", "conversion", "webhook", "clientConfig")

	by := text(to, "url")
	if service := child(to, "service"); service != nil && service.Kind == yaml.MappingNode {
		by = "Service " + text(service, "namespace") + "/" + text(service, "name")
	}

	v.answer(d, rbacv1.Subject{Kind: converts, Name: by}, []place{{}}, rbacv1.PolicyRule{
		APIGroups: []string{text(d.body, "spec", "group")}, Resources: []string{text(d.body, "spec", "names", "plural")},
		Verbs: []string{"convert"},
	})

	return nil
}
