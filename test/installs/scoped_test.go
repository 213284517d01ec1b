package installs_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
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
	w := begin(t, "delegated")
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
}

// writtenAs holds that Ambit gave nothing in a namespace as itself, beyond status, events, and what it leaves to nobody.
func (w *world) writtenAs(namespace, user string) {
	w.Helper()

	seen := false

	for _, r := range w.Requests() {
		if r.Object.Namespace != namespace || !isWrite(r.Verb) || r.Object.Resource == "events" ||
			r.Object.Subresource == "status" || r.Object.Resource == "operatorgroups" {
			continue
		}

		// What is taken away need not be as the account: on a slow API server, that may be a copy which is there twice.
		if r.As.Name != user && r.Verb != "delete" {
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

// TestScopedDeletion: under the profile delegated, too, an operator that is deleted leaves nothing in its own namespace, though
// its account may delete no role there; and in targets once the account may.
func TestScopedDeletion(t *testing.T) {
	w := begin(t, "delegated")
	own, a := w.Namespace("own"), w.Namespace("a")
	w.scoped(own, a)
	w.makesGroupRoles(own)
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

// TestTreeShowsWhatAnOperatorLeft: what the account may not delete is where ambit tree says it is, until the account may.
func TestTreeShowsWhatAnOperatorLeft(t *testing.T) {
	w := begin(t, "delegated")
	own, a := w.Namespace("own"), w.Namespace("a")
	w.scoped(own, a)
	w.makesGroupRoles(own)

	for _, namespace := range []string{own, a} {
		w.grant(own, namespace, "rights", append(fineGrained, testbed.Rule("get,list secrets"))...)
	}

	op := csv(own, "op.v1")
	w.Make(op)
	w.succeeds(op)

	left := func() bool {
		out, code := w.Ambit("tree", own+"/op.v1")

		return code == 0 && strings.Contains(out, "OrphansLeft") && strings.Contains(out, a+"  ✗")
	}
	if left() {
		t.Error("the operator is there, and ambit tree says that it is gone")
	}

	w.Remove(op)
	w.Eventually("ambit tree says what is left", func() error {
		if !left() {
			return errors.New("it does not")
		}

		return nil
	})

	w.grant(own, a, "later", testbed.Rule("delete roles"), testbed.Rule("delete rolebindings"))
	w.Eventually("nothing is left", func() error {
		if made := w.made(op, own, a); len(made) > 0 || left() {
			return fmt.Errorf("left are %s", strings.Join(made, ", "))
		}

		return nil
	})
}
