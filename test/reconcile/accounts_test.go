package reconcile_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// withEverything makes the account of the group of the namespace ops, which may do everything there and in targets.
func (w *world) withEverything(targets ...string) {
	w.Helper()
	w.Make(testbed.Account(w.ns(ops), "scoped"))

	for _, short := range append([]string{ops}, targets...) {
		w.gives("everything-"+short, w.everythingIn(short))
	}
}

// TestTargetGoesThoughNobodyMayAnnotate: what an operator holds in a target goes with the target, though whoever administers the
// operator's namespace sees to it that no pod gets the new targets: the group's account may not annotate the
// ClusterServiceVersion any more, or is gone altogether.
func TestTargetGoesThoughNobodyMayAnnotate(t *testing.T) {
	t.Parallel()

	for _, profile := range accountProfiles {
		for name, prevent := range map[string]func(w *world){
			"account without rights": func(w *world) {
				name := "everything-" + ops
				w.Remove(w.binding(ops, name, "Role", name))
				w.MayNot(w.ns(ops), "scoped", w.ns(ops), "create deployments")
			},
			"account that is gone": func(w *world) { w.Remove(testbed.Account(w.ns(ops), "scoped")) },
		} {
			t.Run(profile+", "+name, func(t *testing.T) {
				t.Parallel()

				w := groupedWith(t, profile)
				w.withEverything("a", "b")
				w.group("group", `{"targetNamespaces":["a>","b>"],"serviceAccountName":"scoped"}`)
				w.csv("*")
				w.installed()
				is(w, "where it has permissions before", w.served(), []string{"a", "b", "ops"})

				prevent(w)
				w.groupAsks(func(w *world) { w.regroup(`{"targetNamespaces":["a>"],"serviceAccountName":"scoped"}`) })
				w.reconcileGroup()
				is(w, "where it has permissions", w.served(), []string{"a", "ops"})
				is(w, "what its version says", w.watchesAs(), "a,b")
			})
		}
	}
}

// TestScopedConflict: an operator that runs goes on when its group comes to a namespace that another one serves, and gets nothing
// there; also where an account installs, which may do it.
func TestScopedConflict(t *testing.T) {
	t.Parallel()

	for _, profile := range accountProfiles {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()

			w := groupedWith(t, profile)
			w.definition("things", "Thing")
			w.installsIn("b")
			w.Make(testbed.Account(w.ns("b"), "scoped"))
			w.givesTo("b", "everything-b", w.everythingIn("b"))
			w.givesTo("b", "rival-c", w.everythingIn("c"))
			w.groupIn("b", "rivals", `{"targetNamespaces":["c>"],"serviceAccountName":"scoped"}`)
			first := w.csvIn("b", "*", w.owning("things", "Thing"))
			w.reconcileGroupIn("b")

			w.withEverything("a", "c")
			w.group("group", `{"targetNamespaces":["a>"],"serviceAccountName":"scoped"}`)
			w.csv("*", w.owning("things", "Thing"))
			w.installed()

			was := w.live("op").UID

			w.groupAsks(func(w *world) { w.regroup(`{"targetNamespaces":["a>","c>"],"serviceAccountName":"scoped"}`) })
			w.reconcileGroup()
			is(w, "phase", w.phase(), "Failed InterOperatorGroupOwnerConflict")
			w.names("the message", w.message(), "operatorgroup b/rivals")
			is(w, "the Deployment is the one that it was", w.live("op").UID, was)
			is(w, "where it has permissions", w.served(), []string{"a", "ops"})

			w.Remove(first)
			w.groupAsks(func(w *world) { w.reconcileGroupIn("b") })
			w.reconcileGroup()
			is(w, "phase without the other one", w.phase(), installing)
			is(w, "where it has permissions without the other one", w.served(), []string{"a", "c", "ops"})
			is(w, "the Deployment is still the one that it was", w.live("op").UID, was)
		})
	}
}

// generated is an operator that a seed makes up: accounts, rules, Deployments, and whether it asks for rights in the cluster.
func generated(seed uint64) func(*olmv1alpha1.ClusterServiceVersion) {
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

	return func(c *olmv1alpha1.ClusterServiceVersion) {
		strategy := &c.Spec.InstallStrategy.StrategySpec
		strategy.Permissions, strategy.DeploymentSpecs = nil, nil

		for i := range 1 + r.IntN(3) {
			account := []string{"one", "two", "default"}[r.IntN(3)]
			pods := podTemplate(account)
			strategy.Permissions = append(strategy.Permissions, olmv1alpha1.StrategyDeploymentPermissions{
				ServiceAccountName: account, Rules: rules(0),
			})
			strategy.DeploymentSpecs = append(strategy.DeploymentSpecs, olmv1alpha1.StrategyDeploymentSpec{
				Name: fmt.Sprintf("generated-%d", i), Spec: appsv1.DeploymentSpec{Selector: selectorOf(&pods), Template: pods},
			})
		}

		if r.IntN(2) == 0 {
			strategy.ClusterPermissions = []olmv1alpha1.StrategyDeploymentPermissions{{ServiceAccountName: "one", Rules: rules(1)}}
		}
	}
}

