package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli"
	cliplan "github.com/ambit-k8s/ambit/internal/cli/plan"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// scopeOf is the file of a scope with one member.
func scopeOf(ops, member, more string) string {
	return fmt.Sprintf(`apiVersion: operator.ibm.com/v1
kind: NamespaceScope
metadata: {name: scope, namespace: %s}
spec:
  namespaceMembers: [%s]
%s`, ops, member, more)
}

// objectOf is the file of an object that only its name says anything about.
func objectOf(apiVersion, kind, namespace, name string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %q, namespace: %q}\n", apiVersion, kind, name, namespace)
}

// planned plans for a file, and holds that the exit code is as it should be.
func planned(w *testbed.World, want int, content string, arguments ...string) *cliplan.Data {
	w.Helper()

	arguments = append([]string{"plan", "-o", "json", "-f", file(w, "planned.yaml", content)}, arguments...)

	out, errOut, code := run(w, arguments...)
	if code != want {
		w.Fatalf("%v: exit code %d, want %d: %s%s", arguments, code, want, out, errOut)
	}

	d := &cliplan.Data{}
	if err := json.Unmarshal([]byte(out), d); err != nil {
		w.Fatalf("%v: %v: %s%s", arguments, err, out, errOut)
	}

	return d
}

// amongServed begins a test on a cluster in which no test leaves anything refused: that would be in each plan of what has no
// namespace, which may matter to all of them.
func amongServed(t *testing.T) *testbed.World {
	t.Helper()

	return beds.Begin(t, "cluster", "--restart-interval=2s")
}

// onlyIn leaves out of a plan what is to become of other namespaces. Where all scopes are planned, those of other tests are, too,
// and these may just be changing.
func onlyIn(d *cliplan.Data, namespaces ...string) *cliplan.Data {
	others := func(namespace string) bool { return !slices.Contains(namespaces, namespace) }

	d.Objects = slices.DeleteFunc(d.Objects, func(o cliplan.Object) bool { return others(o.Namespace) })
	d.WatchLists = slices.DeleteFunc(d.WatchLists, func(l predict.List) bool { return others(l.Namespace) })
	d.Restarts = slices.DeleteFunc(d.Restarts, func(r cliplan.Restart) bool { return others(r.Namespace) })

	return d
}

// counted are the objects that a plan does something to.
func counted(d *cliplan.Data, action plan.Action) int {
	n := 0

	for i := range d.Objects {
		if d.Objects[i].Action == action {
			n++
		}
	}

	return n
}

// looker makes a service account that may view a namespace, with its Roles and RoleBindings, and what words say besides.
func looker(w *testbed.World, namespace string, words ...string) string {
	w.Helper()
	w.Make(testbed.Account(namespace, "looker"), testbed.Bind(namespace, "ClusterRole", "view", namespace, "looker"))
	w.Grant(namespace, "looks", namespace, "looker", append(words, "get,list roles", "get,list rolebindings")...)

	user := "system:serviceaccount:" + namespace + ":looker"
	w.Eventually("the looker may look", func() error {
		return errors.Join(w.As(user).List(w.Context(), &rbacv1.RoleBindingList{}, client.InNamespace(namespace)),
			w.As(user).List(w.Context(), &operatorv1.NamespaceScopeList{}, client.InNamespace(namespace)))
	})

	return user
}

func TestPlanRefusesUnknownFields(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	misspelt := scopeOf(ops, m, "  allowSubset: true\n")

	for _, when := range []string{"created", "changed"} {
		if out, err := w.Cluster.Kubectl(w.Context(), "apply", "-f", file(w, "misspelt.yaml", misspelt)); err == nil {
			t.Fatalf("%s: kubectl applies it, so there is nothing to refuse: %s", when, out)
		}

		f := planned(w, cli.ExitMissing, misspelt).Files[0]
		if f.Result != when || !strings.Contains(f.Refused, "spec.allowSubset") {
			t.Errorf("%s: got %+v", when, f)
		}

		if when == "created" {
			w.Reports(w.Scope(ops, operatorv1.NamespaceScopeSpec{}), metav1.ConditionTrue, "Reconciled")
		}
	}
}

