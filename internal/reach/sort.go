package reach

import (
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/rights"
)

// Sorted is a rule in parts, by where they have an effect.
type Sorted struct {
	// Cluster has an effect in the whole cluster only, or was asked to be kept there.
	Cluster []rbacv1.PolicyRule
	// Namespaced has an effect in a namespace.
	Namespaced []rbacv1.PolicyRule
	// Kept are those of Cluster that would have an effect in a namespace, too.
	Kept []rbacv1.PolicyRule
	// Unsorted are resources of which nothing is known. They are taken for namespaced, which gives the least.
	Unsorted []Resource
	// Enumerated says that a wildcard was replaced by the cluster-scoped resources that are known.
	Enumerated bool
}

// Keep is a right that stays cluster-wide.
type Keep struct {
	Verbs    []string
	Resource Resource
}

// ParseKeep reads "list,watch GROUP/RESOURCE"; the resource may be "*", and the group of the core may be left out.
func ParseKeep(text string) ([]Keep, error) {
	fields := strings.Fields(text)
	if len(fields) != 2 {
		return nil, fmt.Errorf("%q is no right to keep; give VERBS GROUP/RESOURCE, such as 'list,watch core/secrets'", text)
	}

	group, names, hasGroup := strings.Cut(fields[1], "/")

	switch {
	case !hasGroup && group == wildcard:
		names = wildcard
	case !hasGroup:
		group, names = "", group
	case group == "core":
		group = ""
	}

	var out []Keep

	for name := range strings.SplitSeq(names, ",") {
		verbs := strings.Split(fields[0], ",")
		if name == "" || slices.Contains(verbs, "") {
			return nil, fmt.Errorf("%q is no right to keep; give VERBS GROUP/RESOURCE, such as 'list,watch core/secrets'", text)
		}

		out = append(out, Keep{Verbs: verbs, Resource: Resource{group, name}})
	}

	return out, nil
}

// String is the keep as ParseKeep takes it.
func (k *Keep) String() string { return strings.Join(k.Verbs, ",") + " " + k.Resource.String() }

// Concerns says whether rules give anything of what is to be kept.
func (k *Keep) Concerns(rules []rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		return slices.ContainsFunc(rule.APIGroups, func(group string) bool {
			return slices.ContainsFunc(rule.Resources, func(name string) bool {
				_, verbs := k.of(Resource{group, name}, rule.Verbs)

				return len(verbs) > 0
			})
		})
	})
}

// of is what a keep means of one resource of a rule; nil for nothing. It never means more than the rule.
func (k *Keep) of(r Resource, verbs []string) (Resource, []string) {
	group, ok := narrower(r.Group, k.Resource.Group)
	if !ok {
		return Resource{}, nil
	}

	var name string

	switch {
	case meansResource(k.Resource.Name, r.Name):
		name = r.Name
	case meansResource(r.Name, k.Resource.Name):
		name = k.Resource.Name
	default:
		return Resource{}, nil
	}

	var kept []string

	for _, v := range k.Verbs {
		for _, has := range verbs {
			if both, ok := narrower(has, v); ok {
				kept = append(kept, both)
			}
		}
	}

	slices.Sort(kept)

	return Resource{group, name}, slices.Compact(kept)
}

// narrower is what two words of rules have in common.
func narrower(a, b string) (string, bool) {
	switch {
	case a == wildcard:
		return b, true
	case b == wildcard || a == b:
		return a, true
	default:
		return "", false
	}
}

// pile collects the resources for which the same verbs are allowed.
type pile struct{ rules []rbacv1.PolicyRule }

func (p *pile) add(r Resource, verbs, names []string, besides ...string) {
	if len(verbs) == 0 {
		return
	}

	groups := append([]string{r.Group}, besides...)

	for i := range p.rules {
		rule := &p.rules[i]
		if slices.Equal(rule.APIGroups, groups) && slices.Equal(rule.Verbs, verbs) && slices.Equal(rule.ResourceNames, names) {
			if !slices.Contains(rule.Resources, r.Name) {
				rule.Resources = append(rule.Resources, r.Name)
			}

			return
		}
	}

	p.rules = append(p.rules, rbacv1.PolicyRule{
		APIGroups: groups, Resources: []string{r.Name}, ResourceNames: slices.Clone(names), Verbs: slices.Clone(verbs),
	})
}

