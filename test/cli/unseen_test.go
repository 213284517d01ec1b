package cli_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli"
	cliplan "github.com/ambit-k8s/ambit/internal/cli/plan"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// everythingBut makes a user who may read everything but one resource.
func everythingBut(w *testbed.World, name, resource string) string {
	w.Helper()

	user := name + "-without-" + resource
	role := testbed.ClusterRole(user)

	isHidden := func(r string) bool { return r == resource }

	for _, group := range []string{"", "apps", "batch", "operator.ibm.com", "namespacescope.ibm.com",
		"apiextensions.k8s.io", "admissionregistration.k8s.io", "coordination.k8s.io"} {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{
			APIGroups: []string{group}, Resources: []string{"*"}, Verbs: []string{"get", "list"},
		})
	}

	role.Rules = append(role.Rules, rbacv1.PolicyRule{
		APIGroups: []string{rbacv1.GroupName, "operators.coreos.com"}, Verbs: []string{"get", "list"},
		Resources: slices.DeleteFunc([]string{
			"roles", "rolebindings", "clusterroles", "clusterrolebindings", "scopetemplates", "scopeinstances", "operatorgroups",
			"clusterserviceversions", "subscriptions", "installplans", "catalogsources",
		}, isHidden),
	})

	ref, subjects := binding(user, user)
	w.Make(role, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: ref, Subjects: subjects})
	lists(w, user, "", &rbacv1.RoleList{})

	return user
}

// TestInstancesThatMayNotBeSeenAreNotGone holds that what a ScopeInstance made does not look abandoned to whoever may not list
// instances, or templates, and that no plan says that it would go.
func TestInstancesThatMayNotBeSeenAreNotGone(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	w.Make(testbed.Account(ops, "op"))
	templateFor(w, ops)

	instance := "of-" + ops
	scopedBy(w, ops, instance, m)

	clusterRole := objectOf("rbac.authorization.k8s.io/v1", "ClusterRole", "", "other-"+ops)
	another := objectOf("operators.coreos.com/v1alpha1", "ScopeInstance", "", instance) + "spec: {scopeTemplateName: " + ops +
		", namespaces: [" + m + "]}\n"

	for _, hidden := range []string{"scopeinstances", "scopetemplates", "clusterroles", "clusterrolebindings"} {
		user := everythingBut(w, ops, hidden)
		note := "you may not list " + hidden + " in the whole cluster"

		out, errOut, code := as(w, user, "tree")
		if code != cli.ExitDone || !strings.Contains(errOut, note) {
			t.Errorf("without %s: tree: exit code %d: %s", hidden, code, errOut)
		}

		for _, wrong := range []string{"OrphansLeft", "there is no ScopeTemplate", "missing", "Pending"} {
			if found := linesWith(linesWith(out, ops)+linesWith(out, m), wrong); found != "" {
				t.Errorf("without %s: tree says %s", hidden, found)
			}
		}

		out, errOut, _ = as(w, user, "operators", "-n", m)
		if mine := linesWith(out, ops); !strings.Contains(mine, ops+"/op") || strings.Contains(mine, "failed") ||
			!strings.Contains(errOut, note) {
			t.Errorf("without %s: operators: %s%s", hidden, out, errOut)
		}

		for what, content := range map[string]string{"a ClusterRole": clusterRole, "the instance": another} {
			out, errOut, code := as(w, user, "plan", "-o", "json", "-f", file(w, "planned.yaml", content))

			d := &cliplan.Data{}
			if err := json.Unmarshal([]byte(out), d); err != nil && out != "" {
				t.Fatalf("%v: %s%s", err, out, errOut)
			}

			if code != cli.ExitFailed || !strings.Contains(out+errOut, note) || counted(onlyIn(d, m), plan.Delete) > 0 {
				t.Errorf("without %s: %s: exit code %d: %s%s", hidden, what, code, out, errOut)
			}
		}
	}
}

// TestPlanBesideAScopeThatIsOver holds that a scope which Ambit has let go, and somebody else's finalizer keeps, stands in the
// way of no plan, and neither does one that nobody has served yet: the command ended in a panic where it was the only one.
func TestPlanBesideAScopeThatIsOver(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	w.Operator(ops, "op", "get secrets")

	over := &operatorv1.NamespaceScope{
		ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "scope", Finalizers: []string{"example.com/keeps"}},
		Spec:       operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{m}},
	}
	w.Make(over)
	w.Reports(over, metav1.ConditionTrue, "Reconciled")
	w.Cleanup(func() {
		all := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		_ = w.Client.Patch(context.Background(), over, all)
	})

	if err := w.Client.Delete(w.Context(), over); err != nil {
		t.Fatal(err)
	}

	w.Eventually("Ambit lets it go", func() error {
		err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(over), over)
		if err == nil && len(over.Finalizers) > 1 {
			return fmt.Errorf("it has %v", over.Finalizers)
		}

		return err
	})

	for what, line := range map[string][]string{
		objectOf("v1", "ServiceAccount", ops, "another"): nil, scopeOf(ops, m, ""): {"--delete"},
	} {
		d := planned(w, cli.ExitDone, what, line...)
		if counted(d, plan.Delete)+counted(d, plan.Create) > 0 {
			t.Errorf("%v: %+v", line, d)
		}
	}
}
