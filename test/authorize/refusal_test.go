package authorize_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// refuses holds that a tool ends with a code and one line that says all the words.
func (h *house) refuses(reason, tool, user string, code int, words, args []string) {
	h.Helper()

	r := h.run(tool, user, args[0], args[1:]...)
	if r.code != code {
		h.Errorf("%s: %s %v: exit %d, want %d: %s", reason, tool, args, r.code, code, r.err)
	}

	if !strings.HasPrefix(r.err, "error: ") || strings.Count(r.err, "\n") != 1 {
		h.Errorf("%s: %s %v: an error is one line: %q", reason, tool, args, r.err)
	}

	for _, word := range words {
		if !strings.Contains(r.err, word) {
			h.Errorf("%s: %s %v: it does not say %q: %s", reason, tool, args, word, r.err)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeScope("b", operatorv1.NamespaceScopeSpec{})

		for _, tc := range []struct {
			reason string
			code   int
			words  []string
			args   []string
		}{
			{"a flag that is none", 2, []string{"frobnicate"}, []string{"authorize", h.ns, "--frobnicate"}},
			{"two namespaces", 2, []string{"one namespace"}, []string{"authorize", h.ns, "other", "--to", h.ops}},
			{"a flag without its value", 2, []string{"scope"}, []string{"authorize", h.ns, "--to", h.ops, "--scope"}},
			{"no name", 2, []string{"No_Name"}, []string{"authorize", "No_Name", "--to", h.ops}},
			{"no name either", 2, []string{"a/b"}, []string{"authorize", h.ns, "--to", "a/b"}},
			{"nor this", 2, []string{"S!"}, []string{"authorize", h.ns, "--to", h.ops, "--scope", "S!"}},
			{"nor that", 2, []string{"x y"}, []string{"authorize", h.ns, "--to", h.ops, "--service-account", "x y"}},
			{"no group", 2, []string{"example.com"}, []string{"authorize", h.ns, "--to", h.ops, "--scope", "example.com/b"}},
			{"no name after it", 2, []string{"scope"}, []string{"authorize", h.ns, "--to", h.ops, "--scope", oldGroup}},
			{"all of its own", 2, []string{"all"}, []string{"authorize", h.ops, "--to", h.ops, "--all"}},
			{"a dry run that is none", 2, []string{"maybe"}, []string{"authorize", h.ns, "--to", h.ops, "--dry-run=maybe"}},

			{"no such namespace", 1, []string{"nowhere-1"}, []string{"authorize", "nowhere-1", "--to", h.ops}},
			{"nor the other", 1, []string{"nowhere-2"}, []string{"authorize", h.ns, "--to", "nowhere-2"}},
			{"nor for revoke", 1, []string{"nowhere-2"}, []string{"revoke", h.ns, "--to", "nowhere-2"}},
			{"no scope there", 1, []string{"no NamespaceScope in namespace " + h.ns, "create it"}, []string{
				"authorize", h.ops, "--to", h.ns,
			}},
			{"nor to leave", 1, []string{"no NamespaceScope", "grant-only"}, []string{"revoke", h.ops, "--to", h.ns}},
			{"no scope of that group", 1, []string{"no NamespaceScope of namespacescope.ibm.com"}, []string{
				"authorize", h.ns, "--to", h.ops, "--scope", oldGroup + "b",
			}},
			{"no scope of that name", 1, []string{"NamespaceScope c", "there is b", "scope NAME"}, []string{
				"authorize", h.ns, "--to", h.ops, "--scope", "c",
			}},
		} {
			h.refuses(tc.reason, tool, "", tc.code, tc.words, tc.args)
			h.untouched(tc.reason)
		}

		h.makeScope("a", operatorv1.NamespaceScopeSpec{})
		h.refuses("one of two", tool, "", 1, []string{"several", "scope NAME"}, []string{"authorize", h.ns, "--to", h.ops})
		h.untouched("one of two")

		if len(h.members("a"))+len(h.members("b")) > 0 {
			h.Error("a member was added")
		}
	})

	h := begin(t)
	h.refuses("for whom?", "command", "", 2, []string{"--to"}, []string{"authorize", h.ns})
	h.refuses("which?", "command", "", 2, []string{"-n says other"}, []string{"authorize", h.ns, "--to", h.ops, "-n", "other"})
	h.refuses("no form", "command", "", 2, []string{"xml"}, []string{"authorize", h.ns, "--to", h.ops, "-o", "xml"})
	h.refuses("no time", "command", "", 2, []string{"--timeout"}, []string{"revoke", h.ns, "--to", h.ops, "--timeout=-1s"})

	if r := h.run("script", "", "authorize", "-h"); r.code != 0 || !strings.Contains(r.out, "[-to namespacename") {
		t.Errorf("-h explains the script: %+v", r)
	}
}

