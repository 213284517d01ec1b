package authorize_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/grant"
)

// TestGrantsForInstallsAreNoScopes: what a namespace's owner granted to installed operators is no scope's. Whoever takes back the
// grant of a scope keeps it and is told, and "ambit revoke --installs" takes back nothing else.
func TestGrantsForInstallsAreNoScopes(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("operators", operatorv1.NamespaceScopeSpec{})

		whole := grant.Grant{
			Namespace: h.ns, To: h.ops, Account: "installer", Installs: true,
			Rules: []rbacv1.PolicyRule{rule("", "configmaps", "get")},
		}
		part := whole
		part.Part, part.Rules = true, []rbacv1.PolicyRule{rule("", "secrets", "get")}
		installs := []string{whole.Name(), part.Name()}
		ofScope := "ambit-authorized-from-" + h.ops + ".operators"

		h.make(whole.Role(), whole.RoleBinding(), part.Role(), part.RoleBinding())

		left := func(reason string, want ...string) {
			h.Helper()

			roles, bindings := h.grants()

			var names, bound []string
			for i := range roles {
				names = append(names, roles[i].Name)
			}

			for i := range bindings {
				bound = append(bound, bindings[i].Name)
			}

			slices.Sort(want)

			if !slices.Equal(names, want) || !slices.Equal(bound, want) {
				h.Errorf("%s: left are %q and %q, want %q", reason, names, bound, want)
			}
		}

		h.must("command", "authorize", h.ns, "--to", h.ops)
		left("granted", append(installs, ofScope)...)

		command := "ambit revoke " + h.ns + " --to " + h.ops + " --installs"
		if out := h.must(tool, "revoke", h.ns, "--to", h.ops); strings.Count(out, command) != 1 {
			h.Errorf("what stays is told once, with %q: %s", command, out)
		}

		left("of the scope", installs...)
		h.must(tool, "revoke", h.ns, "--to", h.ops, "--scope", "operators", "--grant-only")
		left("of the scope by its name", installs...)

		if tool == "command" {
			h.must(tool, "authorize", h.ns, "--to", h.ops)
			h.must(tool, "revoke", h.ns, "--to", h.ops, "--installs", "--dry-run=server")
			left("by a dry run", append(installs, ofScope)...)

			if out := h.must(tool, "revoke", h.ns, "--to", h.ops, "--installs"); !strings.Contains(out, "scope operators stays") {
				h.Errorf("the grant of the scope is not told: %s", out)
			}

			left("for installs", ofScope)

			if members := h.members("operators"); !slices.Equal(members, []string{h.ns}) {
				h.Errorf("the members are %q", members)
			}

			h.make(whole.Role(), whole.RoleBinding(), part.Role(), part.RoleBinding())
		}

		h.must(tool, "revoke", h.ns, "--to", h.ops, "--grant-only")
		left("everything")
	})

	h := begin(t)
	h.refuses("for no scope", "command", "", 2, []string{"--installs"}, []string{
		"revoke", h.ns, "--to", h.ops, "--installs", "--scope", "operators",
	})
	h.refuses("of another namespace", "command", "", 2, []string{"--installs"},
		[]string{"revoke", h.ops, "--to", h.ops, "--installs"})
}
