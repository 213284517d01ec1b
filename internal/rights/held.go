package rights

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Held are rules that others are compared with. They are made ready once, for as many comparisons as there are, by one goroutine.
type Held struct {
	rules []heldRule
	root  node
}

// NewHeld makes sets of rules ready.
func NewHeld(sets ...[]rbacv1.PolicyRule) *Held {
	count := 0
	for _, rules := range sets {
		count += len(rules)
	}

	out := &Held{rules: make([]heldRule, 0, count)}
	out.root.rules = make([]*heldRule, 0, count)

	for _, rules := range sets {
		for i := range rules {
			r := distinctRule(&rules[i])
			h := heldRule{
				verbs: newWords(r.Verbs), groups: newWords(r.APIGroups), resources: newWords(r.Resources), names: newWords(r.ResourceNames),
				urls: r.NonResourceURLs,
			}
			h.anyVerb, h.anyGroup = h.verbs.has(rbacv1.VerbAll), h.groups.has(rbacv1.APIGroupAll)
			h.anyResource = h.resources.has(rbacv1.ResourceAll)
			out.rules = append(out.rules, h)
			out.root.rules = append(out.root.rules, &out.rules[len(out.rules)-1])
		}
	}

	return out
}

func (h *Held) covers(wanted []rbacv1.PolicyRule) bool {
	for right := range Each(wanted) {
		if !h.allows(&right) {
			return false
		}
	}

	return true
}

func (h *Held) allows(r *Right) bool { return h.root.allows(r, inAnyResource(r.Resource), 0) }

// node are rules among which a right is looked for. Many are divided by their words, one list of theirs after the other and only
// as far as somebody asks: to read through all of them for each right would take a minute for some thousand roles.
type node struct {
	rules  []*heldRule
	byWord map[string]*node
}

// few is how many rules are read through.
const few = 12

// The lists of a rule, in the order in which rules are divided by them.
const (
	byWhat = iota
	byName
	byVerb
	byGroup
	undivided
)

func (n *node) allows(r *Right, inAny string, list int) bool {
	if len(n.rules) <= few || list == undivided {
		return slices.ContainsFunc(n.rules, func(rule *heldRule) bool { return rule.allows(r, inAny) })
	}

	if n.byWord == nil {
		n.divide(list)
	}

	for _, word := range wordsOf(r, inAny, list) {
		if of := n.byWord[word]; of != nil && of.allows(r, inAny, list+1) {
			return true
		}
	}

	return false
}

// anything is a word in place of a list that limits nothing.
const anything = "*"

// The beginnings of words that are no resources.
const (
	ofURL, ofURLs = "url ", "urls "
	ofName        = "name "
)

func (n *node) divide(list int) {
	n.byWord = map[string]*node{}

	for _, rule := range n.rules {
		for _, word := range rule.wordsOf(list) {
			of := n.byWord[word]
			if of == nil {
				of = &node{}
				n.byWord[word] = of
			}

			// A rule may have a word twice.
			if len(of.rules) == 0 || of.rules[len(of.rules)-1] != rule {
				of.rules = append(of.rules, rule)
			}
		}
	}
}

// wordsOf are the words by which a rule is found. One that allows a right in a list has one of the words of that right there.
func (h *heldRule) wordsOf(list int) []string {
	var out []string

	switch list {
	case byWhat:
		out = slices.Clone(h.resources.list)

		for _, url := range h.urls {
			if beginning := strings.TrimRight(url, "*"); beginning != url {
				out = append(out, ofURLs+beginning)
			}

			out = append(out, ofURL+url)
		}
	case byName:
		for _, name := range h.names.list {
			out = append(out, ofName+name)
		}

		if len(out) == 0 {
			out = []string{anything}
		}
	case byVerb:
		out = h.verbs.list
	case byGroup:
		if out = h.groups.list; len(h.urls) > 0 {
			out = append(slices.Clone(out), anything)
		}
	}

	return out
}

// wordsOf are the words of rules that may allow a right.
func wordsOf(r *Right, inAny string, list int) []string {
	switch {
	case list == byWhat && r.OfURL:
		out := make([]string, 0, len(r.URL)+2) //nolint:mnd // All beginnings, the empty one and the whole one too, and itself.
		out = append(out, ofURL+r.URL)

		for i := range len(r.URL) + 1 {
			out = append(out, ofURLs+r.URL[:i])
		}

		return out
	case list == byWhat && inAny != "":
		return []string{r.Resource, anything, inAny}
	case list == byWhat:
		return []string{r.Resource, anything}
	case list == byName:
		return []string{anything, ofName + r.Name}
	case list == byVerb:
		return []string{r.Verb, anything}
	default:
		return []string{r.Group, anything}
	}
}

func (h *heldRule) allows(r *Right, inAny string) bool {
	switch {
	case !h.allowsVerb(r.Verb), !h.allowsName(r):
		return false
	case r.OfURL:
		return h.allowsURL(r.URL)
	default:
		return h.allowsGroup(r.Group) && h.allowsResource(r.Resource, inAny)
	}
}
