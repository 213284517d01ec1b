package reach

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/printable"
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
	verbs := map[string][]string{}

	for i := range rules {
		rule := &rules[i]

		for _, url := range rule.NonResourceURLs {
			verbs[url] = append(verbs[url], rule.Verbs...)
		}

		for _, group := range rule.APIGroups {
			for _, name := range rule.Resources {
				what := name
				if group != "" {
					what = group + "/" + name
				}

				verbs[what] = append(verbs[what], rule.Verbs...)
			}
		}
	}

	spellOut(verbs)

	out := make([]Right, 0, len(verbs))

	for what, all := range verbs {
		slices.Sort(all)
		all = slices.Compact(all)
		out = append(out, Right{Resource: what, Verbs: all, Sensitive: weight(what, all) > 0})
	}

	slices.SortFunc(out, func(a, b Right) int {
		return cmp.Or(-cmp.Compare(weight(a.Resource, a.Verbs), weight(b.Resource, b.Verbs)), cmp.Compare(a.Resource, b.Resource))
	})

	return out
}

// spellOut adds the sensitive rights that wildcards include.
func spellOut(verbs map[string][]string) {
	for _, what := range slices.Sorted(maps.Keys(verbs)) {
		if !strings.Contains(what, wildcard) {
			continue
		}

		for _, s := range sensitive {
			if s.verbs != "" && s.resource != wildcard && means(what, s.resource) && anyVerb(verbs[what], s.verbs) {
				verbs[s.resource] = append(verbs[s.resource], verbs[what]...)
			}
		}
	}
}

type sensitiveRight struct{ resource, verbs string }

// sensitive are rights through which more can be had than they say, the worst first. Sources: the security checklist and the RBAC
// good practices of kubernetes.io/docs/concepts/security.
var sensitive = append([]sensitiveRight{
	{"secrets", "get list watch create update patch"},
	{"escalate", ""}, {"bind", ""}, {"impersonate", ""},
	{"pods/exec", verbCreate + " get"}, {"pods/attach", verbCreate + " get"},
	{"serviceaccounts/token", verbCreate}, {"nodes/proxy", "*"},
	{"rbac.authorization.k8s.io/clusterrolebindings", writing},
	{"rbac.authorization.k8s.io/rolebindings", writing},
	{"rbac.authorization.k8s.io/clusterroles", writing}, {"rbac.authorization.k8s.io/roles", writing},
	{"pods", writing}, {"pods/ephemeralcontainers", "update patch"},
	{"admissionregistration.k8s.io/mutatingwebhookconfigurations", writing},
	{"admissionregistration.k8s.io/validatingwebhookconfigurations", "create update patch delete"},
	{"admissionregistration.k8s.io/validatingadmissionpolicies", "create update patch delete"},
	{"admissionregistration.k8s.io/validatingadmissionpolicybindings", "create update patch delete"},
	{"certificates.k8s.io/certificatesigningrequests/approval", "update patch"}, {"certificates.k8s.io/signers", "sign approve"},
}, runningPods()...)

func runningPods() []sensitiveRight {
	out := make([]sensitiveRight, 0, len(facts.WorkloadTypes))
	for i := range facts.WorkloadTypes {
		of := facts.WorkloadTypes[i].Resource
		out = append(out, sensitiveRight{of.Group + "/" + of.Resource, writing})
	}

	return out
}

// writing are the verbs by which something is made, or made something else.
const writing = verbCreate + " update patch"

// weight orders rights: 0 is not sensitive.
func weight(resource string, verbs []string) int {
	if strings.HasPrefix(resource, wildcard) {
		return 1 // What matters among it is named beside it.
	}

	for i, s := range sensitive {
		isVerb := s.verbs == "" && slices.Contains(verbs, s.resource)
		if isVerb || s.verbs != "" && means(resource, s.resource) && anyVerb(verbs, s.verbs) {
			return len(sensitive) - i + 1
		}
	}

	return 0
}

// means says whether a resource as rights name it, with its group before it unless that is the core's, means another.
func means(resource, name string) bool {
	group, last, has := strings.Cut(resource, "/")
	if !has || group != wildcard && !strings.Contains(group, ".") {
		group, last = "", resource
	}

	inGroup, of, has := strings.Cut(name, "/")
	if !has || !strings.Contains(inGroup, ".") && inGroup != "apps" && inGroup != "batch" {
		inGroup, of = "", name
	}

	return resource == name || (group == wildcard || group == inGroup) && meansResource(last, of)
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

			return authority.Covers([]rbacv1.PolicyRule{rule}, []rbacv1.PolicyRule{{
				APIGroups: []string{r.Group}, Resources: []string{r.Name}, Verbs: []string{verb},
			}})
		})
	})
}
