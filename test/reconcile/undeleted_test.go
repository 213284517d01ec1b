package reconcile_test

import (
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// byAccount is byAccountWith under the profile delegated.
func byAccount(t *testing.T, edits ...func(*olmv1alpha1.ClusterServiceVersion)) *world {
	t.Helper()

	return byAccountWith(t, "delegated", edits...)
}

// byAccountWith makes an operator for a and ops, and an account that holds what installing it needs, and may delete nothing.
func byAccountWith(t *testing.T, profile string, edits ...func(*olmv1alpha1.ClusterServiceVersion)) *world {
	t.Helper()

	w := groupedWith(t, profile)
	w.Make(testbed.Account(w.ns(ops), "scoped"))
	w.group("group", inAByAccount)
	w.csv("*", edits...)
	w.givesNeeds(ops)
	w.givesNeeds("a")

	return w
}

// letsDelete grants the account of the group that it may delete in a namespace.
func (w *world) letsDelete(short, group string, resources ...string) {
	w.Helper()

	rule := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: []string{"delete"}}
	w.groupAsks(func(w *world) {
		w.gives("deletes-"+short, authority.Place{Namespace: w.ns(short), Rules: []rbacv1.PolicyRule{rule}})
	})
}

// TestTargetThatMayNotBeLeft: an account that may not delete what it gave in a former target is told so, and the operator is
// maintained all the same.
func TestTargetThatMayNotBeLeft(t *testing.T) {
	t.Parallel()

	w := byAccount(t)
	w.installed()
	w.groupAsks(func(w *world) { w.regroup(`{"targetNamespaces":["ops>"],"serviceAccountName":"scoped"}`) })
	w.reconcileGroup()
	is(w, "phase", w.phase(), refused)
	is(w, "where it has permissions", w.served(), []string{"a", "ops"})
	is(w, "what the operator is told", w.told(), "ops")
	w.names("the message", w.message(), "error deleting rolebinding", "service account ops/scoped may not delete rolebindings named",
		"to see all of it, with what grants it: ambit preflight csv/op.v1 -n ops")

	w.groupAsks(func(w *world) { w.Remove(w.live("op")) })
	w.reconcileGroup()
	is(w, "the Deployment that somebody deleted", w.live("op").Name, "op")
	is(w, "phase", w.phase(), refused)

	w.letsDelete("a", rbacv1.GroupName, "roles", "rolebindings")
	w.reconcileGroup()
	is(w, "where it has permissions in the end", w.served(), []string{"ops"})
	w.rollOut()
	w.reconcileGroup()
	is(w, "phase in the end", w.phase(), succeeded)
}

// TestReplacedVersionThatMayNotBeDeleted: a version that was replaced, and that the account may not delete, says so, and goes
// once the account may. What the newer version does not ask for any more gives its operator nothing meanwhile.
func TestReplacedVersionThatMayNotBeDeleted(t *testing.T) {
	t.Parallel()

	w := byAccount(t)
	w.installed()
	w.groupAsks(func(w *world) {
		newer := w.csvIn(ops, "*", func(c *olmv1alpha1.ClusterServiceVersion) { c.Name, c.Spec.Replaces = "op.v2", "op.v1" })
		for _, place := range install.Needs(newer, w.ns(ops), []string{w.ns(ops)}) {
			w.gives("newer", place)
		}
	})
	w.reconcileGroup()
	w.rollOut()
	w.reconcileGroup()
	is(w, "phase of the newer one", w.phaseOf("op.v2"), succeeded)
	w.reconcileGroup()
	is(w, "phase of the older one", w.phase(), "Deleting Replaced")
	w.names("the message", w.message(), "has been replaced by a newer ClusterServiceVersion that has successfully installed; error "+
		"deleting clusterserviceversion op.v1", `cannot delete resource "clusterserviceversions"`, "ambit preflight csv/op.v1 -n ops")
	is(w, "writes when nothing changes", w.reconcileGroup(), []string(nil))

	w.letsDelete(ops, olmv1alpha1.GroupName, "clusterserviceversions")
	w.reconcileGroup()

	err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "op.v1"}, &olmv1alpha1.ClusterServiceVersion{})
	is(w, "the older one is gone", apierrors.IsNotFound(err), true)

	// What it held in a target is emptied, and goes once the account may delete it there.
	w.catchUpGroup(ops)
	w.reconcileGroup()
	is(w, "bindings in the target", w.bindingsIn("a"), []int{2, 1})
	w.letsDelete("a", rbacv1.GroupName, "roles", "rolebindings")
	w.reconcileGroup()
	is(w, "bindings in the target in the end", w.bindingsIn("a"), []int{1, 1})
}

