package reach_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/reach"
)

// TestInNamespaces: of what a ClusterRole gives in the whole cluster, only that counts which would have an effect in a namespace,
// and what "ambit narrow" leaves in the whole cluster does not.
func TestInNamespaces(t *testing.T) {
	t.Parallel()

	rule := func(group, resources, verbs string, names ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups: strings.Split(group, ","), Resources: strings.Split(resources, ","), Verbs: strings.Split(verbs, ","),
			ResourceNames: names,
		}
	}

	for name, tc := range map[string]struct {
		reason string
		rule   rbacv1.PolicyRule
		want   string
	}{
		"secrets":     {"they are in namespaces", rule("", "pods,secrets", "get"), "get secrets! get pods"},
		"nodes":       {"they are in none", rule("", "nodes,nodes/status", "get"), ""},
		"namespaces":  {"a namespace is none of its own objects", rule("", "namespaces", "get,list"), ""},
		"default":     {"what every account may do", rule("authorization.k8s.io", "selfsubjectaccessreviews", "create"), ""},
		"delegator":   {"as system:auth-delegator", rule("authentication.k8s.io", "tokenreviews", "create"), ""},
		"custom":      {"what is known to have no namespace", rule("wide.io", "clusterthings,clusterthings/status", "get"), ""},
		"unknown":     {"nobody knows it, so it may be in namespaces", rule("some.io", "things", "get"), "get some.io/things"},
		"two groups":  {"one of them is known", rule("wide.io,old.io", "clusterthings", "get"), ""},
		"one name":    {"it is little, and it is everywhere", rule("", "secrets", "get", "one"), "get secrets (by name)"},
		"many groups": {"a wildcard means what is in namespaces, too", rule("wide.io", "*", "get"), "get wide.io/*"},
		"urls":        {"they are in no namespace", rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"get"}}, ""},
		"no name": {
			"requests for all of them have the empty name", rule("", "secrets", "list,watch", "one", ""), "list,watch secrets!",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			var got []string

			for _, r := range reach.InNamespaces([]rbacv1.PolicyRule{tc.rule}, isWide) {
				words := strings.Join(r.Verbs, ",") + " " + r.Resource
				if r.Sensitive {
					words += "!"
				}

				got = append(got, words)
			}

			if strings.Join(got, " ") != tc.want {
				t.Errorf("got %q, want %q: %s", got, tc.want, tc.reason)
			}
		})
	}

	if all := reach.InNamespaces([]rbacv1.PolicyRule{rule("*", "*", "*")}, isWide); len(all) == 0 || all[0].Resource != "secrets" {
		t.Errorf("everything begins with %+v", all[:min(1, len(all))])
	}
}

func isWide(group, resource string) bool { return group == "wide.io" && resource == "clusterthings" }

// TestInNamespacesAsksLittle: rules may name any number of resources, and asking about one may cost a request.
func TestInNamespacesAsksLittle(t *testing.T) {
	t.Parallel()

	var resources []string
	for i := range 1000 {
		resources = append(resources, fmt.Sprint("thing", i))
	}

	var asked []string

	rules := []rbacv1.PolicyRule{{APIGroups: []string{"some.io"}, Resources: resources, Verbs: []string{"get"}}}
	found := reach.InNamespaces(slices.Repeat(rules, 3), func(_, resource string) bool {
		asked = append(asked, resource)

		return false
	})

	if len(found) != len(resources) || len(asked) > 64 {
		t.Errorf("it asked %d times about %d resources, and found %d", len(asked), len(resources), len(found))
	}
}
