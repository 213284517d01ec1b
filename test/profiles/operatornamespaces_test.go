package profiles_test

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// untilOpen is how long it takes until a namespace that may be read is read: client-go tries at least once a minute.
const untilOpen = 90 * time.Second

// mayNotRead is how the manager's log begins to speak of a namespace that may not be read.
const mayNotRead = "May not read the NamespaceScopes"

var errNotYet = errors.New("not yet")

// TestOneOperatorNamespaceMayNotBeRead holds that of several namespaces, each is served that Ambit may read, whatever it may
// elsewhere, and in its own namespace; that the others are told once; and that they are served without a new start of the manager
// as soon as they may be read.
func TestOneOperatorNamespaceMayNotBeRead(t *testing.T) {
	w, role := withNamespaces(t, "home-a", "home-b")
	scopes := map[string]*operatorv1.NamespaceScope{}

	for _, name := range []string{"member", "further"} {
		w.MakeNamespace(name)

		for _, ops := range []string{"home-a", "home-b"} {
			b := testbed.Bind(name, "ClusterRole", "cluster-admin", ops, embedded.ServiceAccount)
			b.Name = ops
			w.Make(b)
		}
	}

	for _, ops := range []string{"home-a", "home-b"} {
		w.MakeNamespace(ops)
		w.Operator(ops, "operator", "get secrets")
		scopes[ops] = w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{"member"}})
	}

	letIn(w, role, "home-a")

	if err := w.Manager.Start(); err != nil {
		t.Fatal(err)
	}

	w.Reports(scopes["home-a"], metav1.ConditionTrue, "Reconciled")
	w.May("home-a", "operator", "member", "get secrets")

	for _, closed := range []string{"home-b", embedded.Namespace} {
		w.Eventually(closed+" is told", func() error { return logged(w, mayNotRead, closed, 1) })
	}

	letIn(w, role, "home-b")
	letIn(w, role, embedded.Namespace)

	w.Within(untilOpen, "home-b is served", func() error {
		err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(scopes["home-b"]), scopes["home-b"])
		if err == nil && !meta.IsStatusConditionTrue(scopes["home-b"].Status.Conditions, "Ready") {
			err = errNotYet
		}

		return err
	})
	w.May("home-b", "operator", "member", "get secrets")
	w.Within(untilOpen, "the default scope is made", func() error {
		return w.Client.Get(t.Context(), client.ObjectKey{Namespace: embedded.Namespace, Name: controllers.DefaultScopeName},
			&operatorv1.NamespaceScope{})
	})

	for words, times := range map[string]int{mayNotRead: 1, "can be read now": 1} {
		if err := logged(w, words, "home-b", times); err != nil {
			t.Error(err)
		}
	}

	t.Run("WhatItProjectedStays", func(t *testing.T) { keepsCopies(&testbed.World{T: t, Bed: w.Bed}, role, scopes) })
}

// keepsCopies holds that where the scopes of a namespace may not be read, but everything else, what they had projected is not
// taken for something that no scope wants.
func keepsCopies(w *testbed.World, role *rbacv1.Role, scopes map[string]*operatorv1.NamespaceScope) {
	w.Helper()

	before := copies(w, "home-b")
	if len(before) == 0 {
		w.Fatal("nothing is projected")
	}

	if err := w.Manager.Stop(); err != nil {
		w.Fatal(err)
	}

	inB := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "home-b", Name: role.Name}}
	w.Change(inB, func() {
		inB.Rules = slices.DeleteFunc(inB.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Resources, "namespacescopes")
		})
	})
	w.Eventually("the scopes may not be read", func() error { return mayRead(w, "home-b", false) })

	if err := w.Manager.Start(); err != nil {
		w.Fatal(err)
	}

	// That it is served takes a look into the member, where the copies for operator namespace-b are, too.
	w.Change(scopes["home-a"], func() { scopes["home-a"].Spec.NamespaceMembers = []string{"member", "further"} })
	w.Reports(scopes["home-a"], metav1.ConditionTrue, "Reconciled")
	w.May("home-a", "operator", "further", "get secrets")
	w.Eventually("home-b is told again", func() error { return logged(w, mayNotRead, "home-b", 2) })

	// A manager that still waits for a namespace ends when it is asked to.
	if err := w.Manager.Restart(); err != nil {
		w.Fatal(err)
	}

	w.Change(scopes["home-b"], func() { scopes["home-b"].Spec.NamespaceMembers = []string{"member", "further"} })
	w.Change(inB, func() { inB.Rules = role.Rules })
	w.Within(untilOpen, "home-b is served again", func() error {
		if !w.Allowed("home-b", "operator", "further", "get secrets") {
			return errNotYet
		}

		return nil
	})

	if after := copies(w, "home-b"); !maps.Equal(before, after) {
		w.Errorf("copies were %v, and are now %v", before, after)
	}
}