// bindingsIn is how many bindings of Ambit's there are in a namespace, and how many of them give the operator something.
func (w *world) bindingsIn(short string) []int {
	w.Helper()

	var all rbacv1.RoleBindingList

	ours := client.MatchingLabels{"app.kubernetes.io/managed-by": "ambit"}
	if err := w.client.List(w.Context(), &all, client.InNamespace(w.ns(short)), ours); err != nil {
		w.Fatal(err)
	}

	bound := 0

	for _, p := range w.permissions() {
		if strings.HasPrefix(p, short+" ") {
			bound++
		}
	}

	return []int{len(all.Items), bound}
}

// TestDeploymentThatMayNotBeDeleted: a Deployment that an edit takes from a version, and that the account may not delete, is
// told.
func TestDeploymentThatMayNotBeDeleted(t *testing.T) {
	t.Parallel()

	w := byAccount(t, func(c *olmv1alpha1.ClusterServiceVersion) {
		specs := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
		second := *(*specs)[0].DeepCopy()
		second.Name = "second"
		*specs = append(*specs, second)
	})
	w.reconcileGroup()
	is(w, "there is a second one", w.live("second").Name, "second")

	w.groupAsks(func(w *world) {
		w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) {
			specs := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
			*specs = (*specs)[:1]
		})
	})
	w.rollOut()
	w.reconcileGroup()
	is(w, "phase", w.phase(), refused)
	w.names("the message", w.message(), "error deleting deployment second", `cannot delete resource "deployments"`)

	w.letsDelete(ops, appsv1.GroupName, "deployments")
	w.reconcileGroup()
	is(w, "phase in the end", w.phase(), succeeded)

	err := w.client.Get(t.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "second"}, &appsv1.Deployment{})
	is(w, "it is gone", apierrors.IsNotFound(err), true)
}

// TestLeftoversOfAGroupThatIsGone: what the account of a group that is gone may not delete gives nothing any more, and goes as
// soon as it may.
func TestLeftoversOfAGroupThatIsGone(t *testing.T) {
	t.Parallel()

	w := byAccount(t)
	w.installed()
	w.groupAsks(func(w *world) { w.Remove(w.versionCalled("op.v1")); w.Remove(w.groupNamed(ops, "group")) })
	w.reconcileGroup()
	is(w, "bindings in the target", w.bindingsIn("a"), []int{1, 0})

	w.letsDelete("a", rbacv1.GroupName, "roles", "rolebindings")
	w.reconcileGroup()
	is(w, "bindings in the target in the end", w.bindingsIn("a"), []int{0, 0})
}

// TestWebhooksOfAGroupThatIsGone: what the account of a group that is gone may not delete in the cluster keeps nobody's rights in
// the target.
func TestWebhooksOfAGroupThatIsGone(t *testing.T) {
	t.Parallel()

	w := byAccount(t, asking("v.example.com"))
	w.installed()
	w.groupAsks(func(w *world) {
		w.gives("deletes", authority.Place{Namespace: w.ns("a"), Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"}, Verbs: []string{"delete"},
		}}})
		w.Remove(w.versionCalled("op.v1"))
		w.Remove(w.groupNamed(ops, "group"))
	})
	w.catchUpGroup(ops)

	err := w.call(w.groups, scope.Installs.In(w.ns(ops))).err
	is(w, "what is said is why a webhook stays", apierrors.IsForbidden(err), true)
	is(w, "bindings in the target", w.bindingsIn("a"), []int{0, 0})
	is(w, "how many webhooks are left", len(w.hooks()), 1)

	w.deletesWebhooks()
	w.reconcileGroup()
	is(w, "how many webhooks are left in the end", len(w.hooks()), 0)
}

// deletesWebhooks grants the account of the group that it may delete webhook configurations.
func (w *world) deletesWebhooks() {
	w.Helper()
	w.groupAsks(func(w *world) {
		w.gives("deletes-webhooks", authority.Place{Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{"validatingwebhookconfigurations"},
			Verbs: []string{"delete"},
		}}})
	})
}

// TestWebhooksOfAVersionThatIsGone: the status of the group tells of webhook configurations that its account may not delete,
// because the version has none any more. They go as soon as the account may.
func TestWebhooksOfAVersionThatIsGone(t *testing.T) {
	t.Parallel()

	w := byAccount(t, asking("v.example.com"))
	w.installed()
	is(w, "how many webhooks there are", len(w.hooks()), 1)

	w.groupAsks(func(w *world) { w.Remove(w.versionCalled("op.v1")) })
	w.reconcileGroup()
	is(w, "how many webhooks are left", len(w.hooks()), 1)

	condition, message := w.groupCondition("LeftoversRemoved")
	is(w, "LeftoversRemoved", condition, "False AuthorizationRequired")
	w.names("the message", message, "error deleting validatingwebhookconfiguration", "cannot delete resource")

	w.deletesWebhooks()
	w.reconcileGroup()
	is(w, "how many webhooks are left in the end", len(w.hooks()), 0)

	condition, _ = w.groupCondition("LeftoversRemoved")
	is(w, "LeftoversRemoved in the end", condition, "-")
}
