// Package rights compares rules of RBAC. Whoever may write a Role in one namespace has Ambit compare it with others, and a rule
// of three short lists stands for millions of rights: so the work is bounded, and grows with what is written and with Max.
package rights

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Max is how many single rights the rules of one object may stand for. The largest real Roles stand for a few thousand.
const Max = 10_000

// countless is what Count ends at.
const countless = 1 << 31

// Right is the least that a rule can allow: a verb on a resource, on all of its objects or, if it is Named, on the one called
// Name; or a verb on a URL, if it is OfURL.
type Right struct {
	Verb, Group, Resource, Name, URL string
	Named, OfURL                     bool
}

// Rule is the rule that allows this and nothing else.
func (r *Right) Rule() rbacv1.PolicyRule {
	if r.OfURL {
		return rbacv1.PolicyRule{NonResourceURLs: []string{r.URL}, Verbs: []string{r.Verb}}
	}

	out := rbacv1.PolicyRule{APIGroups: []string{r.Group}, Resources: []string{r.Resource}, Verbs: []string{r.Verb}}
	if r.Named {
		out.ResourceNames = []string{r.Name}
	}

	return out
}

// Count says how many rights rules stand for, and breaks nothing down. What a list repeats counts once.
func Count(rules []rbacv1.PolicyRule) int {
	distinct := make([]rbacv1.PolicyRule, len(rules))
	for i := range rules {
		distinct[i] = distinctRule(&rules[i])
	}

	return CountRepeated(distinct)
}

// CountRepeated counts what a list repeats each time: so much has to be done by whoever leaves no repeats out.
func CountRepeated(rules []rbacv1.PolicyRule) int {
	sum := 0

	for i := range rules {
		r := &rules[i]
		sum = min(countless, sum+product(len(r.Verbs), len(r.APIGroups), len(r.Resources), max(1, len(r.ResourceNames)))+
			product(len(r.Verbs), len(r.NonResourceURLs)))
	}

	return sum
}

// product multiplies, up to countless: each factor is the length of a list, which is less than that.
func product(factors ...int) int {
	out := 1
	for _, n := range factors {
		out = min(countless, out*n)
	}

	return out
}

// Each yields every right that rules stand for, in their order, until it is told to stop. What a list repeats comes once.
func Each(rules []rbacv1.PolicyRule) func(yield func(Right) bool) {
	return func(yield func(Right) bool) {
		for i := range rules {
			r := distinctRule(&rules[i])
			if !eachOfResources(&r, yield) || !eachOfURLs(&r, yield) {
				return
			}
		}
	}
}

func eachOfResources(r *rbacv1.PolicyRule, yield func(Right) bool) bool {
	names, named := r.ResourceNames, true
	if len(names) == 0 {
		names, named = []string{""}, false
	}

	for _, group := range r.APIGroups {
		for _, resource := range r.Resources {
			for _, verb := range r.Verbs {
				for _, name := range names {
					if !yield(Right{Verb: verb, Group: group, Resource: resource, Name: name, Named: named}) {
						return false
					}
				}
			}
		}
	}

	return true
}

func eachOfURLs(r *rbacv1.PolicyRule, yield func(Right) bool) bool {
	for _, url := range r.NonResourceURLs {
		for _, verb := range r.Verbs {
			if !yield(Right{Verb: verb, URL: url, OfURL: true}) {
				return false
			}
		}
	}

	return true
}

// Missing returns the rights among the wanted rules that the held ones do not allow, as a rule each; nil when they allow all.
func Missing(held, wanted []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	return MissingFrom(wanted, NewHeld(held))
}

// MissingFrom is as Missing, of what is held in several ways.
func MissingFrom(wanted []rbacv1.PolicyRule, held ...*Held) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule

	for right := range Each(wanted) {
		if !slices.ContainsFunc(held, func(h *Held) bool { return h.allows(&right) }) {
			out = append(out, right.Rule())
		}
	}

	return out
}

// Covers says whether the held rules allow all that the wanted ones do.
func Covers(held, wanted []rbacv1.PolicyRule) bool { return NewHeld(held).covers(wanted) }

// Distinct is a list without its repeats, in its order.
func Distinct(list []string) []string {
	if isShort(list) {
		for i := range list {
			if slices.Contains(list[:i], list[i]) {
				return distinct(list)
			}
		}

		return list
	}

	return distinct(list)
}

func distinct(list []string) []string {
	seen, out := make(map[string]struct{}, len(list)), make([]string, 0, len(list))

	for _, word := range list {
		if _, is := seen[word]; !is {
			seen[word] = struct{}{}
			out = append(out, word)
		}
	}

	return out
}

func distinctRule(r *rbacv1.PolicyRule) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		Verbs: Distinct(r.Verbs), APIGroups: Distinct(r.APIGroups), Resources: Distinct(r.Resources),
		ResourceNames: Distinct(r.ResourceNames), NonResourceURLs: Distinct(r.NonResourceURLs),
	}
}

// isShort says whether a list is read through faster than it is looked up in.
func isShort(list []string) bool { return len(list) <= 12 }

// words is a list that is looked up in.
type words struct {
	list []string
	all  sets.Set[string]
}

func newWords(list []string) words {
	if isShort(list) {
		return words{list: list}
	}

	return words{list: list, all: sets.New(list...)}
}

func (w *words) has(word string) bool {
	if w.all == nil {
		return slices.Contains(w.list, word)
	}

	return w.all.Has(word)
}

// heldRule is a rule that others are compared with. What it allows is what the API server says
// (k8s.io/component-helpers/auth/rbac/validation, which breaks down without a bound what it compares).
type heldRule struct {
	verbs, groups, resources, names words
	urls                            []string
	// anyVerb, anyGroup and anyResource say that it has a wildcard there.
	anyVerb, anyGroup, anyResource bool
}

// inAnyResource is how a rule names a subresource of all resources; empty for what is none.
func inAnyResource(resource string) string {
	if _, sub, is := strings.Cut(resource, "/"); is {
		return "*/" + sub
	}

	return ""
}

func (h *heldRule) allowsVerb(verb string) bool { return h.anyVerb || h.verbs.has(verb) }

func (h *heldRule) allowsGroup(group string) bool { return h.anyGroup || h.groups.has(group) }

func (h *heldRule) allowsResource(resource, inAny string) bool {
	return h.anyResource || h.resources.has(resource) || inAny != "" && h.resources.has(inAny)
}

func (h *heldRule) allowsName(r *Right) bool {
	return len(h.names.list) == 0 || r.Named && h.names.has(r.Name)
}

func (h *heldRule) allowsURL(url string) bool {
	return slices.ContainsFunc(h.urls, func(held string) bool {
		return held == url || strings.HasSuffix(held, "*") && strings.HasPrefix(url, strings.TrimRight(held, "*"))
	})
}
