package preflight_test

import (
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/preflight"
)

func rule(group, resource, name string, verbs ...string) rbacv1.PolicyRule {
	r := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	if name != "" {
		r.ResourceNames = []string{name}
	}

	return r
}

// TestMissingIsTheLeast holds that what others of the rules allow, too, is not asked for.
func TestMissingIsTheLeast(t *testing.T) {
	t.Parallel()

	const group = rbacv1.GroupName

	getSecrets := rule("", "secrets", "", "get")
	readURL := rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}

	for name, tc := range map[string]struct {
		reason string
		need   preflight.Need
		held   []rbacv1.PolicyRule
		want   string
	}{
		"any verb": {
			"a wildcard is enough",
			preflight.Need{Rules: []rbacv1.PolicyRule{getSecrets, rule("", "secrets", "", "*", "list")}}, nil, "* secrets",
		},
		"any name": {
			"a right to all is one to those with a name",
			preflight.Need{Rules: []rbacv1.PolicyRule{rule("", "secrets", "one", "get"), getSecrets}}, nil, "get secrets",
		},
		"one in another": {
			"they come from different roles",
			preflight.Need{Handed: []preflight.Handed{
				{[]rbacv1.PolicyRule{getSecrets}, rule(group, "roles", "", "escalate")},
				{[]rbacv1.PolicyRule{rule("*", "*", "", "*")}, rule(group, "roles", "", "escalate")},
			}}, nil, "do everything with all resources of all API groups",
		},
		"a right that spares others": {
			"whoever is granted the right to escalate need not hold what they hand out",
			preflight.Need{
				Rules:  []rbacv1.PolicyRule{rule(group, "roles", "", "escalate")},
				Handed: []preflight.Handed{{[]rbacv1.PolicyRule{getSecrets}, rule(group, "roles", "", "escalate")}},
			}, nil, "escalate roles",
		},
		"URLs in a namespace": {
			"no Role can give them, so the right to bind is what is asked for",
			preflight.Need{Namespace: "a", Handed: []preflight.Handed{
				{[]rbacv1.PolicyRule{readURL}, rule(group, "clusterroles", "reader", "bind")},
			}}, nil, "bind clusterroles named reader",
		},
		"URLs in the cluster": {
			"a ClusterRole can give them",
			preflight.Need{Handed: []preflight.Handed{
				{[]rbacv1.PolicyRule{readURL}, rule(group, "clusterroles", "reader", "bind")},
			}}, nil, "get /metrics",
		},
		"all of it": {
			"nothing is missing", preflight.Need{Rules: []rbacv1.PolicyRule{getSecrets}}, []rbacv1.PolicyRule{getSecrets}, "",
		},
	} {
		if got := authority.Words(tc.need.Missing(tc.held), 1<<20); got != tc.want {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.want)
		}
	}
}

func anyRules(most int) *rapid.Generator[[]rbacv1.PolicyRule] {
	some := func(values ...string) *rapid.Generator[[]string] {
		return rapid.SliceOfN(rapid.SampledFrom(values), 1, 3)
	}

	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) rbacv1.PolicyRule {
		if rapid.IntRange(0, 9).Draw(t, "kind") == 0 {
			return rbacv1.PolicyRule{
				NonResourceURLs: some("/metrics", "/m*", "*").Draw(t, "urls"), Verbs: some("get", "*").Draw(t, "verbs"),
			}
		}

		return rbacv1.PolicyRule{
			Verbs:         some("get", "list", "escalate", "bind", "*").Draw(t, "verbs"),
			APIGroups:     some("", rbacv1.GroupName, "*").Draw(t, "groups"),
			Resources:     some("secrets", "roles", "roles/status", "*/status", "*").Draw(t, "resources"),
			ResourceNames: rapid.SliceOfN(rapid.SampledFrom([]string{"one", "two"}), 0, 2).Draw(t, "names"),
		}
	}), 0, most)
}