func TestPlanOfDeletion(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	w.Operator(ops, "op", "get secrets")
	nss := w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{m}})
	w.Reports(nss, metav1.ConditionTrue, "Reconciled")
	w.Running(ops)

	nothing := objectOf("operator.ibm.com/v1", "NamespaceScope", ops, "nosuch") + "---\n" +
		objectOf("rbac.authorization.k8s.io/v1", "Role", m, "nosuch")

	out, errOut, code := run(w, "plan", "--delete", "-f", file(w, "nothing.yaml", nothing))
	if code != cli.ExitDone || strings.Count(out, "is not there, so there is nothing to delete") != 2 || errOut != "" {
		t.Errorf("nothing to delete: exit code %d: %s%s", code, out, errOut)
	}

	d := planned(w, cli.ExitMissing, scopeOf(ops, m, ""), "--delete", "--as", looker(w, ops))
	if !strings.Contains(d.Files[0].Refused, "cannot delete") {
		t.Errorf("whoever may only look may delete: %+v", d.Files)
	}

	d = planned(w, cli.ExitDone, scopeOf(ops, m, ""), "--delete")
	if counted(d, plan.Delete) != 2 || d.Files[0].Refused != "" {
		t.Errorf("the scope: %+v", d)
	}

	d = onlyIn(planned(w, cli.ExitDone, objectOf("apps/v1", "Deployment", ops, "op"), "--delete"), ops, m)
	if counted(d, plan.Delete) != 2 || len(d.WatchLists) != 0 || len(d.Restarts) != 0 || len(d.LeftOut) != 0 {
		t.Errorf("the operator goes, and its permissions stay: %+v", d)
	}

	for namespace, what := range map[string]string{m: "a member", ops: "the home"} {
		out, errOut, _ := run(w, "plan", "--delete", "-o", "json", "-f",
			file(w, "namespace.yaml", objectOf("v1", "Namespace", "", namespace)))

		d = &cliplan.Data{}
		if err := json.Unmarshal([]byte(out), d); err != nil {
			t.Fatalf("%v: %s%s", err, out, errOut)
		}

		d = onlyIn(d, ops, m)
		if namespace == m && (len(d.WatchLists) != 1 || d.WatchLists[0].After != ops) ||
			namespace == ops && counted(d, plan.Delete) != 2 {
			t.Errorf("%s goes, and what its scope gives stays: %+v", what, d)
		}
	}

	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "op-role"}}

	d = onlyIn(planned(w, cli.ExitDone, objectOf("rbac.authorization.k8s.io/v1", "Role", ops, role.Name), "--delete"), ops, m)
	if counted(d, plan.Delete) != len(d.Objects) || len(d.Objects) != 2 || d.Files[0].Result != "deleted" {
		t.Errorf("the Role: %+v", d)
	}

	w.Remove(role)
	w.Eventually("what was planned for a Role happens", func() error {
		var roles rbacv1.RoleList

		var bindings rbacv1.RoleBindingList

		err := errors.Join(w.Client.List(w.Context(), &roles, client.InNamespace(m), client.HasLabels{scope.LabelScope}),
			w.Client.List(w.Context(), &bindings, client.InNamespace(m), client.HasLabels{scope.LabelScope}))
		if err == nil && len(roles.Items)+len(bindings.Items) > 0 {
			err = errors.New("there are copies still")
		}

		return err
	})
}

