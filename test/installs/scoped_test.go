package installs_test

import (
	"fmt"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/testbed"
)

// fineGrained is the list of permissions that the scoped install of OLM documents ("Fine Grained Permission(s)").
var fineGrained = []rbacv1.PolicyRule{
	{
		APIGroups: []string{"operators.coreos.com"}, Resources: []string{"subscriptions", "clusterserviceversions"},
		Verbs: []string{"get", "create", "update", "patch"},
	},
	{
		APIGroups: []string{""}, Resources: []string{"services", "serviceaccounts"},
		Verbs: []string{"get", "create", "update", "patch"},
	},
	{
		APIGroups: []string{rbacv1.GroupName}, Resources: []string{"roles", "rolebindings"},
		Verbs: []string{"get", "create", "update", "patch"},
	},
	{
		APIGroups: []string{"apps"}, Resources: []string{"deployments"},
		Verbs: []string{"list", "watch", "get", "create", "update", "patch", "delete"},
	},
	{
		APIGroups: []string{""}, Resources: []string{"pods"},
		Verbs: []string{"list", "watch", "get", "create", "update", "patch", "delete"},
	},
}

// scoped makes a group with a service account that may do nothing yet.
func (w *world) scoped(namespace string, targets ...string) *operatorsv1.OperatorGroup {
	w.Helper()
	w.Make(testbed.Account(namespace, "scoped"))

	return w.group(namespace, operatorsv1.OperatorGroupSpec{ServiceAccountName: "scoped", TargetNamespaces: targets})
}

// grant gives the account of a group rules in a namespace.
func (w *world) grant(own, namespace, name string, rules ...rbacv1.PolicyRule) {
	w.Helper()

	role := testbed.Role(namespace, name)
	role.Rules = rules
	w.Make(role, testbed.Bind(namespace, "Role", name, own, "scoped"))
}

var profiles = []string{"cluster", "delegated"}

// TestScopedInstall goes from an account that does not exist, over one without rights, to one with the documented list, under
// each profile that serves groups. The list and the operator's own rules are enough.
func TestScopedInstall(t *testing.T) {
	for _, profile := range profiles {
		t.Run(profile, func(t *testing.T) {
			w := begin(t, profile)
			own := w.Namespace("scoped")
			g := w.group(own, operatorsv1.OperatorGroupSpec{ServiceAccountName: "scoped", TargetNamespaces: []string{own}})
			op := csv(own, "op.v1")
			w.Make(op)
			w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed,
				"please make sure the service account exists. sa=scoped operatorgroup="+own+"/group")
			w.complains(g, "OperatorGroupServiceAccount", metav1.ConditionTrue, "ServiceAccount scoped not found")

			w.Make(testbed.Account(own, "scoped"))
			// Everything, at the first try.
			w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "service account "+own+"/scoped may not", "serviceaccounts",
				"deployments", "secrets", "more in namespace", "ambit preflight csv/op.v1 -n "+own)

			if left := w.made(op, own); len(left) > 0 {
				t.Errorf("written although refused: %q", left)
			}

			// Step by step: what is still missing is said.
			w.grant(own, own, "documented", fineGrained...)
			w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "may not get, list secrets in namespace "+own+";")
			w.grant(own, own, "own-rules", testbed.Rule("get,list secrets"))
			w.succeeds(op)
			w.told(op, g)
			w.May(own, "op", own, "get secrets")
			w.reaches(g, own)

			if ref := g.Status.ServiceAccountRef; ref == nil || ref.Name != "scoped" || ref.UID == "" {
				t.Errorf("serviceAccountRef is %+v", ref)
			}

			w.writtenAs(own, "system:serviceaccount:"+own+":scoped")
		})
	}
}

// writtenAs holds that nothing in a namespace was written by Ambit as itself but status, events, and what it leaves to nobody.
func (w *world) writtenAs(namespace, user string) {
	w.Helper()

	seen := false

	for _, r := range w.Requests() {
		if r.Object.Namespace != namespace || !isWrite(r.Verb) || r.Object.Resource == "events" ||
			r.Object.Subresource == "status" || r.Object.Resource == "operatorgroups" {
			continue
		}

		if r.As.Name != user {
			w.Errorf("written as Ambit itself: %s", r.String())
		}

		seen = true
	}

	if !seen {
		w.Error("nothing was written at all")
	}
}

func isWrite(verb string) bool {
	return verb == "create" || verb == "patch" || verb == "update" || verb == "delete"
}

// TestScopedTargets: the account needs its rights in each target. One that gives none keeps no other from being served, once the
// operator is there.
func TestScopedTargets(t *testing.T) {
	for _, profile := range profiles {
		t.Run(profile, func(t *testing.T) {
			w := begin(t, profile)
			own, a, b := w.Namespace("own"), w.Namespace("a"), w.Namespace("b")
			g := w.scoped(own, a)
			inTarget := []rbacv1.PolicyRule{
				testbed.Rule("create,patch roles"), testbed.Rule("create,patch rolebindings"), testbed.Rule("get,list secrets"),
			}
			w.grant(own, own, "own", append(fineGrained, testbed.Rule("get,list secrets"))...)

			op := csv(own, "op.v1")
			w.Make(op)
			w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "in namespace "+a)
			w.grant(own, a, "target", inTarget...)
			w.succeeds(op)
			w.May(own, "op", a, "get secrets")

			w.Change(g, func() { g.Spec.TargetNamespaces = []string{a, b} })
			w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "in namespace "+b)
			w.May(own, "op", a, "get secrets")

			if w.Allowed(own, "op", b, "get secrets") || op.Annotations["olm.targetNamespaces"] != a {
				t.Errorf("told to watch %q", op.Annotations["olm.targetNamespaces"])
			}

			w.grant(own, b, "target", inTarget...)
			w.succeeds(op)
			w.told(op, g)
			w.May(own, "op", b, "get secrets")
		})
	}
}

