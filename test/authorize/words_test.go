package authorize_test

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// TestWordsSayNoLessThanIsGranted has Roles of an operator whose rules look like less than the API server takes them for. Whoever
// authorizes decides by what is printed.
func TestWordsSayNoLessThanIsGranted(t *testing.T) {
	t.Parallel()

	h := begin(t)
	h.makeOperator()
	h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})

	// A request that names no object has the empty name.
	nameless := rule("", "configmaps", "list", "deletecollection")
	nameless.ResourceNames = []string{"", "a"}

	h.make(h.role("odd", nameless, rule("*", "leases", "delete")), h.bind("odd", "Role", "odd", h.subject("secretman")))

	out := h.must("command", "authorize", h.ns, "--to", h.ops, "--grant-only")
	h.settles(account(h.ops, "ambit"), h.ns, []string{
		"list configmaps", "deletecollection configmaps", "delete leases.coordination.k8s.io x",
		"bind clusterroles.rbac.authorization.k8s.io view",
	}, true)

	for _, words := range []string{
		"list, deletecollection: configmaps named a, and requests that name none", "delete: leases of every API group",
		"bind: clusterroles named view of rbac.authorization.k8s.io, so all that these allow here, later too",
	} {
		if !strings.Contains(out, "  "+words+"\n") {
			t.Errorf("nothing of %q in\n%s", words, out)
		}
	}
}

// TestForeignBindingOfAGrantIsTold has somebody bound to the Role of a grant while they hold what it allows. The Role then gains
// rules, and so do they; whoever authorizes learns of that before, by the dry run too.
func TestForeignBindingOfAGrantIsTold(t *testing.T) {
	t.Parallel()

	h := begin(t)
	h.makeOperator()
	h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})
	h.must("command", "authorize", h.ns, "--to", h.ops, "--grant-only")

	roles, _ := h.grants()
	foreign := h.bind("foreign", "Role", roles[0].Name, rbacv1.Subject{
		APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "mallory",
	})
	h.makeInMember(h.Client, foreign)
	h.make(h.role("more", rule("", "services", "delete")), h.bind("more", "Role", "more", h.subject("secretman")))

	for _, arguments := range [][]string{{"--dry-run=client"}, {"--dry-run=server"}, nil} {
		out := h.must("command", "authorize", append([]string{h.ns, "--to", h.ops, "--grant-only"}, arguments...)...)
		h.tells("mallory gets it, too", out, "foreign")

		if !strings.Contains(out, "User mallory") {
			t.Errorf("nobody is named: %s", out)
		}
	}

	h.settles("mallory", h.ns, []string{"delete services x"}, true)

	if err := h.Delete(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}

	if out := h.must("command", "authorize", h.ns, "--to", h.ops, "--grant-only"); strings.Contains(out, "foreign") {
		t.Errorf("it is gone, but: %s", out)
	}
}