// TestNamespaceAdmin has somebody authorization who has no rights but in their own namespace, and later in the other one to
// look.
func TestNamespaceAdmin(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		user := h.ns + "-admin"
		h.make(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: h.ns, Name: "admins"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		})
		h.make(
			h.account("secretman"), h.deployment("secretman", "secretman", "projected"),
			h.role("secretman", rule("", "secrets", "get", "list")),
			h.bind("secretman", "Role", "secretman", h.subject("secretman")),
		)
		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})

		args := []string{h.ns, "--to", h.ops}
		authorize := append([]string{"authorize"}, args...)
		grantOnly := append(slices.Clone(authorize), "--grant-only")

		h.refuses("who may not look", tool, user, 1, []string{"may", "NamespaceScopes", h.ops, "grant-only"}, authorize)
		h.untouched("who may not look")

		h.make(h.role("look", rule("operator.ibm.com", "namespacescopes", "get", "list")),
			h.bind("look", "Role", "look", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}))
		h.settles(user, h.ops, []string{"list namespacescopes.operator.ibm.com"}, true)
		h.refuses("who may not look at the other group", tool, user, 1, []string{"namespacescope.ibm.com", "GROUP/NAME"}, authorize)
		h.refuses("who may not look at roles", tool, user, 1, []string{"unknown", h.ops},
			append(slices.Clone(authorize), "--scope", "operator.ibm.com/namespacescope"))
		h.untouched("who may not look at roles")

		looks := h.role("looks", rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}})
		h.make(looks, h.bind("looks", "Role", "looks", rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}))
		h.settles(user, h.ops, []string{"list roles.rbac.authorization.k8s.io"}, true)
		h.refuses("who may not make the account", tool, user, 1, []string{"service account " + h.ops + "/ambit"}, authorize)
		h.untouched("who may not make the account")

		if r := h.run(tool, user, "authorize", grantOnly[1:]...); r.code != 0 || strings.Count(r.out, "does not exist") != 1 {
			h.Errorf("an owner may consent to an account that is not there yet: %+v", r)
		}

		h.check(account(h.ops, "ambit"), []string{"list secrets"}, []string{"delete secrets x"})

		if r := h.run(tool, user, "revoke", grantOnly[1:]...); r.code != 0 {
			h.Fatalf("and take it back: %+v", r)
		}

		h.make(h.account("ambit"))
		h.refuses("who may not write the scope", tool, user, 1, []string{h.ops + "/namespacescope", "grant-only"}, authorize)

		if roles, bindings := h.grants(); len(roles)+len(bindings) > 0 {
			h.Errorf("a refusal changes nothing: %v %v", roles, bindings)
		}

		if r := h.run(tool, user, "authorize", grantOnly[1:]...); r.code != 0 {
			h.Fatalf("who holds what is granted may grant it: %+v", r)
		}

		h.check(account(h.ops, "ambit"), []string{"list secrets"}, []string{"delete secrets x"})

		h.must(tool, "authorize", args...)

		if r := h.run(tool, user, "revoke", args...); r.code != 1 || strings.Contains(r.out, ": taken back") {
			h.Errorf("what is refused is not said to be done: %+v", r)
		}

		h.make(h.role("more", rule("example.com", "certificates", "use")), h.bind("more", "Role", "more", h.subject("secretman")))
		h.refuses("nobody grants what they do not hold", tool, user, 1, []string{"certificates", "hold"}, grantOnly)
		h.refuses("least of all everything", tool, user, 1, []string{"hold"}, append(slices.Clone(grantOnly), "--all"))
		h.check(account(h.ops, "ambit"), []string{"list secrets"}, []string{"use certificates.example.com x", "create pods"})

		if r := h.run(tool, user, "revoke", grantOnly[1:]...); r.code != 0 {
			h.Errorf("an owner takes back without any right elsewhere: %+v", r)
		}

		if roles, bindings := h.grants(); len(roles)+len(bindings) > 0 {
			h.Errorf("left behind: %v %v", roles, bindings)
		}
	})
}