func TestPlanWithoutSight(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	w.Operator(ops, "op", "get secrets")
	w.Reports(w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{m}}), metav1.ConditionTrue, "Reconciled")
	w.Running(ops)

	account := objectOf("v1", "ServiceAccount", ops, "other")
	user := looker(w, ops, "create serviceaccounts", "patch namespacescopes")

	d := planned(w, cli.ExitDone, account, "--as", user)
	if len(d.WatchLists)+len(d.Restarts)+len(d.Objects) != 0 || len(d.Scopes) != 1 || len(d.Scopes[0].Failed) != 0 ||
		len(d.Scopes[0].Leaves) != 0 || !slices.Equal(d.Scopes[0].Unread, []string{m}) ||
		!slices.ContainsFunc(d.NotRead, func(s string) bool { return strings.Contains(s, "list roles in namespace "+m) }) {
		t.Errorf("a member that may not be read does not count as it is: %+v", d)
	}

	hidden := func(note string) bool { return strings.Contains(note, "you may not list leases in namespace "+ops) }
	if slices.ContainsFunc(d.Notes, hidden) {
		t.Errorf("nothing restarts, and the notes say that nobody knows who follows: %q", d.Notes)
	}

	d = planned(w, cli.ExitMissing, scopeOf(ops, ops, ""), "--as", user) // A policy refuses the file.
	if len(d.Restarts) != 1 || !slices.ContainsFunc(d.Notes, hidden) {
		t.Errorf("restarts %v, notes %q: it is not said that nobody knows who follows", d.Restarts, d.Notes)
	}

	w.Make(testbed.Account(ops, "blind"))
	w.Grant(ops, "sees-little", ops, "blind", "get,list roles", "get,list rolebindings", "get,list,create serviceaccounts")

	blind := "system:serviceaccount:" + ops + ":blind"
	for what, says := range map[string]string{
		account:             "may not list its namespacescopes.namespacescope.ibm.com, namespacescopes.operator.ibm.com;",
		scopeOf(ops, m, ""): "may not list its configmaps, cronjobs, daemonsets, deployments, jobs, namespacescopes.namespacescope",
		objectOf("v1", "Namespace", "", w.Namespace("fresh")): "may not list namespacescopes.namespacescope.ibm.com, namespacescopes." +
			"operator.ibm.com in the whole cluster;",
	} {
		path := file(w, "unseen.yaml", what)

		w.Eventually("a plan that would be wrong is none", func() error {
			out, errOut, code := run(w, "plan", "-f", path, "--as", blind)
			if code != cli.ExitFailed || out != "" || !strings.Contains(errOut, says) || strings.Contains(errOut, "roles") {
				return fmt.Errorf("exit code %d, not %q: %s%s", code, says, out, errOut)
			}

			return nil
		})
	}
}

// TestPlanLacksWhatMayNotBeRead holds that a namespace of which the caller may not read enough keeps no other from being planned,
// whether the files are about it or about the whole cluster, and that the plan and its exit code say that it is not complete.
func TestPlanLacksWhatMayNotBeRead(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, hidden := w.Namespace("ops"), w.Namespace("hidden")

	for _, in := range []string{ops, hidden} {
		w.Operator(in, "op", "get secrets")
		w.Reports(w.Scope(in, operatorv1.NamespaceScopeSpec{}), metav1.ConditionTrue, "Reconciled")
	}

	user := looker(w, ops, "patch namespacescopes")

	isPartial := func(files string) {
		t.Helper()

		d := planned(w, cli.ExitFailed, scopeOf(ops, ops, "")+"---\n"+files, "--as", user)

		at := slices.IndexFunc(d.Unknown, func(u cliplan.Unknown) bool { return u.Namespace == hidden })
		if at < 0 || !slices.Equal(d.Unknown[at].Kinds, []string{"NamespaceScopes"}) ||
			!strings.HasPrefix(d.Unknown[at].Why, "you may not list its ") {
			t.Errorf("what the scopes of namespace %s would do is not said to be unknown: %+v", hidden, d.Unknown)
		}

		if len(d.Scopes) != 1 || d.Scopes[0].Scope != "NamespaceScope/"+ops+"/scope" ||
			!slices.Equal(d.Scopes[0].Served, []string{ops}) {
			t.Errorf("not just the scope of which everything may be read is planned: %+v", d.Scopes)
		}
	}

	isPartial(objectOf("v1", "ServiceAccount", hidden, "other"))

	role := testbed.ClusterRole("all-scopes-"+ops, "list namespacescopes")
	role.Rules[0].APIGroups = []string{"*"}
	bound := testbed.Bind("", "ClusterRole", role.Name, ops, "looker")
	w.Make(role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name}, RoleRef: bound.RoleRef, Subjects: bound.Subjects,
	})
	w.Eventually("the looker may list all scopes", func() error {
		return w.As(user).List(w.Context(), &operatorv1.NamespaceScopeList{})
	})

	isPartial(objectOf("v1", "Namespace", "", w.Namespace("fresh")))
}

