package finishing_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestAMemberThatLeavesLetsItsOperatorFinish holds the whole of it: while a widget waits, the operator keeps its permissions and
// its place in the list, is not restarted, and status, an event and the condition name what waits. Once it has taken the
// finalizer off, the list forgets the member, and then the permissions go.
func TestAMemberThatLeavesLetsItsOperatorFinish(t *testing.T) {
	w := begin(t, "cluster")
	w.serve(operatorv1.NamespaceScopeSpec{})

	one := w.waiting(w.member, "one")
	w.RestIn(w.ops) // It may begin again with its first list.
	w.Running(w.ops)

	w.Make(w.widget(w.member, "alive", finalizer))
	w.foreseen("waits:", "waiting for a finalizer: widgets."+w.group+" one; permissions stay until nothing waits, for 1m0s at most",
		"in "+w.member+", widgets."+w.group+" alive have a finalizer and are not being deleted")

	before := w.restartedFor()
	w.leave()
	w.finishing(w.member, "waiting for a finalizer: widgets."+w.group+" one")
	w.steadily("the operator goes on", func() error {
		switch {
		case !w.mayWork(w.member):
			return errors.New("it may not")
		case !strings.Contains(w.list(), w.member):
			return errors.New("the list forgot the member")
		case w.restartedFor() != before:
			return errors.New("the operator restarted")
		}

		return nil
	})

	is := meta.FindStatusCondition(w.scope.Status.Conditions, "MembersFinished")
	if is == nil || is.Status != metav1.ConditionFalse || is.Reason != "Finishing" || !strings.Contains(is.Message, w.member) {
		t.Errorf("the condition is %+v", is)
	}

	w.told("NamespaceFinishing", w.member)

	gone, err := w.Client.Watch(t.Context(), &rbacv1.RoleBindingList{}, client.InNamespace(w.member))
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Stop()

	if err := w.finish(one); err != nil {
		t.Fatalf("the operator may not finish: %v", err)
	}

	w.copiesGo(w.member, soon)
	w.listed(w.member, false)
	w.forgotten(gone)
	w.told("NamespaceRemoved", w.member)
	w.Eventually("status is done with it", func() error {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(w.scope), w.scope); err != nil {
			return err
		}

		if s := &w.scope.Status; len(s.FinishingMembers) > 0 || meta.FindStatusCondition(s.Conditions, "MembersFinished") != nil {
			return fmt.Errorf("status is %+v", *s)
		}

		return nil
	})
	w.Eventually("the operator restarts for the list without it", func() error {
		if w.restartedFor() == before {
			return errors.New("it did not")
		}

		return nil
	})

	if !w.mayWork(w.other) {
		t.Error("the other member is served no more")
	}
}

// foreseen holds that "ambit plan" says these words of the scope without the member.
func (w *world) foreseen(words ...string) {
	w.Helper()

	path := filepath.Join(w.TempDir(), "scope.yaml")
	text := fmt.Sprintf("apiVersion: operator.ibm.com/v1\nkind: NamespaceScope\nmetadata: {namespace: %s, name: %s}\n"+
		"spec: {namespaceMembers: [%s]}\n", w.ops, w.scope.Name, w.other)

	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.Fatal(err)
	}

	out, code := w.Ambit("plan", "-f", path)
	if code != 0 {
		w.Fatalf("exit code %d: %s", code, out)
	}

	for _, word := range words {
		if !strings.Contains(out, word) {
			w.Errorf("nothing about %q in\n%s", word, out)
		}
	}
}

// forgotten holds that the list was without the member when its first binding went, by the versions of the API server.
func (w *world) forgotten(bindings watch.Interface) {
	w.Helper()

	cm := &corev1.ConfigMap{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.ops, Name: "namespace-scope"}, cm); err != nil {
		w.Fatal(err)
	}

	for event := range bindings.ResultChan() {
		b, is := event.Object.(*rbacv1.RoleBinding)
		if !is || event.Type != watch.Deleted {
			continue
		}

		if went, wrote := scope.ParseVersion(b.ResourceVersion), scope.ParseVersion(cm.ResourceVersion); went < wrote {
			w.Errorf("binding %s went at %d, and the list was written at %d", b.Name, went, wrote)
		}

		return
	}
}

// told waits for an event about the scope.
func (w *world) told(reason, word string) {
	w.Helper()
	w.Eventually("event "+reason, func() error {
		events := &eventsv1.EventList{}
		if err := w.Client.List(w.Context(), events, client.InNamespace(w.ops)); err != nil {
			return err
		}

		for i := range events.Items {
			if e := &events.Items[i]; e.Reason == reason && strings.Contains(e.Note, word) {
				return nil
			}
		}

		return fmt.Errorf("it is not among %d", len(events.Items))
	})
}

// TestAMemberInWhichNothingWaitsLeavesAtOnce holds that a finalizer alone keeps nobody: what is not being deleted waits for
// nothing.
func TestAMemberInWhichNothingWaitsLeavesAtOnce(t *testing.T) {
	w := begin(t, "cluster")
	w.serve(operatorv1.NamespaceScopeSpec{})
	w.Make(w.widget(w.member, "alive", finalizer), w.widget(w.member, "free"))

	left := time.Now()

	w.leave()
	w.copiesGo(w.member, soon)
	w.listed(w.member, false)
	t.Logf("after %s", time.Since(left).Round(time.Millisecond))
}

