package delegates_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// command is what status says to run, after "to grant it: ".
var command = regexp.MustCompile(`to grant it: ambit (.*)$`)

// TestManualManagement holds that Ambit uses nothing but what was authorized in each member, whatever it could do itself, and
// that the commands in status lead from a refused scope to a working one.
func TestManualManagement(t *testing.T) {
	for _, profile := range []string{"cluster", "delegated"} {
		t.Run(profile, func(t *testing.T) {
			w := begin(t, profile)
			ops, first, second := w.Namespace("home"), w.Namespace("member"), w.Namespace("member")
			w.Operator(ops, "op", "get secrets")

			spec := members(first, second)
			spec.ManualManagement = true
			nss := w.Scope(ops, spec)

			// Nothing was authorized yet, so there is not even an account.
			if c := w.Reports(nss, no, "AuthorizationRequired"); !strings.Contains(c.Message, ops+"/ambit does not exist") ||
				!strings.Contains(c.Message, "ambit authorize member-") {
				t.Errorf("status does not say what to do: %s", c.Message)
			}

			if out, code := w.Ambit("authorize", first, "--to", ops, "--scope", "scope"); code != 0 {
				t.Fatalf("exit code %d: %s", code, out)
			}

			w.May(ops, "op", first, "get secrets")

			if w.Allowed(ops, "op", second, "get secrets") {
				t.Error("a member that authorized nothing is served")
			}

			says := command.FindStringSubmatch(failure(w, nss, second, "to grant it: ambit").Message)
			if out, code := w.Ambit(strings.Fields(says[1])...); code != 0 {
				t.Fatalf("exit code %d: %s", code, out)
			}

			w.May(ops, "op", second, "get secrets")
			w.Reports(nss, yes, "Reconciled")

			// The older way back, too.
			if out, code := w.Ambit("revoke", first, "--to", ops, "--scope", "scope"); code != 0 {
				t.Fatalf("exit code %d: %s", code, out)
			}

			w.MayNot(ops, "op", first, "get secrets")
			w.MayNot(ops, "ambit", first, "create roles")
			w.Reports(nss, yes, "Reconciled")
		})
	}
}

func TestManualManagementOfTheLegacyGroup(t *testing.T) {
	w := begin(t, "delegated")
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")

	nss := &namespacescopev1alpha1.NamespaceScope{
		ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "scope"},
		Spec:       namespacescopev1alpha1.NamespaceScopeSpec{ManualManagement: true},
	}
	w.Make(nss)

	if out, code := w.Ambit("authorize", member, "--to", ops, "--scope", "namespacescope.ibm.com/scope"); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}

	w.May(ops, "op", member, "get secrets")

	// Every account of the namespace is projected, but what was granted to the one that writes is about other namespaces.
	if w.Allowed(ops, "ambit", member, "patch deployments") || w.Allowed(ops, "ambit", member, "create configmaps") {
		t.Error("an authorization was projected")
	}

	w.Remove(nss)
	w.Eventually("the scope goes", w.Gone(nss))
	w.MayNot(ops, "op", member, "get secrets")
}

// manualBesideAmbit makes a manual scope where Ambit itself is, of one member and with a list of its own, and an operator there
// that is called as the member is.
func manualBesideAmbit(w *testbed.World) (ops, member string, nss *operatorv1.NamespaceScope) {
	w.Helper()
	defaultScope(w) // It is made only where there is no scope yet.

	ops, member = embedded.Namespace, w.Namespace("member")
	w.Operator(ops, member, "get secrets")

	spec := members(member)
	spec.ManualManagement, spec.ConfigmapName = true, member

	return ops, member, w.ScopeCalled(ops, member, spec)
}