func TestPlanOfPods(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	w.Make(testbed.Account(ops, "op"))
	w.Grant(ops, "op-role", ops, "op", "get secrets")
	w.Reports(w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{m}}), metav1.ConditionTrue, "Reconciled")

	const (
		marks = "metadata: {labels: {intent: projected}}"
		spec  = "spec: {serviceAccountName: op, restartPolicy: Never, containers: [{name: c, image: registry.example.com/c:1}]}"
	)

	for kind, content := range map[string]string{
		"Job": fmt.Sprintf("apiVersion: batch/v1\nkind: Job\nmetadata: {name: work, namespace: %s}\nspec: {template: {%s, %s}}\n",
			ops, marks, spec),
		"CronJob": fmt.Sprintf("apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: work, namespace: %s}\n"+
			"spec: {schedule: '0 0 * * *', jobTemplate: {spec: {template: {%s, %s}}}}\n", ops, marks, spec),
		"Pod": fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: work, namespace: %s, labels: {intent: projected}}\n%s\n",
			ops, spec),
	} {
		d := planned(w, cli.ExitDone, content)
		if counted(d, plan.Create) != 2 || len(d.Restarts) != 0 || len(d.LeftOut) != 0 {
			t.Errorf("%s: the permissions of its account are not projected: %+v", kind, d)
		}
	}
}

// TestPlanSaysWhatIsRefused holds that the reason is told where no member fails by it.
func TestPlanSaysWhatIsRefused(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	w.Operator(ops, "op", "get secrets")
	w.Delegate(ops, nil)

	subset := scopeOf(ops, m, "  allowSubsetProjection: true\n  serviceAccountName: delegate\n")

	why := "refused in " + m + ": AuthorizationRequired: service account " + ops + "/delegate may not"

	out, errOut, code := run(w, "plan", "-f", file(w, "subset.yaml", subset))
	if code != cli.ExitMissing || !strings.Contains(out, why) {
		t.Errorf("exit code %d: %s%s", code, out, errOut)
	}
}

// TestPlanOfAClusterScopedObjectWithANamespace holds that a plan takes what has no namespace as kubectl applies it, also where
// the file says a namespace, as charts do.
func TestPlanOfAClusterScopedObjectWithANamespace(t *testing.T) {
	w := amongServed(t)
	ops := w.Namespace("ops")

	for _, content := range []string{
		objectOf("rbac.authorization.k8s.io/v1", "ClusterRole", ops, "of-"+ops),
		objectOf("operators.coreos.com/v1alpha1", "ScopeTemplate", ops, "of-"+ops) + "spec: {clusterRoles: []}\n",
	} {
		if out, err := w.Cluster.Kubectl(w.Context(), "apply", "--dry-run=server", "-f", file(w, "applied.yaml", content)); err != nil {
			t.Fatalf("kubectl does not apply it, so a plan may refuse it: %v: %s", err, out)
		}

		d := planned(w, cli.ExitDone, content)
		if f := d.Files[0]; f.Refused != "" || f.Namespace != "" || f.Result != "created" {
			t.Errorf("it is %+v", f)
		}
	}
}