// TestMissingIsExact holds that what is missing, once granted, is missing no more, and that it takes every rule of it.
func TestMissingIsExact(t *testing.T) {
	t.Parallel()

	instead := rapid.SampledFrom([]rbacv1.PolicyRule{
		rule(rbacv1.GroupName, "roles", "", "escalate"), rule(rbacv1.GroupName, "roles", "one", "bind"),
		rule(rbacv1.GroupName, "roles", "", "bind", "escalate"),
	})

	rapid.Check(t, func(t *rapid.T) {
		need := preflight.Need{
			Namespace: rapid.SampledFrom([]string{preflight.Everywhere, "a"}).Draw(t, "namespace"), Rules: anyRules(3).Draw(t, "rules"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "handed") {
			need.Handed = append(need.Handed, preflight.Handed{Rules: anyRules(2).Draw(t, "handed"), Instead: instead.Draw(t, "instead")})
		}

		held := anyRules(2).Draw(t, "held")
		missing := need.Missing(held)

		if left := need.Missing(slices.Concat(held, missing)); len(left) > 0 {
			t.Fatalf("granted %v, still missing %v", missing, left)
		}

		for i := range missing {
			rest := slices.Delete(slices.Clone(missing), i, i+1)
			if len(need.Missing(slices.Concat(held, rest))) == 0 {
				t.Fatalf("%v is not needed among %v", missing[i], missing)
			}
		}
	})
}

func TestTogether(t *testing.T) {
	t.Parallel()

	a, b := rule("", "secrets", "", "get"), rule("", "pods", "", "get")
	got := preflight.Together([]preflight.Need{
		{Namespace: "b", Rules: []rbacv1.PolicyRule{a}}, {Namespace: "a", Rules: []rbacv1.PolicyRule{a}},
		{Namespace: "b", Rules: []rbacv1.PolicyRule{b, a}, Handed: []preflight.Handed{{[]rbacv1.PolicyRule{b}, a}}},
	})

	if len(got) != 2 || got[0].Namespace != "a" || got[1].Namespace != "b" || len(got[1].Handed) != 1 ||
		authority.Words(got[1].Missing(nil), 1<<20) != "get pods, secrets" {
		t.Errorf("got %+v", got)
	}
}

// aggregated is a ClusterRole that takes its rules from others.
func aggregated() preflight.Object {
	return preflight.Object{
		Object: &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Name: "one"},
			AggregationRule: &rbacv1.AggregationRule{
				ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{"a": "b"}}},
			},
		},
		Resource: schema.GroupResource{Group: rbacv1.GroupName, Resource: "clusterroles"},
	}
}

// TestNeedsOfAggregation holds that a ClusterRole which takes its rules from others may be written by whoever holds everything:
// the API server asks for that.
func TestNeedsOfAggregation(t *testing.T) {
	t.Parallel()

	needs := preflight.Needs([]preflight.Object{aggregated()}, nil, nil)

	if got := authority.Words(needs[0].Missing(nil), 1<<20); got != "do everything with all resources of all API groups" {
		t.Errorf("got %q", got)
	}
}

// TestNeedsOfBindingAggregation holds that binding such a ClusterRole takes the right to bind it: its own rules are none, and the
// API server asks for those that it took from others, which may be anywhere in the cluster.
func TestNeedsOfBindingAggregation(t *testing.T) {
	t.Parallel()

	const group = rbacv1.GroupName

	escalates := rule(group, "clusterroles", "", "create", "get", "patch", "escalate")
	meta, ref := metav1.ObjectMeta{Name: "of-one"}, rbacv1.RoleRef{APIGroup: group, Kind: "ClusterRole", Name: "one"}
	bindings := map[string]preflight.Object{
		"rolebindings": {
			Object: &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref}, Namespaced: true,
			Resource: schema.GroupResource{Group: group, Resource: "rolebindings"},
		},
		"clusterrolebindings": {
			Object:   &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref},
			Resource: schema.GroupResource{Group: group, Resource: "clusterrolebindings"},
		},
	}

	for resource, binding := range bindings {
		writes := rule(group, resource, "", "create", "get", "patch")

		for reason, tc := range map[string]struct {
			held []rbacv1.PolicyRule
			want string
		}{
			"the right to write the role is none to bind it": {[]rbacv1.PolicyRule{escalates, writes}, "bind clusterroles named one"},
			"the right to bind it is enough": {
				[]rbacv1.PolicyRule{escalates, writes, rule(group, "clusterroles", "one", "bind")}, "",
			},
			"so is everything": {
				[]rbacv1.PolicyRule{rule("*", "*", "", "*"), {NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}}, "",
			},
		} {
			var missing []rbacv1.PolicyRule
			for _, need := range preflight.Needs([]preflight.Object{aggregated(), binding}, []string{"a"}, nil) {
				missing = append(missing, need.Missing(tc.held)...)
			}

			if got := authority.Words(missing, 1<<20); got != tc.want {
				t.Errorf("%s: %s: got %q, want %q", resource, reason, got, tc.want)
			}
		}
	}
}