// TestGeneratedInstalls: whatever an operator asks for, all of it is told at the first try, each place of it is needed, and all
// of it together is enough.
func TestGeneratedInstalls(t *testing.T) {
	t.Parallel()

	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()

			w := groupedWith(t, accountProfiles[seed%2])
			to := [][]string{{ops}, {"a"}, {ops, "a"}}[seed%3]
			w.Make(testbed.Account(w.ns(ops), "scoped"))
			w.group("group", []string{
				`{"targetNamespaces":["ops>"],"serviceAccountName":"scoped"}`, `{"targetNamespaces":["a>"],"serviceAccountName":"scoped"}`,
				inAByAccount,
			}[seed%3])
			w.csv("*", generated(seed))

			needs := w.needs(to...)
			for i, place := range needs {
				w.reconcileGroup()
				is(w, "phase", w.phase(), refused)
				w.names("the message", w.message(), "service account ops/scoped may not")

				// What is told is told of every place that is still without its rights.
				for _, open := range needs[i:] {
					where := "in namespace " + w.called(open.Namespace)
					if open.Namespace == everywhere {
						where = "in the cluster"
					}

					w.names("the message", w.message(), where)
				}

				is(w, "what was made", w.madeOf("op.v1"), []string{})
				w.gives(fmt.Sprintf("needed-%d", i), place)
			}

			w.reconcileGroup()
			is(w, "phase with rights", w.phase(), installing)
			is(w, "that something was made", len(w.madeOf("op.v1")) > 0, true)
			w.holdsAsAsked(to)
		})
	}
}

// madeOf shows what was made for a ClusterServiceVersion anywhere, such as "*v1.Role a/op".
func (w *world) madeOf(name string) []string {
	w.Helper()

	out, uid := []string{}, w.versionCalled(name).UID

	for _, list := range []client.ObjectList{
		&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
		&corev1.ServiceAccountList{}, &appsv1.DeploymentList{},
	} {
		if err := w.client.List(w.Context(), list); err != nil {
			w.Fatal(err)
		}

		if err := meta.EachListItem(list, func(item runtime.Object) error {
			obj, _ := item.(client.Object)
			owned := slices.ContainsFunc(obj.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == uid })

			if owned || obj.GetAnnotations()["ambit.dev/owner"] == "ClusterServiceVersion/"+w.ns(ops)+"/"+name {
				out = append(out, w.called(fmt.Sprintf("%T %s/%s", obj, obj.GetNamespace(), obj.GetName())))
			}

			return nil
		}); err != nil {
			w.Fatal(err)
		}
	}

	return out
}

// holdsAsAsked asks the API server for each right of each account in each target, and in the cluster, and fails the case where an
// account is bound elsewhere.
func (w *world) holdsAsAsked(targets []string) {
	w.Helper()

	strategy := &w.versionCalled("op.v1").Spec.InstallStrategy.StrategySpec

	for _, p := range strategy.Permissions {
		for _, short := range append([]string{ops}, targets...) {
			w.holdsRules(p.ServiceAccountName, w.ns(short), p.Rules)
		}
	}

	for _, p := range strategy.ClusterPermissions {
		w.holdsRules(p.ServiceAccountName, everywhere, p.Rules)
	}

	var all rbacv1.RoleBindingList
	if err := w.client.List(w.Context(), &all, client.MatchingLabels{"app.kubernetes.io/managed-by": "ambit"}); err != nil {
		w.Fatal(err)
	}

	for _, b := range all.Items {
		for _, s := range b.Subjects {
			in := w.called(b.Namespace)
			if s.Namespace == w.ns(ops) && in != ops && !slices.Contains(targets, in) {
				w.Errorf("%s is bound in %s, which is no target", s.Name, in)
			}
		}
	}
}

func (w *world) holdsRules(account, namespace string, rules []rbacv1.PolicyRule) {
	w.Helper()

	for _, r := range rules {
		if len(r.ResourceNames) > 0 {
			continue // It is asked for without a name.
		}

		for _, verb := range r.Verbs {
			// The API server's authorizer hears of a binding a moment after it was written.
			w.Eventually(fmt.Sprintf("%s may %s %s in %q", account, verb, r.Resources[0], namespace), func() error {
				if !w.AllowedIn(w.ns(ops), account, namespace, verb, r.APIGroups[0], r.Resources[0]) {
					return errNotYet
				}

				return nil
			})
		}
	}
}
