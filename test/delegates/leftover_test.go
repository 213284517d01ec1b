package delegates_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestLeftoversGoByTheCommandThatStatusNames holds that a namespace that left is not made a member again by the command with
// which the account may remove what is left there, and that the same command releases a scope that is being deleted.
func TestLeftoversGoByTheCommandThatStatusNames(t *testing.T) {
	w := begin(t, "delegated")
	ops, left, member := w.Namespace("home"), w.Namespace("left"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")
	w.Make(testbed.Account(ops, "writer"))
	w.Grant(ops, "own", ops, "writer", testbed.InOperatorNamespace()...)

	for _, namespace := range []string{left, member} {
		w.Grant(namespace, "granted", ops, "writer", append(testbed.InMember(), "get secrets")...)
	}

	spec := members(left, member)
	spec.ServiceAccountName = "writer"
	nss := w.Scope(ops, spec)
	w.Reports(nss, yes, "Reconciled")

	// Copies that were written with rights of other origin than an authorization stay when these go.
	withdraw := func(namespace string) {
		w.Remove(testbed.Bind(namespace, "Role", "granted", ops, "writer"))
	}

	withdraw(left)
	w.Change(nss, func() { nss.Spec.NamespaceMembers = []string{member} })
	run(w, failure(w, nss, left, "--grant-only").Message)
	copiesGo(w, left)
	w.Reports(nss, yes, "Reconciled")

	if slices.Contains(nss.Spec.NamespaceMembers, left) {
		t.Error("the namespace is a member again")
	}

	withdraw(member)
	w.Remove(nss)

	leftover := failure(w, nss, member, "--grant-only").Message

	w.Reports(nss, no, "AuthorizationRequired", "1 of 2 members are not authorized: "+member)

	if out, code := w.Ambit("authorize", member, "--to", ops); code != 1 || !strings.Contains(out, "give --grant-only") {
		t.Errorf("a scope that is being deleted takes no members: exit code %d: %s", code, out)
	}

	run(w, leftover)
	copiesGo(w, member)
	w.Eventually("the scope goes", w.Gone(nss))
}

// run types the command at the end of a message.
func run(w *testbed.World, message string) {
	w.Helper()

	_, command, found := strings.Cut(message, ": ambit ")
	if !found {
		w.Fatalf("it names no command: %s", message)
	}

	if out, code := w.Ambit(strings.Fields(command)...); code != 0 {
		w.Fatalf("%s: exit code %d: %s", command, code, out)
	}
}
