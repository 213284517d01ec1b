package delegates_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestDefaultServiceAccount holds that a scope which names no account is written as the administrator's choice, in its own
// namespace.
func TestDefaultServiceAccount(t *testing.T) {
	w := beds.Begin(t, "delegated", "--default-service-account=deputy")
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")

	nss := w.Scope(ops, members(member))
	if c := w.Reports(nss, no, "AuthorizationRequired"); !strings.Contains(c.Message, ops+"/deputy does not exist") {
		t.Errorf("the message does not name the account: %s", c.Message)
	}

	w.Make(testbed.Account(ops, "deputy"))

	// Whoever is told what to run is told the account, too: a scope that names none would be granted to as another.
	command := "ambit authorize " + member + " --to " + ops + " --scope " + nss.Name + " --service-account deputy"
	if f := failure(w, nss, member, ops+"/deputy may not"); !strings.HasSuffix(f.Message, command) {
		t.Errorf("want %q at the end of %q", command, f.Message)
	}

	w.Grant(ops, "at-home", ops, "deputy", testbed.InOperatorNamespace()...)
	w.Grant(member, "in-member", ops, "deputy", append(testbed.InMember(), "get secrets")...)
	w.May(ops, "op", member, "get secrets")
	w.Reports(nss, yes, "Reconciled")

	// One that names an account is written as that.
	w.Make(testbed.Account(ops, "another"))
	// The list may have changed a moment ago, so that its reader restarts only now.
	w.Grant(ops, "another-at-home", ops, "another", testbed.InOperatorNamespace()...)
	w.Change(nss, func() { nss.Spec.ServiceAccountName = "another" })
	// What goes before Ambit has heard of that is put back by the account that was named until then.
	w.Reports(nss, yes, "Reconciled")
	w.Remove(projectedRole(w, member))
	w.Reports(nss, no, "AuthorizationRequired")

	failure(w, nss, member, ops+"/another may not")
}

// TestOwnRightsWhereThereAreNone holds that Ambit without rights of its own says so, also when nobody told it that it has none.
func TestOwnRightsWhereThereAreNone(t *testing.T) {
	w := beds.Begin(t, "delegated", "--require-service-account=false")
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")

	nss := w.Scope(ops, members(member))
	w.Reports(nss, no, "AuthorizationRequired")

	f := failure(w, nss, member, "Ambit itself may not get secrets; create, delete, patch")
	if !strings.HasSuffix(f.Message, "to an account of namespace "+ops+", which namespaces can authorize") {
		t.Errorf("what is missing: %s", f.Message)
	}

	w.Remove(nss)
	w.Eventually("the scope goes", w.Gone(nss))
}

// TestDefaultScopeWhenAsked holds that every profile begins with a scope when it is asked to. While the right to make it, which
// comes with the component, is missing, Ambit serves other scopes, and makes it as soon as it may.
func TestDefaultScopeWhenAsked(t *testing.T) {
	for _, profile := range []string{"cluster", "delegated"} {
		t.Run(profile, func(t *testing.T) {
			w := beds.Begin(t, profile, "--default-scope", "--metrics-bind-address=0")

			other := w.Scope(w.Namespace("other"), members())
			w.Eventually("another scope has a status", func() error {
				if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(other), other); err != nil {
					return err
				}

				if other.Status.ObservedGeneration == 0 {
					return errors.New("it has none")
				}

				return nil
			})

			component := filepath.Join(embedded.Root(), "config", "components", "default-scope")
			for _, file := range []string{"role.yaml", "rolebinding.yaml"} {
				if out, err := w.Cluster.Kubectl(t.Context(), "apply", "-f", filepath.Join(component, file)); err != nil {
					t.Fatal(out, err)
				}
			}

			if nss := defaultScope(w); len(nss.Spec.NamespaceMembers) != 1 || nss.Spec.NamespaceMembers[0] != nss.Namespace {
				t.Errorf("its members are %v", nss.Spec.NamespaceMembers)
			}
		})
	}
}
