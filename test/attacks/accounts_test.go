package attacks_test

import (
	"context"
	"errors"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// Who may do no more than patch service accounts keeps one by a finalizer, so that Ambit goes on writing as it after somebody
// deleted it. The API server accepts no token of such an account.
func TestAccountThatAFinalizerKeepsWritesNothing(t *testing.T) {
	w := begin(t, "delegated")
	ops, member, other := w.Namespace("home"), w.Namespace("member"), w.Namespace("other")
	w.Operator(ops, "op", "get secrets")
	w.Delegate(ops, []string{"get secrets"}, member, other)

	nss := w.Scope(ops, testbed.DelegatedBy("delegate", member))
	w.Reports(nss, yes, "Reconciled")
	keepByFinalizer(w, ops, "delegate")
	w.Reports(nss, no, "AuthorizationRequired")

	w.Change(nss, func() { nss.Spec.NamespaceMembers = []string{member, other} })
	w.Reports(nss, no, "AuthorizationRequired")

	if err := denied(w, ops, "op", other, "get secrets"); err != nil {
		t.Error(err)
	}
}

// The same for an account as which operators are installed.
func TestInstallerThatAFinalizerKeepsInstallsNothing(t *testing.T) {
	w := begin(t, "delegated")
	ops := w.Namespace("home")
	w.Make(testbed.Account(ops, "installer"), testbed.GroupOf(ops, "installer"))
	w.Grant(ops, "installs", ops, "installer", "* *")
	keepByFinalizer(w, ops, "installer")

	csv := testbed.ReadsSecrets(ops)
	w.Make(csv)
	w.Eventually("the operator is not installed", func() error { return w.InPhase(csv, olm.CSVPhaseFailed) })

	if err := denied(w, ops, "op", ops, "get secrets"); err != nil {
		t.Error(err)
	}
}

// keepByFinalizer deletes an account on which somebody put a finalizer before.
func keepByFinalizer(w *testbed.World, namespace, name string) {
	w.Helper()

	mallory, account := w.Tenant("mallory-"+namespace, namespace), testbed.Account(namespace, name)
	keep := func() { account.Finalizers = []string{"example.com/stay"} }
	if err := testbed.Change(w.Context(), mallory, account, keep); err != nil {
		w.Fatal(err)
	}

	w.Cleanup(func() {
		if err := testbed.Change(context.Background(), w.Client, account, func() { account.Finalizers = nil }); err != nil {
			w.Error(err)
		}
	})
	w.Remove(account)

	err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(account), account)
	if err != nil || account.DeletionTimestamp == nil {
		w.Fatal(errors.Join(err, errMissing))
	}
}
