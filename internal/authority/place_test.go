package authority_test

import (
	"reflect"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/authority"
)

func anyPlace() *rapid.Generator[authority.Place] {
	return rapid.Custom(func(t *rapid.T) authority.Place {
		return authority.Place{
			Namespace: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "namespace"),
			Rules:     rapid.SliceOfN(anyRule(), 0, 3).Draw(t, "rules"),
			Handed:    rapid.SliceOfN(anyRule(), 0, 3).Draw(t, "handed"),
		}
	})
}

// handing is the right to hand out in a place what one does not hold.
func handing(namespace string, verbs ...string) rbacv1.PolicyRule {
	resource := "roles"
	if namespace == "" {
		resource = "clusterroles"
	}

	return rbacv1.PolicyRule{APIGroups: []string{rbacv1.GroupName}, Resources: []string{resource}, Verbs: verbs}
}

func all(p *authority.Place) []rbacv1.PolicyRule { return slices.Concat(p.Rules, p.Handed) }

// TestMissingAtIsEnoughAndNoMore holds that what is missing, once granted, leaves nothing missing; that it is part of what is
// needed, and was not held; and that who holds everything misses nothing.
func TestMissingAtIsEnoughAndNoMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		held, p := rapid.SliceOfN(anyRule(), 0, 4).Draw(t, "held"), anyPlace().Draw(t, "place")
		missing := authority.MissingAt(held, p)

		if left := authority.MissingAt(slices.Concat(held, missing), p); left != nil {
			t.Fatalf("granted, and still missing: %v", left)
		}

		if ok, more := validation.Covers(all(&p), missing); !ok {
			t.Fatalf("missing, and not needed: %v", more)
		}

		for _, r := range missing {
			for _, atom := range validation.BreakdownRule(r) {
				if ok, _ := validation.Covers(held, []rbacv1.PolicyRule{atom}); ok {
					t.Fatalf("%v is held already", atom)
				}
			}
		}

		if left := authority.MissingAt(all(&p), p); left != nil {
			t.Fatalf("held, and missing: %v", left)
		}
	})
}

// TestHandingOut holds that only who may escalate and bind, both, and on roles of the right kind, needs to hold nothing of what
// the roles hand out.
func TestHandingOut(t *testing.T) {
	t.Parallel()

	get := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}
	named := handing("a", "escalate", "bind")
	named.ResourceNames = []string{"one"}

	for reason, tc := range map[string]struct {
		namespace string
		held      rbacv1.PolicyRule
		enough    bool
	}{
		"both":                                 {"a", handing("a", "escalate", "bind"), true},
		"any verb":                             {"a", handing("a", "*"), true},
		"escalate alone binds nothing":         {"a", handing("a", "escalate"), false},
		"bind alone writes no role":            {"a", handing("a", "bind"), false},
		"a name that is not known beforehand":  {"a", named, false},
		"ClusterRoles are no Roles":            {"a", handing("", "escalate", "bind"), false},
		"Roles are no ClusterRoles":            {"", handing("a", "escalate", "bind"), false},
		"both on ClusterRoles, in the cluster": {"", handing("", "escalate", "bind"), true},
		"nothing":                              {"a", rbacv1.PolicyRule{}, false},
		"what is handed out":                   {"a", get, true},
	} {
		place := authority.Place{Namespace: tc.namespace, Handed: []rbacv1.PolicyRule{get}}
		got := authority.MissingAt([]rbacv1.PolicyRule{tc.held}, place)

		if tc.enough && got != nil || !tc.enough && !reflect.DeepEqual(got, []rbacv1.PolicyRule{get}) {
			t.Errorf("%s: missing is %v", reason, got)
		}
	}

	needs := authority.Place{Rules: []rbacv1.PolicyRule{get}}
	if got := authority.MissingAt([]rbacv1.PolicyRule{handing("", "*")}, needs); got == nil {
		t.Error("who may hand out everything need not hold what is needed itself")
	}
}

// TestPlaces holds that merging the same places loses nothing and adds nothing, in any order.
func TestPlaces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		places := rapid.SliceOfN(anyPlace(), 0, 5).Draw(t, "places")
		got := authority.Places(places)

		if again := authority.Places(rapid.Permutation(places).Draw(t, "order")); !reflect.DeepEqual(got, again) {
			t.Fatalf("in another order:\n%v\n%v", got, again)
		}

		if again := authority.Places(got); !reflect.DeepEqual(got, again) {
			t.Fatalf("once more:\n%v\n%v", got, again)
		}

		seen := map[string]bool{}

		for _, p := range got {
			if seen[p.Namespace] {
				t.Fatalf("%q is there twice", p.Namespace)
			}

			seen[p.Namespace] = true

			var rules, handed []rbacv1.PolicyRule

			for _, from := range places {
				if from.Namespace == p.Namespace {
					rules, handed = append(rules, from.Rules...), append(handed, from.Handed...)
				}
			}

			for what, pair := range map[string][2][]rbacv1.PolicyRule{
				"lost": {p.Rules, rules}, "added": {rules, p.Rules}, "lost of what is handed out": {p.Handed, handed},
				"added to what is handed out": {handed, p.Handed},
			} {
				if ok, rest := validation.Covers(pair[0], pair[1]); !ok {
					t.Fatalf("%s in %q: %v", what, p.Namespace, rest)
				}
			}
		}

		for _, p := range places {
			if !seen[p.Namespace] {
				t.Fatalf("%q is lost", p.Namespace)
			}
		}
	})
}
