package cli_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestMarksThatAnybodyCanWrite: whoever may write RoleBindings can write Ambit's marks on them. These neither make "ambit why"
// fail for others, nor do they have "ambit who-can" name a scope that made no such binding.
func TestMarksThatAnybodyCanWrite(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	w.Make(testbed.Account(ops, "op"), testbed.Role(m, "r", "get secrets"))

	marked := func(name, owner string, subject rbacv1.Subject, kind, role string) {
		b := testbed.Bind(m, kind, role, ops, "op")
		b.Name, b.Subjects = name, []rbacv1.Subject{subject}
		b.Labels = map[string]string{scope.LabelManagedBy: scope.ManagedBy, scope.LabelScope: scope.Digest(16, name)}
		b.Annotations = map[string]string{scope.AnnotationOwner: owner, scope.AnnotationSource: "RoleBinding/" + ops + "/%"}
		w.Make(b)
	}

	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: ops, Name: "op"}
	for name, owner := range map[string]string{
		"no-name": "NamespaceScope/" + ops + "/", "no-segment": "NamespaceScope/" + ops + "/a%b",
		"dots":         "NamespaceScope/" + ops + "/..",
		"no-namespace": "NamespaceScope//s", "namespace": "NamespaceScope/%/s", "kind": "Secret/" + ops + "/s",
		"cluster-scoped": "ScopeInstance/" + ops + "/s", "gone": "NamespaceScope/" + ops + "/gone",
		"csv": "ClusterServiceVersion/" + ops + "/gone", "instance": "ScopeInstance//gone",
	} {
		marked(name, owner, account, "Role", "r")
	}

	mallory := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory"}
	marked("mallory", "NamespaceScope/"+ops+"/s", mallory, "Role", "r")
	marked("mallory-instance", "ScopeInstance//gone", mallory, "ClusterRole", "view")

	for _, command := range []string{
		"why " + ops + "/op -n " + m, "why " + ops + "/op -n " + m + " --verb get --resource secrets",
		"who-can get secrets -n " + m,
	} {
		out, errOut, code := run(w, strings.Fields(command)...)
		if code != cli.ExitDone {
			t.Errorf("%s: exit code %d: %s", command, code, errOut)
		}

		for line := range strings.Lines(out) {
			if strings.Contains(line, "ClusterRoleBinding") {
				continue // Of an instance that another test has beside this one.
			}

			if strings.Contains(line, "mallory") && strings.Contains(line, "NamespaceScope") ||
				strings.Contains(line, "%") || strings.Contains(line, "ScopeInstance") {
				t.Errorf("%s: a mark is believed: %s", command, line)
			}
		}
	}

	// Who may not see the instances is told by the bindings which of them reach the namespace.
	out, errOut, code := as(w, everythingBut(w, ops, "scopeinstances"), "operators", "-n", m)
	if code != cli.ExitDone || linesWith(out, "mallory") != "" {
		t.Errorf("operators: exit code %d: a mark is believed: %s%s", code, out, errOut)
	}
}
