package reach

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/rights"
)

// Right is what may be done to a resource.
type Right struct {
	Resource  string   `json:"resource"`
	Verbs     []string `json:"verbs"`
	Sensitive bool     `json:"sensitive,omitempty"`
	// Namespaces of Of are where it is lost; 0 of 0 where nobody counted.
	Namespaces int `json:"namespaces,omitempty"`
	Of         int `json:"of,omitempty"`
}

// String names a right for users.
func (r *Right) String() string {
	return strings.Join(printable.Names(r.Verbs), ",") + " " + printable.Name(r.Resource)
}

// Rights are rules by resource, what matters most first.
func Rights(rules []rbacv1.PolicyRule) []Right {
	verbs := map[Resource][]string{}

	for i := range rules {
		rule := &rules[i]

		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				what := Resource{group, name}
				verbs[what] = append(verbs[what], rule.Verbs...)
			}
		}
	}

	spellOut(verbs)

	out := make([]Right, 0, len(verbs))
	weights := make(map[string]int, len(verbs))

	for what, all := range verbs {
		slices.Sort(all)
		r := Right{Resource: strings.TrimPrefix(what.Group+"/"+what.Name, "/"), Verbs: slices.Compact(all)}
		weights[r.Resource] = weight(what, r.Verbs)
		r.Sensitive = weights[r.Resource] > 0
		out = append(out, r)
	}

	out = append(out, ofURLs(rules)...)

	slices.SortFunc(out, func(a, b Right) int {
		return cmp.Or(cmp.Compare(weights[b.Resource], weights[a.Resource]), cmp.Compare(a.Resource, b.Resource))
	})

	return out
}

// ofURLs are the rights of rules about URLs. The URL "*" stands for all paths and for no resource, so it is written as a path.
func ofURLs(rules []rbacv1.PolicyRule) []Right {
	verbs := map[string][]string{}

	for i := range rules {
		for _, url := range rules[i].NonResourceURLs {
			path := "/" + strings.TrimPrefix(url, "/")
			verbs[path] = append(verbs[path], rules[i].Verbs...)
		}
	}

	out := make([]Right, 0, len(verbs))

	for path, all := range verbs {
		slices.Sort(all)
		out = append(out, Right{Resource: path, Verbs: slices.Compact(all)})
	}

	return out
}

// spellOut adds the sensitive rights that wildcards include.
func spellOut(verbs map[Resource][]string) {
	for what, all := range maps.Clone(verbs) {
		if !strings.Contains(what.Group+what.Name, wildcard) {
			continue
		}

		for _, s := range sensitive {
			if s.verbs != "" && means(what, s.of) && anyVerb(all, s.verbs) {
				verbs[s.of] = append(verbs[s.of], all...)
			}
		}
	}
}

// sensitiveRight is a right to do any of some verbs, or where these are empty, to do to anything what the resource says.
type sensitiveRight struct {
	of    Resource
	verbs string
}

// sensitive are rights through which more can be had than they say, the worst first. Sources: the security checklist and the RBAC
// good practices of kubernetes.io/docs/concepts/security.
var sensitive = append([]sensitiveRight{
	{Resource{"", "secrets"}, "get list watch create update patch"},
	{Resource{"", "escalate"}, ""}, {Resource{"", "bind"}, ""}, {Resource{"", "impersonate"}, ""},
	{Resource{"", "pods/exec"}, verbCreate + " get"}, {Resource{"", "pods/attach"}, verbCreate + " get"},
	{Resource{"", "serviceaccounts/token"}, verbCreate}, {Resource{"", "nodes/proxy"}, "*"},
	{Resource{rbacv1.GroupName, "clusterrolebindings"}, writing}, {Resource{rbacv1.GroupName, "rolebindings"}, writing},
	{Resource{rbacv1.GroupName, "clusterroles"}, writing}, {Resource{rbacv1.GroupName, "roles"}, writing},
	{Resource{"", "pods"}, writing}, {Resource{"", "pods/ephemeralcontainers"}, "update patch"},
	{Resource{admission, "mutatingwebhookconfigurations"}, writing},
	{Resource{admission, "validatingwebhookconfigurations"}, writing + " delete"},
	{Resource{admission, "validatingadmissionpolicies"}, writing + " delete"},
	{Resource{admission, "validatingadmissionpolicybindings"}, writing + " delete"},
	{Resource{certificates, "certificatesigningrequests/approval"}, "update patch"},
	{Resource{certificates, "signers"}, "sign approve attest"},
}, runningPods()...)

const (
	admission    = "admissionregistration.k8s.io"
	certificates = "certificates.k8s.io"
)

func runningPods() []sensitiveRight {
	return collect.Map(facts.WorkloadTypes, func(t facts.WorkloadType) sensitiveRight {
		return sensitiveRight{Resource{t.Resource.Group, t.Resource.Resource}, writing}
	})
}

// writing are the verbs by which something is made, or made something else.
const writing = verbCreate + " update patch"

// weight orders rights: 0 is not sensitive.
func weight(r Resource, verbs []string) int {
	if r.Group == wildcard || r.Group == "" && strings.HasPrefix(r.Name, wildcard) {
		return 1 // What matters among it is named beside it.
	}

	for i, s := range sensitive {
		isVerb := s.verbs == "" && slices.Contains(verbs, s.of.Name)
		if isVerb || s.verbs != "" && means(r, s.of) && anyVerb(verbs, s.verbs) {
			return len(sensitive) - i + 1
		}
	}

	return 0
}

// means says whether a resource of a rule means another.
func means(inRule, r Resource) bool {
	return (inRule.Group == wildcard || inRule.Group == r.Group) && meansResource(inRule.Name, r.Name)
}

func anyVerb(verbs []string, of string) bool {
	return of == wildcard || slices.ContainsFunc(verbs, func(v string) bool {
		return v == wildcard || slices.Contains(strings.Fields(of), v)
	})
}

// AllowAny says whether rules allow any of some verbs.
func AllowAny(rules []rbacv1.PolicyRule, r Resource, verbs ...string) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(verbs, func(verb string) bool {
			rule.ResourceNames = nil

			return rights.Covers([]rbacv1.PolicyRule{rule}, []rbacv1.PolicyRule{{
				APIGroups: []string{r.Group}, Resources: []string{r.Name}, Verbs: []string{verb},
			}})
		})
	})
}
