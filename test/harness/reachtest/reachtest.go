// Package reachtest draws rules for property tests, and says what they allow without using the code under test.
package reachtest

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"
)

// Groups, Resources and Verbs draw words of rules, wildcards among them.
//
//nolint:gochecknoglobals // They never change.
var (
	Groups    = rapid.SampledFrom(l("", "apps", "example.com", rbacv1.GroupName, "nobody.example.com", "*"))
	Resources = rapid.SampledFrom(l("secrets", "nodes", "namespaces", "namespaces/status", "widgets", "clusterwidgets",
		"clusterwidgets/status", "clusterroles", "roles", "deployments", "users", "things", "*", "*/status", "pods/exec"))
	Verbs = rapid.SampledFrom(l("get", "list", "watch", "create", "update", "delete", "deletecollection", "bind", "*"))
	names = rapid.SampledFrom(l("a", "b"))
)

// RandomRule draws a rule from few words, with many special cases among them: wildcards, subresources, namespaces themselves.
func RandomRule(t *rapid.T) rbacv1.PolicyRule {
	if rapid.IntRange(0, 9).Draw(t, "url") == 0 {
		return rbacv1.PolicyRule{NonResourceURLs: l("/metrics"), Verbs: l("get")}
	}

	return rbacv1.PolicyRule{
		APIGroups:     rapid.SliceOfNDistinct(Groups, 1, 3, rapid.ID[string]).Draw(t, "groups"),
		Resources:     rapid.SliceOfNDistinct(Resources, 1, 4, rapid.ID[string]).Draw(t, "resources"),
		Verbs:         rapid.SliceOfNDistinct(Verbs, 1, 4, rapid.ID[string]).Draw(t, "verbs"),
		ResourceNames: rapid.SliceOfNDistinct(names, 0, 2, rapid.ID[string]).Draw(t, "names"),
	}
}

// Request is what the API server's authorizer is asked. In a namespace there are namespaced resources, and the namespace itself
// by its name.
type Request struct {
	Group, Resource, Verb, Name string
	Namespaced                  bool
}

// Allows is RBAC as the API server evaluates it (RuleAllows of k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac), written
// without the function Covers that the code under test uses.
func Allows(rules []rbacv1.PolicyRule, q Request) bool {
	has := func(list []string, word string) bool {
		return slices.Contains(list, word) || slices.Contains(list, "*")
	}

	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return len(r.NonResourceURLs) == 0 && has(r.Verbs, q.Verb) && has(r.APIGroups, q.Group) &&
			slices.ContainsFunc(r.Resources, func(w string) bool { return means(w, q.Resource) }) &&
			(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, q.Name))
	})
}

// Requests are all that are asked: each kind of reach, verb and name.
func Requests() []Request {
	var out []Request

	for _, r := range []struct {
		group, resource string
		where           string
	}{
		{"", "secrets", "n"}, {"", "pods/exec", "n"}, {"apps", "deployments", "n"}, {"apps", "deployments/status", "n"},
		{"example.com", "widgets", "n"}, {"example.com", "widgets/status", "n"}, {rbacv1.GroupName, "roles", "n"},
		{"", "nodes", "c"}, {"", "nodes/status", "c"}, {"", "users", "c"}, {"example.com", "clusterwidgets", "c"},
		{"example.com", "clusterwidgets/status", "c"}, {rbacv1.GroupName, "clusterroles", "c"},
		{"", "namespaces", "b"}, {"", "namespaces/status", "b"},
	} {
		for _, verb := range l("get", "list", "watch", "create", "update", "delete", "deletecollection", "bind") {
			for _, name := range l("", "a", "c") {
				forAll := slices.Contains(l("create", "deletecollection", "list", "watch"), verb)
				if r.where == "b" && forAll != (name == "") {
					continue
				}

				out = append(out, Request{r.group, r.resource, verb, name, r.where == "n" || r.where == "b" && !forAll})
			}
		}
	}

	return out
}

// means says whether a resource of a rule means one: "*" is all, "*/status" that subresource of all.
func means(inRule, name string) bool {
	_, sub, has := strings.Cut(name, "/")

	return inRule == "*" || inRule == name || has && inRule == "*/"+sub
}

func l(words ...string) []string { return words }
