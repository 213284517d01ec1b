package installs_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/testbed"
)

// generated is an operator that a seed makes up: accounts, rules, Deployments, and whether it asks for rights in the cluster.
func generated(seed uint64, namespace string) *olm.ClusterServiceVersion {
	r := rand.New(rand.NewPCG(seed, 0))
	words := []string{
		"get,list secrets", "get secrets/one", "create,patch configmaps", "* services", "create pods/eviction", "get,patch deployments",
		"list,watch pods", "create,patch,delete rolebindings", "escalate,bind roles",
	}
	rules := func(atLeast int) []rbacv1.PolicyRule {
		out := []rbacv1.PolicyRule{}
		for range atLeast + r.IntN(3) {
			out = append(out, testbed.Rule(words[r.IntN(len(words))]))
		}

		return out
	}
	c := csv(namespace, fmt.Sprintf("generated-%d.v1", seed))
	strategy := &c.Spec.InstallStrategy.StrategySpec
	strategy.Permissions, strategy.DeploymentSpecs = nil, nil

	for i := range 1 + r.IntN(3) {
		account := []string{"one", "two", "default"}[r.IntN(3)]
		strategy.Permissions = append(strategy.Permissions, olm.StrategyDeploymentPermissions{
			ServiceAccountName: account, Rules: rules(0),
		})
		strategy.DeploymentSpecs = append(strategy.DeploymentSpecs, olm.StrategyDeploymentSpec{
			Name: fmt.Sprintf("generated-%d", i), Spec: deployment(account),
		})
	}

	if r.IntN(2) == 0 {
		strategy.ClusterPermissions = []olm.StrategyDeploymentPermissions{{ServiceAccountName: "one", Rules: rules(1)}}
	}

	return c
}

// TestGeneratedInstalls: whatever an operator asks for, all of it is told at the first try, each place of it is needed, and all
// of it together is enough.
func TestGeneratedInstalls(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			w := begin(t, profiles[seed%2])
			own, a := w.Namespace("own"), w.Namespace("a")
			to := [][]string{{own}, {a}, {own, a}}[seed%3]
			w.scoped(own, to...)

			c := generated(seed, own)
			needs := install.Needs(c, own, to)

			w.Make(c)
			w.becomes(c, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "service account "+own+"/scoped may not")

			for i, place := range needs {
				// What is told is told of every place that is still without its rights, and of that alone.
				for _, open := range needs[i:] {
					where := "in namespace " + open.Namespace
					if open.Namespace == "" {
						where = "in the cluster"
					}

					w.becomes(c, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, where)
				}

				if left := w.made(c, own, a); len(left) > 0 {
					t.Fatalf("%d places are missing, and written was %q", len(needs)-i, left)
				}

				w.give(own, fmt.Sprintf("generated-%d-%s", i, own), place)
			}

			w.succeeds(c)
			w.holdsAsAsked(c, to)
		})
	}
}

// holdsAsAsked asks the API server for each right of each account in each target, and in the cluster.
func (w *world) holdsAsAsked(c *olm.ClusterServiceVersion, targets []string) {
	w.Helper()

	strategy := &c.Spec.InstallStrategy.StrategySpec

	for _, p := range strategy.Permissions {
		for _, namespace := range append([]string{c.Namespace}, targets...) {
			w.holdsRules(c.Namespace, p.ServiceAccountName, namespace, p.Rules)
		}
	}

	for _, p := range strategy.ClusterPermissions {
		w.holdsRules(c.Namespace, p.ServiceAccountName, "", p.Rules)
	}

	var all rbacv1.RoleBindingList
	if err := w.Client.List(w.Context(), &all, client.MatchingLabels{"app.kubernetes.io/managed-by": "ambit"}); err != nil {
		w.Fatal(err)
	}

	for _, b := range all.Items {
		for _, s := range b.Subjects {
			if s.Namespace == c.Namespace && b.Namespace != c.Namespace && !slices.Contains(targets, b.Namespace) {
				w.Errorf("%s is bound in %s, which is no target", s.Name, b.Namespace)
			}
		}
	}
}

func (w *world) holdsRules(ops, account, namespace string, rules []rbacv1.PolicyRule) {
	w.Helper()

	for _, r := range rules {
		if len(r.ResourceNames) > 0 {
			continue // It is asked for without a name.
		}

		for _, verb := range r.Verbs {
			// The API server's authorizer hears of a binding a moment after it was written.
			w.Eventually(fmt.Sprintf("%s may %s %s in %q", account, verb, r.Resources[0], namespace), func() error {
				if !w.AllowedIn(ops, account, namespace, verb, r.APIGroups[0], r.Resources[0]) {
					return errNot
				}

				return nil
			})
		}
	}
}