// copies are the Roles and RoleBindings in the member that were projected for an operator namespace: a copy that went and came
// back is another.
func copies(w *testbed.World, ops string) map[string]types.UID {
	w.Helper()

	out := map[string]types.UID{}

	for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
		if err := w.Client.List(w.Context(), list, client.InNamespace("member"), client.HasLabels{"ambit.dev/scope"}); err != nil {
			w.Fatal(err)
		}

		err := meta.EachListItem(list, func(o runtime.Object) error {
			if obj, ok := o.(client.Object); ok && strings.Contains(fmt.Sprint(obj.GetLabels(), obj.GetAnnotations()), ops) {
				out[fmt.Sprintf("%T %s", obj, obj.GetName())] = obj.GetUID()
			}

			return nil
		})
		if err != nil {
			w.Fatal(err)
		}
	}

	return out
}

// withHomes installs the profile namespaced, and returns it with a manager that was not started yet and is to serve further
// namespaces beside its own, none of which it may read. It returns what it needs in each as well.
func withNamespaces(t *testing.T, further ...string) (*testbed.World, *rbacv1.Role) {
	t.Helper()

	dir := t.TempDir() // It goes after the manager that logs there.

	bed, err := testbed.Start(t.Context(), "namespaced", "--default-scope=false")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if log, err := os.ReadFile(bed.Manager.Log); t.Failed() {
			t.Logf("the manager's log (%v):\n%s", err, log)
		}

		if err := bed.Stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})

	if err := bed.Manager.Stop(); err != nil {
		t.Fatal(err)
	}

	w := &testbed.World{T: t, Bed: bed}
	role := &rbacv1.Role{}

	key := client.ObjectKey{Namespace: embedded.Namespace, Name: "ambit-namespaced"}
	if err := bed.Client.Get(t.Context(), key, role); err != nil {
		t.Fatal(err)
	}

	shutOut(w, embedded.Namespace, role.Name)

	opsNamespaces := strings.Join(append(further, embedded.Namespace), ",")
	if bed.Manager, err = embedded.NewManager(t.Context(), bed.Config, dir, bed.Program, "--namespaces="+opsNamespaces); err != nil {
		t.Fatal(err)
	}

	return w, role
}

// letIn grants in an operator namespace what Ambit has in its own namespace, and waits until the API server knows.
func letIn(w *testbed.World, role *rbacv1.Role, ops string) {
	w.Helper()

	if ops != role.Namespace {
		w.Make(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: role.Name}, Rules: role.Rules})
	}

	w.Make(testbed.Bind(ops, "Role", role.Name, embedded.Namespace, embedded.ServiceAccount))
	w.Eventually("Ambit is let into "+ops, func() error { return mayRead(w, ops, true) })
}

func shutOut(w *testbed.World, ops, binding string) {
	w.Helper()
	w.Remove(&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: binding}})
	w.Eventually("Ambit is shut out of "+ops, func() error { return mayRead(w, ops, false) })
}

func mayRead(w *testbed.World, ops string, want bool) error {
	w.Helper()

	group := operatorv1.GroupVersion.Group
	if w.AllowedIn(embedded.Namespace, embedded.ServiceAccount, ops, "list", group, "namespacescopes") != want {
		return errNotYet
	}

	return nil
}

// logged holds that the manager's log has words about a namespace in so many lines.
func logged(w *testbed.World, words, namespace string, times int) error {
	w.Helper()

	found := w.Logged(words, fmt.Sprintf("namespace=%q", namespace))
	if found != times {
		return fmt.Errorf("%d lines of the log say %q of %s, want %d", found, words, namespace, times)
	}

	return nil
}