// TestATenantCannotKeepAnOperator holds that the grace time begins once: a tenant who makes one widget after the other, each with
// a finalizer that never goes, keeps the operator no longer than that.
func TestATenantCannotKeepAnOperator(t *testing.T) {
	w := begin(t, "cluster")
	w.serve(operatorv1.NamespaceScopeSpec{})
	w.waiting(w.member, "w0")

	left := time.Now()

	w.leave()
	first := w.finishing(w.member)

	for i := 1; w.mayWork(w.member); i++ {
		if time.Since(left) > 3*grace {
			t.Fatalf("the operator works still, after %s", time.Since(left))
		}

		u := w.waiting(w.member, fmt.Sprintf("w%d", i))
		if i%3 == 0 {
			_ = w.finish(u) // Some of them go, and others come.
		}

		time.Sleep(300 * time.Millisecond)
	}

	after := time.Since(left)
	t.Logf("the operator kept its permissions for %s", after.Round(100*time.Millisecond))

	if after < grace-time.Second || after > 2*grace {
		t.Errorf("it should be %s", grace)
	}

	w.listed(w.member, false)
	w.copiesGo(w.member, soon)
	w.told("NamespaceUnfinished", w.member)
	w.steadily("it does not come back", func() error {
		if w.mayWork(w.member) || strings.Contains(w.list(), w.member) {
			return fmt.Errorf("since %s, it works: %t, the list is %q", first.Since, w.mayWork(w.member), w.list())
		}

		return nil
	})
}

// TestARevocationIsNotDelayed holds that what is taken away at the source goes from a namespace that finishes, too, and that
// nothing comes to it.
func TestARevocationIsNotDelayed(t *testing.T) {
	w := begin(t, "cluster")
	w.serve(operatorv1.NamespaceScopeSpec{})
	w.waiting(w.member, "one")
	w.leave()
	w.finishing(w.member)

	secrets := testbed.Role(w.ops, "op-role")
	w.Change(secrets, func() { secrets.Rules = []rbacv1.PolicyRule{testbed.Rule("get configmaps")} })
	w.May(w.ops, "op", w.other, "get configmaps")
	w.MayNot(w.ops, "op", w.member, "get secrets")

	if w.Allowed(w.ops, "op", w.member, "get configmaps") {
		t.Error("a namespace that left got a new permission")
	}

	if !w.mayWork(w.member) {
		t.Error("what was not revoked went, too")
	}

	// Whoever may write there adds themselves to a copy.
	bindings := &rbacv1.RoleBindingList{}
	if err := w.Client.List(t.Context(), bindings, client.InNamespace(w.member), client.HasLabels{scope.LabelScope}); err != nil {
		t.Fatal(err)
	}

	for i := range bindings.Items {
		b := &bindings.Items[i]
		w.Change(b, func() {
			b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "mallory"})
		})
	}

	w.worksNoMore(w.member, soon)
	w.copiesGo(w.member, grace+soon)
}

// TestAuthorizationThatIsTakenBackWaitsForNothing holds that the owner of a namespace that finishes ends it at once.
func TestAuthorizationThatIsTakenBackWaitsForNothing(t *testing.T) {
	w := begin(t, "cluster")
	w.scope = w.Scope(w.ops, operatorv1.NamespaceScopeSpec{
		NamespaceMembers: []string{w.member, w.other}, ManualManagement: true,
	})

	for _, name := range []string{w.member, w.other} {
		if out, code := w.Ambit("authorize", name, "--to", w.ops, "--scope", "scope"); code != 0 {
			t.Fatalf("exit code %d: %s", code, out)
		}
	}

	w.works(w.member)
	w.listed(w.member, true)
	w.waiting(w.member, "one")
	w.leave()
	w.finishing(w.member)

	began := time.Now()
	w.Remove(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: w.member, Name: "ambit-authorized-from-" + w.ops + ".scope",
	}})
	w.worksNoMore(w.member, soon)
	w.listed(w.member, false)
	t.Logf("after %s", time.Since(began).Round(time.Millisecond))
}

// TestWhereNobodyMayLookSomeSecondsAreGiven holds what delegated does as it is installed: Ambit may list nothing in the
// operator's name, so a member that leaves keeps what it has for five seconds, and status says why; with the right to list just
// these, it ends as soon as nothing waits, and not before.
func TestWhereNobodyMayLookSomeSecondsAreGiven(t *testing.T) {
	w := begin(t, "delegated")
	unseen := newWorld(w.World)

	w.letLook()
	w.serveByDelegate()
	unseen.serveByDelegate()

	one := w.waiting(w.member, "one")
	w.leave()
	w.finishing(w.member, "widgets."+w.group+" one")

	unseen.waiting(unseen.member, "one")

	left := time.Now()

	unseen.leave()
	unseen.finishing(unseen.member, "widgets."+unseen.group+" cannot be listed")
	unseen.worksNoMore(unseen.member, grace-2*time.Second)

	after := time.Since(left)
	t.Logf("the operator kept its permissions for %s", after.Round(100*time.Millisecond))

	if after < 4*time.Second {
		t.Errorf("after %s", after)
	}

	unseen.listed(unseen.member, false)
	unseen.copiesGo(unseen.member, soon)

	// This one left before.
	if !w.mayWork(w.member) {
		t.Fatal("the operator may not finish although it is known what waits")
	}

	if err := w.finish(one); err != nil {
		t.Fatal(err)
	}

	w.worksNoMore(w.member, soon)
	w.listed(w.member, false)
	w.copiesGo(w.member, soon)
}

// letLook gives Ambit the right to list the operator's kind in the name of service accounts.
func (w *world) letLook() {
	w.Helper()

	name := "look-" + w.ops
	role := testbed.ClusterRole(name)
	role.Rules = []rbacv1.PolicyRule{{
		APIGroups: []string{w.group}, Resources: []string{"widgets"}, Verbs: []string{"impersonate-on:serviceaccount:list"},
	}}
	w.Make(role, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ambit-system", Name: "ambit"}},
	})
}
