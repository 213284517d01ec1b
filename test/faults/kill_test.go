package faults_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

func kill(t *testing.T) {
	t.Helper()

	if err := suite.manager.Kill(); err != nil {
		t.Fatal(err)
	}
}

func start(t *testing.T) {
	t.Helper()

	if err := suite.manager.Start(); err != nil {
		t.Fatal(err)
	}
}

// TestKilledAtRandomMoments changes everything that a scope depends on, and kills Ambit somewhere in the middle of each
// reaction.
func TestKilledAtRandomMoments(t *testing.T) {
	r := testcluster.Draws(t, 0)
	w := newWorld(t, "kill", 3, 6)
	w.scope(w.members[:2]...)

	for range 12 {
		for range 1 + r.IntN(3) {
			w.mutate(r)
		}

		time.Sleep(time.Duration(r.IntN(400)) * time.Millisecond)
		kill(t)

		if r.IntN(2) == 0 {
			w.mutate(r) // While it is away.
		}

		start(t)
	}

	w.settled()
	w.remove(&operatorv1.NamespaceScope{ObjectMeta: w.meta(scopeName)})
	time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
	kill(t)
	start(t)
	w.settled()

	if err := suite.client.Get(t.Context(), client.ObjectKey{Namespace: w.ops, Name: scopeName},
		&operatorv1.NamespaceScope{}); client.IgnoreNotFound(err) != nil || err == nil {
		w.eventually("the scope is gone", func() bool {
			err := suite.client.Get(t.Context(), client.ObjectKey{Namespace: w.ops, Name: scopeName}, &operatorv1.NamespaceScope{})

			return err != nil && client.IgnoreNotFound(err) == nil
		})
	}

	w.settled()

	if list := w.list(); !strings.Contains(list, "not found") {
		t.Errorf("the watch list outlived its last scope: %q", list)
	}
}

func (w *world) mutate(r *rand.Rand) {
	w.t.Helper()

	role := fmt.Sprintf("operator-%d-a", r.IntN(3))

	switch r.IntN(6) {
	case 0, 1:
		w.scope(w.some(r)...)
	case 2:
		live := &rbacv1.Role{ObjectMeta: w.meta(role)}
		w.edit(live, func() { live.Rules[0].ResourceNames = []string{strconv.Itoa(r.IntN(1000))} })
	case 3:
		w.remove(&rbacv1.RoleBinding{ObjectMeta: w.meta(role)})
		w.create(&rbacv1.RoleBinding{
			ObjectMeta: w.meta(role), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.ops, Name: "operator-0"}},
		})
	case 4:
		w.tamper(r)
	case 5:
		live := &rbacv1.RoleBinding{ObjectMeta: w.meta("operator-1-b")}
		w.edit(live, func() {
			live.Subjects[0].Name = fmt.Sprintf("operator-%d", r.IntN(3))
		})
	}
}

func (w *world) some(r *rand.Rand) []string {
	var members []string

	for _, m := range w.members {
		if r.IntN(2) == 0 {
			members = append(members, m)
		}
	}

	return members
}

// tamper damages a projected object, as a tenant may.
func (w *world) tamper(r *rand.Rand) {
	w.t.Helper()

	var roles rbacv1.RoleList
	if err := suite.client.List(w.t.Context(), &roles, client.HasLabels{scope.LabelScope}); err != nil {
		w.t.Fatal(err)
	}

	if len(roles.Items) == 0 {
		return
	}

	role := &roles.Items[r.IntN(len(roles.Items))]
	role.Rules = []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}

	if r.IntN(2) == 0 {
		role.Labels = nil
	}

	// Ambit may have changed or deleted it meanwhile; then there is nothing to undo.
	_ = suite.client.Update(w.t.Context(), role)
}