func TestDryRun(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})

		for _, dry := range []string{"--dry-run=client", "--dry-run=server"} {
			out := h.must(tool, "authorize", h.ns, "--to", h.ops, dry)
			if !strings.Contains(out, "kind: RoleBinding") || !strings.Contains(out, "Nothing was changed") {
				h.Errorf("%s shows what would be granted: %s", dry, out)
			}

			h.untouched(dry)

			if got := h.members("namespacescope"); len(got) > 0 {
				h.Errorf("%s made members: %v", dry, got)
			}
		}

		h.must(tool, "authorize", h.ns, "--to", h.ops)

		for _, dry := range []string{"--dry-run=client", "--dry-run=server"} {
			h.must(tool, "revoke", h.ns, "--to", h.ops, dry)

			if roles, bindings := h.grants(); len(roles) != 1 || len(bindings) != 1 || len(h.members("namespacescope")) != 1 {
				h.Errorf("%s took back: %v %v", dry, roles, bindings)
			}
		}
	})

	h := begin(t)
	h.makeOperator()
	h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})

	r := h.run("command", "", "authorize", h.ns, "--to", h.ops, "--dry-run=client", "-o", "json")
	if r.code != 0 || !json.Valid([]byte(r.out)) || !strings.Contains(r.err, "certificates") {
		t.Errorf("-o json prints objects to the output and words beside it: %+v", r)
	}
}

func TestWhichScope(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("only", operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{"other", "another"}})
		h.must(tool, "authorize", "--to", h.ops) // The current namespace of the kubeconfig is ns.

		if got := h.members("only"); !slices.Equal(got, []string{"other", "another", h.ns}) {
			h.Errorf("the only scope has the members %v", got)
		}

		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})
		h.must(tool, "authorize", h.ns, "--to", h.ops)

		if got := h.members("namespacescope"); !slices.Equal(got, []string{h.ns}) {
			h.Errorf("the scope with the usual name has the members %v", got)
		}

		if out := h.must(tool, "revoke", h.ns, "--to", h.ops); !strings.Contains(out, "scope only") {
			h.Errorf("it says what stays: %s", out)
		}

		if roles, _ := h.grants(); len(roles) != 1 || len(h.members("only")) != 3 || len(h.members("namespacescope")) != 0 {
			h.Errorf("the other scope keeps its grant and its member: %v", roles)
		}

		h.must(tool, "revoke", h.ns, "--to", h.ops, "--scope", "only")

		if got := h.members("only"); !slices.Equal(got, []string{"other", "another"}) {
			h.Errorf("the other members stay: %v", got)
		}
	})
}

// TestWhatIsNotOurs leaves alone what has the name of a grant, and says when something projected does not go.
func TestWhatIsNotOurs(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})

		foreign := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{
			Namespace: h.ns, Name: "ambit-authorized-from-" + h.ops + ".namespacescope",
		}}
		h.make(foreign)
		h.refuses("a name that is taken", tool, "", 1, []string{foreign.Name, "left alone"},
			[]string{"authorize", h.ns, "--to", h.ops})
		h.untouched("a name that is taken")
		h.must(tool, "revoke", h.ns, "--to", h.ops)

		if err := h.Get(h.Context(), client.ObjectKeyFromObject(foreign), foreign); err != nil {
			h.Errorf("what was not granted is not taken back: %v", err)
		}

		if err := h.Delete(h.Context(), foreign); err != nil {
			h.Fatal(err)
		}

		h.must(tool, "authorize", h.ns, "--to", h.ops, "--grant-only")

		// Nobody takes this away: a manager that runs beside did not make it.
		left := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{
			Namespace: h.ns, Name: "left",
			Annotations: map[string]string{"ambit.dev/owner": "NamespaceScope/" + h.ops + "/namespacescope"},
		}}
		h.make(left)

		args := []string{"revoke", h.ns, "--to", h.ops}
		if tool == "command" {
			args = append(args, "--timeout=1s")
		}

		h.refuses("what stays is told", tool, "", 1, []string{"the grant is taken back", "kubectl"}, args)

		if roles, bindings := h.grants(); len(roles)+len(bindings) > 0 {
			h.Errorf("the grant goes all the same: %v %v", roles, bindings)
		}
	})
}

// TestScopeThatIsBeingDeleted holds that it takes no members, and can be granted what it needs to remove its copies.
func TestScopeThatIsBeingDeleted(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()

		nss := h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})
		h.change(nss, func() { nss.Finalizers = []string{"example.com/test"} })

		if err := h.Delete(h.Context(), nss); err != nil {
			h.Fatal(err)
		}

		args := []string{h.ns, "--to", h.ops}
		h.refuses("it takes no members", tool, "", 1, []string{"being deleted", "grant-only"}, append([]string{"authorize"}, args...))
		h.untouched("it takes no members")

		h.must(tool, "authorize", append(args, "--grant-only")...)
		h.must(tool, "authorize", h.ops, "--to", h.ops)

		roles, _ := h.grants()
		if len(roles) != 1 || len(roles[0].Rules) != 1 || !slices.Contains(roles[0].Rules[0].Verbs, "delete") {
			h.Errorf("it needs no more than the right to remove what it projected: %+v", roles)
		}

		h.must(tool, "revoke", args...)

		if roles, bindings := h.grants(); len(roles)+len(bindings) > 0 {
			h.Errorf("grants are left: %+v %+v", roles, bindings)
		}
	})
}