// Sort says of a rule what has an effect where. Together, what comes out is no more than the rule, and in a namespace that has
// both parts no less.
func (k *Kinds) Sort(rule *rbacv1.PolicyRule, keep []Keep) Sorted {
	if len(rule.NonResourceURLs) > 0 {
		return Sorted{Cluster: []rbacv1.PolicyRule{*rule}}
	}

	var (
		cluster, namespaced, kept pile
		out                       Sorted
	)

	for _, group := range rule.APIGroups {
		for _, name := range rule.Resources {
			r := Resource{group, name}
			parts := k.split(r, rule, &out)

			for _, c := range parts.cluster {
				cluster.add(c, parts.clusterVerbs(c, rule), rule.ResourceNames, parts.likeIn...)
			}

			namespaced.add(r, parts.verbs, rule.ResourceNames)

			for i := range keep {
				if of, verbs := keep[i].of(r, parts.verbs); len(verbs) > 0 && k.ReachOf(of) != ClusterScoped {
					kept.add(of, verbs, rule.ResourceNames)
				}
			}
		}
	}

	out.Kept = kept.rules
	out.Cluster = slices.Concat(cluster.rules, kept.rules)
	out.Namespaced = namespaced.rules
	whole := []rbacv1.PolicyRule{*rule}

	if rights.Covers(out.Cluster, whole) {
		out.Namespaced, out.Unsorted, out.Enumerated = nil, nil, false
		out.Cluster = whole
	} else if rights.Covers(out.Namespaced, whole) {
		out.Namespaced = whole // As it was written.
	}

	return out
}

// parts are what one resource of a rule is made of.
type parts struct {
	cluster []Resource
	verbs   []string
	// likeIn is the group by which a resource that is unknown in its own group was sorted. The rule names both, so that whoever
	// sorts it next does the same.
	likeIn []string
}

func (k *Kinds) split(r Resource, rule *rbacv1.PolicyRule, s *Sorted) parts {
	if r.Group == wildcard || strings.Contains(r.Name, wildcard) {
		found := k.matching(r.Group, r.Name, ClusterScoped)
		s.Enumerated = s.Enumerated || len(found) > 0

		if len(found) == 0 && !k.knowsAnyOf(r) {
			s.Unsorted = append(s.Unsorted, r)
		}

		return parts{cluster: found, verbs: rule.Verbs}
	}

	var likeIn []string

	as, reach := r, k.ReachOf(r)
	if reach == Unknown {
		likeIn, reach = k.byAnotherGroup(r.Name, rule)
	}

	if len(likeIn) > 0 {
		as.Group = likeIn[0]
	}

	switch {
	case IsNamespaceItself(as):
		return parts{cluster: []Resource{r}, likeIn: likeIn, verbs: byName(rule)}
	case reach == ClusterScoped:
		return parts{cluster: []Resource{r}, likeIn: likeIn}
	case reach == Unknown:
		s.Unsorted = append(s.Unsorted, r)
	}

	return parts{verbs: rule.Verbs}
}

// byAnotherGroup is for rules that name the groups of several versions: a resource that one of them has is the same in all.
func (k *Kinds) byAnotherGroup(name string, rule *rbacv1.PolicyRule) ([]string, Reach) {
	for _, group := range rule.APIGroups {
		if reach := k.ReachOf(Resource{group, name}); reach != Unknown {
			return []string{group}, reach
		}
	}

	return nil, Unknown
}

// IsNamespaceItself says whether a resource is namespaces, whose objects count as being in themselves: a request for a namespace
// by name is one in that namespace (k8s.io/apiserver/pkg/endpoints/request/requestinfo.go), so a Role can allow it.
func IsNamespaceItself(r Resource) bool { return r.parent() == Resource{"", "namespaces"} }

// byName are the verbs by which a Role can allow requests for its own namespace. A rule that is limited to names is narrow
// already: often it is the one namespace by which an operator knows its cluster.
func byName(rule *rbacv1.PolicyRule) []string {
	if len(rule.ResourceNames) > 0 {
		return nil
	}

	return slices.DeleteFunc(slices.Clone(rule.Verbs), isForAll)
}

func isForAll(verb string) bool {
	return slices.Contains(verbsForAll, verb)
}

// verbsForAll are those of requests that name no object.
var verbsForAll = []string{verbCreate, "deletecollection", "list", "watch"}

// clusterVerbs are the verbs with an effect in the whole cluster only.
func (p *parts) clusterVerbs(r Resource, rule *rbacv1.PolicyRule) []string {
	isOne := IsNamespaceItself(r) || len(p.likeIn) > 0 && IsNamespaceItself(Resource{p.likeIn[0], r.Name})
	if !isOne || len(rule.ResourceNames) > 0 {
		return rule.Verbs
	}

	if slices.Contains(rule.Verbs, wildcard) {
		return slices.Clone(verbsForAll)
	}

	return slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return !isForAll(verb) })
}