// TestScopedTargetThatIsMissing: a target that does not exist is asked about once it does, and keeps the operator from no other.
func TestScopedTargetThatIsMissing(t *testing.T) {
	w := begin(t, "delegated")
	own, a := w.Namespace("own"), w.Namespace("a")
	late := "late-" + own
	w.scoped(own, a, late)

	op := csv(own, "op.v1")
	for i, place := range install.Needs(op, own, []string{a}) {
		w.give(own, fmt.Sprintf("present-%d-%s", i, own), place)
	}

	w.Make(op)
	w.succeeds(op)
	w.May(own, "op", a, "get secrets")

	w.MakeNamespace(late)
	w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "may not", "in namespace "+late)

	for i, place := range install.Needs(op, own, []string{late}) {
		w.give(own, fmt.Sprintf("late-%d-%s", i, own), place)
	}

	w.succeeds(op)
	w.May(own, "op", late, "get secrets")
}

// TestScopedToTheCluster: for a global group, and for clusterPermissions, the account has to hold the rules in the whole cluster.
func TestScopedToTheCluster(t *testing.T) {
	for _, profile := range profiles {
		t.Run(profile, func(t *testing.T) {
			w := begin(t, profile)
			own := w.Namespace("own")
			w.scoped(own)
			w.grant(own, own, "own", append(fineGrained, testbed.Rule("get,list secrets"))...)

			op := csv(own, "op.v1", clusterPermissions("get nodes"))
			w.Make(op)
			w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "clusterroles", "in the cluster", "nodes", "secrets")

			role := testbed.ClusterRole("scoped-"+own, "create,patch clusterroles", "get nodes", "get,list secrets",
				"get,list,watch namespaces")
			role.Rules = append(role.Rules, rbacv1.PolicyRule{
				APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterrolebindings"}, Verbs: []string{"create", "patch"},
			})
			w.Make(role, &rbacv1.ClusterRoleBinding{
				ObjectMeta: metav1.ObjectMeta{Name: role.Name},
				RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
				Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: own, Name: "scoped"}},
			})
			w.succeeds(op)
			w.May(own, "op", "", "get secrets")
			w.May(own, "op", "", "get nodes")
		})
	}
}

// TestRightsWithdrawn: what was installed stays, what would be new is refused, and it goes on when the rights are back.
func TestRightsWithdrawn(t *testing.T) {
	w := begin(t, "cluster")
	own := w.Namespace("own")
	w.scoped(own, own)
	w.grant(own, own, "own", append(fineGrained, testbed.Rule("get,list secrets"))...)

	op := csv(own, "op.v1")
	w.Make(op)
	w.succeeds(op)

	w.Remove(testbed.Bind(own, "Role", "own", own, "scoped"))
	// What is installed runs on; nothing has to be written for it.
	w.Change(op, func() { op.Spec.DisplayName = "other words" })
	w.succeeds(op)
	w.Change(op, func() {
		rules := &op.Spec.InstallStrategy.StrategySpec.Permissions[0].Rules
		*rules = append(*rules, testbed.Rule("delete secrets"))
	})
	w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "may not")
	w.May(own, "op", own, "get secrets")

	if w.Allowed(own, "op", own, "delete secrets") {
		t.Error("the new rule came without the account's rights")
	}

	w.Make(testbed.Bind(own, "Role", "own", own, "scoped"))
	w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "may not delete secrets in namespace "+own+";")
	w.grant(own, own, "more", testbed.Rule("delete secrets"))
	w.succeeds(op)
	w.May(own, "op", own, "delete secrets")
}

// TestGroupWithoutAccountWhereNoneCanBe: in the profile delegated a group has to name an account.
func TestGroupWithoutAccountWhereNoneCanBe(t *testing.T) {
	w := begin(t, "delegated")
	own := w.Namespace("own")
	g := w.group(own, targets(own))
	op := csv(own, "op.v1")
	w.Make(op)
	w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "set spec.serviceAccountName to an account of namespace "+own)

	w.Make(testbed.Account(own, "scoped"))
	w.grant(own, own, "own", append(fineGrained, testbed.Rule("get,list secrets"))...)
	w.Change(g, func() { g.Spec.ServiceAccountName = "scoped" })
	w.succeeds(op)
}

// TestScopedDeletion: under the profile delegated, too, an operator that is deleted leaves nothing in its own namespace, though
// its account may delete no role there; and in targets once the account may.
func TestScopedDeletion(t *testing.T) {
	w := begin(t, "delegated")
	own, a := w.Namespace("own"), w.Namespace("a")
	w.scoped(own, a)
	w.grant(own, own, "own", append(fineGrained, testbed.Rule("get,list secrets"))...)
	w.grant(own, a, "target", append(fineGrained, testbed.Rule("get,list secrets"), testbed.Rule("delete roles"),
		testbed.Rule("delete rolebindings"))...)

	op := csv(own, "op.v1")
	w.Make(op)
	w.succeeds(op)
	w.awaitCollector(own)
	w.Remove(op)
	w.Eventually("nothing is left", func() error {
		if left := w.made(op, own, a); len(left) > 0 {
			return fmt.Errorf("left are %s", strings.Join(left, ", "))
		}

		return nil
	})
	w.gone(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "op"}})
}