// TestKilledBetweenListAndRestart holds N6: the restart still happens once Ambit is back, and happens once.
func TestKilledBetweenListAndRestart(t *testing.T) {
	w := newWorld(t, "between", 1, 1)
	w.rolledOut("operator-0")
	w.scope()
	w.settled()
	// A pod that begins only after the list is written needs no restart.
	w.rolledOut("operator-0")

	before := w.deploymentOf("operator-0").Generation

	kill(t)

	// The list is written and the reader is not restarted: what Ambit leaves behind when it dies between the two.
	w.scope(w.members[0])
	list := w.members[0] + "," + w.ops
	w.write(list)
	start(t)
	w.settled()

	w.eventually("the reader restarts", func() bool { return w.deploymentOf("operator-0").Generation > before })

	after := w.deploymentOf("operator-0").Generation
	for range 3 {
		kill(t)
		start(t)
		w.settled()
	}

	if got := w.deploymentOf("operator-0").Generation; got != after {
		t.Errorf("generation went from %d to %d: restarted more than once for one list", after, got)
	}
}

// write writes the watch list as Ambit does.
func (w *world) write(list string) {
	w.t.Helper()

	content := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap",
		"metadata":{"annotations":{%q:%q,%q:"true"}},"data":{"namespaces":%q}}`,
		scope.AnnotationListHash, scope.ListHash(list, 0), scope.AnnotationCreated, list)
	patch := client.RawPatch(types.ApplyPatchType, []byte(content))

	err := suite.client.Patch(w.t.Context(), &corev1.ConfigMap{ObjectMeta: w.meta("namespace-scope")}, patch,
		client.ForceOwnership, client.FieldOwner(scope.FieldManager))
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestNothingRestartsTwice counts rollouts against lists, through kills. Before every list the last rollout is over: a reader
// whose only pod begins after the list was written needs no restart for it.
func TestNothingRestartsTwice(t *testing.T) {
	r := testcluster.Draws(t, 0)
	w := newWorld(t, "twice", 1, 4)
	w.rolledOut("operator-0")
	w.scope()
	w.settled()
	w.rolledOut("operator-0")

	before := w.deploymentOf("operator-0").Generation
	lists := 0

	for i := range w.members {
		w.scope(w.members[:i+1]...)

		lists++

		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
		kill(t)
		start(t)
		w.settled()
		w.rolledOut("operator-0")
	}

	if got := w.deploymentOf("operator-0").Generation - before; got != int64(lists) {
		t.Errorf("%d restarts for %d lists", got, lists)
	}
}

func (w *world) deploymentOf(name string) *appsv1.Deployment {
	w.t.Helper()

	d := &appsv1.Deployment{}
	if err := suite.client.Get(w.t.Context(), client.ObjectKey{Namespace: w.ops, Name: name}, d); err != nil {
		w.t.Fatal(err)
	}

	return d
}

// rolledOut waits until the pod of a Deployment is of its present template, and there is no other.
func (w *world) rolledOut(name string) {
	w.t.Helper()
	w.within(kubernetes, name+" is rolled out", func() bool { return testbed.RolledOut(w.deploymentOf(name)) })
}

const (
	// settling is less than client-go's reflectors pause by themselves, which is up to a minute.
	settling = 30 * time.Second
	// restartInterval is what managers are told, and what the planner of the tests knows of them: it would ask at once, and without
	// end, for restarts that wait for their time.
	restartInterval = time.Second
	// kubernetes is for what Kubernetes itself does, such as to end a namespace: that takes it five seconds at least, and eight
	// more with each try, and its controllers take their time to come back to an API server that was killed.
	kubernetes = 90 * time.Second
)

func (w *world) eventually(what string, holds func() bool) {
	w.t.Helper()
	w.within(testbed.Patience, what, holds)
}

func (w *world) within(bound time.Duration, what string, holds func() bool) {
	w.t.Helper()

	err := testbed.Until(bound, func() error {
		if !holds() {
			return errors.New("it did not come about")
		}

		return nil
	})
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
}