// TestManualManagementIsAmbitItselfInItsOperatorNamespace holds that in the namespaced profile a manual scope is written by Ambit
// itself, which has no more there than what was granted to it.
func TestManualManagementIsAmbitItselfInItsOperatorNamespace(t *testing.T) {
	w := begin(t, "namespaced")
	ops, member, nss := manualBesideAmbit(w)
	w.Reports(nss, no, "AuthorizationRequired")

	if out, code := w.Ambit("authorize", member, "--to", ops, "--scope", member); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}

	w.May(ops, member, member, "get secrets")
	w.Reports(nss, yes, "Reconciled")
	w.Remove(nss)
	w.Eventually("the scope goes", w.Gone(nss))
	w.MayNot(ops, member, member, "get secrets")
}

// TestManualManagementInAmbitsOwnNamespaceLendsNothing holds that in the profile delegated, where Ambit's own account may read
// nearly everything, a manual scope beside it passes on nothing by that: all that it may use is what owners granted.
func TestManualManagementInAmbitsOwnNamespaceLendsNothing(t *testing.T) {
	w := begin(t, "delegated")
	ops, member := embedded.Namespace, w.Namespace("member")
	w.Operator(ops, member, "get secrets")

	spec := members(member)
	spec.ManualManagement, spec.ConfigmapName = true, member
	spec.ServiceAccountMembers, spec.RestartLabels = []string{member}, map[string]operatorv1.LabelValue{"only": "named"}
	nss := w.ScopeCalled(ops, member, spec)

	if out, code := w.Ambit("authorize", member, "--to", ops, "--scope", member); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}

	role := testbed.Role(ops, member+"-role")
	w.Change(role, func() { role.Rules = append(role.Rules, testbed.Rule("list configmaps")) })
	w.Reports(nss, no, "AuthorizationRequired")
	failure(w, nss, member, "Ambit's own, which may do more; name another one in spec.serviceAccountName")
	w.MayNot(ops, member, member, "list configmaps")
	w.MayNot(ops, member, member, "get secrets")
}

// TestClusterRoleThatDoesNotExist holds that where Ambit may not look for a ClusterRole, a binding to one that does not exist is
// reported, and holds up nothing.
func TestClusterRoleThatDoesNotExist(t *testing.T) {
	w := begin(t, "namespaced")
	ops, member, nss := manualBesideAmbit(w)

	if out, code := w.Ambit("authorize", member, "--to", ops, "--scope", member); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}

	w.Reports(nss, yes, "Reconciled")
	w.Make(testbed.Bind(ops, "ClusterRole", "nowhere-"+member, ops, member))
	w.Eventually("the binding is reported", func() error {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(nss), nss); err != nil {
			return err
		}

		c := meta.FindStatusCondition(nss.Status.Conditions, "RolesFound")
		if c == nil || c.Status != no || !strings.Contains(c.Message, ": ClusterRole nowhere-"+member) {
			return fmt.Errorf("conditions are %+v", nss.Status.Conditions)
		}

		return nil
	})
	w.Reports(nss, yes, "Reconciled")
	w.May(ops, member, member, "get secrets")

	if !slices.Contains(nss.Status.ValidatedMembers, member) {
		t.Errorf("the list has %v", nss.Status.ValidatedMembers)
	}

	w.Remove(nss)
	w.Eventually("the scope goes", w.Gone(nss))
}

// TestForeignAccountWhereNoneCanBe holds that the namespaced profile says that it writes as nobody else.
func TestForeignAccountWhereNoneCanBe(t *testing.T) {
	w := begin(t, "namespaced")
	defaultScope(w) // It is made only where there is no scope yet.

	ops, member := "ambit-system", w.Namespace("member")
	w.Make(testbed.Account(ops, member))

	spec := named(member, member)
	spec.ConfigmapName = member
	nss := w.ScopeCalled(ops, member, spec)

	c := w.Reports(nss, no, "AuthorizationRequired")
	if !strings.Contains(c.Message, "may not act as service account "+ops+"/"+member) {
		t.Errorf("status does not say why: %s", c.Message)
	}

	w.Remove(nss)
	w.Eventually("the scope goes", w.Gone(nss))
}
