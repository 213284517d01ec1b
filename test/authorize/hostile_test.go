package authorize_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// TestScriptTakesNoNameForMore has subjects and roles whose names hold what parts fields and lines of text, and would make the
// account of an operator out of somebody else, and another role out of one. The rules of a Role that nobody of the operators is
// bound to are granted by neither tool.
func TestScriptTakesNoNameForMore(t *testing.T) {
	t.Parallel()

	h := begin(t)
	h.makeOperator()
	h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})
	h.make(h.role("secret", rule("", "stolen", "*")))

	victim := "Role\t" + `"secret"` + "\tServiceAccount\t" + h.ops + "\tsecretman"
	user := func(name, namespace string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name, Namespace: namespace}
	}

	for name, subject := range map[string]rbacv1.Subject{
		"tab":          user("x", h.ops+"\tsecretman\t"),
		"kind":         user("x", "\n"+victim),
		"line":         user("x\n"+victim, ""),
		"account":      user(account(h.ops, "secretman")+"\nx", ""),
		"two accounts": user("x\nsystem:serviceaccount:"+h.ops+":secretman", ""),
		"elsewhere":    {Kind: rbacv1.ServiceAccountKind, Name: "secretman", Namespace: "x\n" + victim},
		"group":        {APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "x\nsystem:serviceaccounts:" + h.ops},
	} {
		binding := h.bind(name, "Role", "secret", subject)
		if h.make(binding); binding.Subjects[0] != subject {
			t.Fatalf("the API server keeps another subject: %q", binding.Subjects)
		}
	}

	h.make(h.bind("role", "Role", "x\nsecret\n\"secret\"", h.subject("secretman")),
		h.bind("clusterrole", "ClusterRole", "x\ncluster-admin", h.subject("secretman")))

	for _, tool := range tools {
		h.must(tool, "authorize", h.ns, "--to", h.ops)

		roles, _ := h.grants()
		if text := fmt.Sprint(roles); len(roles) != 1 || !strings.Contains(text, "certificates") || strings.Contains(text, "stolen") ||
			strings.Contains(text, "cluster-admin") {
			t.Errorf("%s grants what nobody of the operators has: %v", tool, roles)
		}

		h.must(tool, "revoke", h.ns, "--to", h.ops, "--grant-only")
	}
}

// parts are what names are made of.
func parts(h *house) []string {
	return []string{
		"a", "b", "secret", "\n", "\t", " ", "\r", "\x00", "\x1b[31m", "\x7f", "\u0085", "\u009b", "\u2028", "\u202e", "\ufeff",
		"\uffff",
		"\U000e0041", "😀", "é", `"`, `'`, `\`, `\n`, `\u0041`, "$(x)", "`", ",", ":", "=", "#", "-", "- ", "{", "*", "!", "|", "&",
		"<no value>", "+", "ServiceAccount", "Role", "system:serviceaccount:", "system:serviceaccounts", h.ops, "secretman",
		"ambit", "%!x", "(NotFound)", "..",
	}
}

// hostileNames draws names that hold anything.
func hostileNames(h *house, random *rand.Rand) func() string {
	parts := parts(h)
	used := map[string]bool{"": true, ".": true, "..": true, "secretman": true}

	return func() string {
		for {
			var drawn []string
			for range 1 + random.IntN(6) {
				drawn = append(drawn, parts[random.IntN(len(parts))])
			}

			name := strings.Join(drawn, "")

			if !used[name] && !strings.ContainsAny(name, "%/") {
				used[name] = true

				return name
			}
		}
	}
}

// makeHostile makes roles, bindings and rules with names that hold anything, beside an operator. Every third is the operator's.
func (h *house) makeHostile(random *rand.Rand) {
	h.Helper()
	h.makeOperator()

	name := hostileNames(h, random)
	namespaces := []string{h.ops, h.ns, "", "x\n" + h.ops, h.ops + "\t"}

	for i := range 30 {
		r := rbacv1.PolicyRule{Verbs: []string{name(), "get"}, APIGroups: []string{"", name()}, Resources: []string{name(), name()}}
		if random.IntN(2) == 0 {
			r.ResourceNames = []string{name(), name()}
		}

		kind, role := "Role", h.role(name(), r, rule("", name(), name()))
		ref := role.Name

		h.make(role)

		// The first has a role in any case.
		switch random.IntN(5) * min(i, 1) {
		case 1:
			ref = name() // It does not exist.
		case 2:
			kind, ref = "ClusterRole", h.ops+name()
		case 3:
			kind, ref = "ClusterRole", h.ops+name()
			cluster := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: ref}}
			h.makeForTest(cluster)
		}

		subjects := []rbacv1.Subject{h.subject("secretman")}

		if i%3 > 0 {
			subjects = []rbacv1.Subject{
				{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name(), Namespace: namespaces[random.IntN(len(namespaces))]},
				{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name(), Namespace: namespaces[random.IntN(len(namespaces))]},
				{Kind: rbacv1.ServiceAccountKind, Name: "secretman", Namespace: namespaces[1+random.IntN(len(namespaces)-1)] + "x"},
				{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: account(h.ops, name())},
			}
		}

		binding := h.bind(name(), kind, ref, subjects...)
		if h.make(binding); binding.RoleRef.Name != ref {
			h.Fatalf("the API server keeps another name: %q", binding.RoleRef.Name)
		}
	}
}

// TestScriptAndCommandAgreeOnHostileNames compares what the two grant where names hold anything, and what they print: no control
// character, and no line that begins as a name has it.
func TestScriptAndCommandAgreeOnHostileNames(t *testing.T) {
	t.Parallel()

	seed := testcluster.Seed(t)

	for name, begins := range map[string]func(*house){
		"usual": func(h *house) { h.makeScope("operators", operatorv1.NamespaceScopeSpec{}) },
		"older": func(h *house) { h.makeLegacy("operators", namespacescopev1alpha1.NamespaceScopeSpec{}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			h := begin(t)
			h.makeHostile(rand.New(rand.NewPCG(seed, uint64(len(name)))))
			begins(h)
			// Whoever grants first makes it otherwise, and a name that was drawn may be its.
			h.make(h.account("ambit"))

			var by [2]granted

			for i, tool := range tools {
				r := h.run(tool, "", "authorize", h.ns, "--to", h.ops)
				if by[i] = h.granted(); r.code != 0 || len(by[i].roles) != 1 {
					t.Fatalf("%s: exit code %d, %d roles: %s%s", tool, r.code, len(by[i].roles), r.out, r.err)
				}

				if i := strings.IndexFunc(r.out+r.err, func(c rune) bool {
					return c != '\n' && (unicode.IsControl(c) || unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Mn))
				}); i >= 0 {
					t.Errorf("%s prints %q", tool, (r.out + r.err)[max(0, i-50):i+3])
				}

				h.must(tools[1-i], "revoke", h.ns, "--to", h.ops, "--grant-only")
			}

			if rules := len(by[0].roles[0].Rules); rules < 5 {
				t.Errorf("only %d rules are granted", rules)
			}

			if !by[0].equal(&by[1]) {
				t.Errorf("by the command:\n%q\nby the script:\n%q", fmt.Sprint(by[0]), fmt.Sprint(by[1]))
			}
		})
	}
}

// TestHostileGrantsAreTakenBackAlone has grants whose names and annotations would name other objects, other scopes and commands,
// if anything but whole names were read. Both tools take back the same, and nothing beside it.
func TestHostileGrantsAreTakenBackAlone(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("operators", operatorv1.NamespaceScopeSpec{})

		grant := func(name, of string) client.Object {
			role := h.role(name)
			role.Labels = map[string]string{"app.kubernetes.io/managed-by": grant.ManagedBy, "ambit.dev/authorized-for": h.ops}
			role.Annotations = map[string]string{grant.AnnotationScope: of}

			return role
		}

		h.makeInMember(h.Client, h.role("bystander"), grant("x\nrole\tbystander\t", ""), grant(`"bystander" x`, "operators\nother"),
			grant("-all", "$(touch x)"), grant("mine", "operator.ibm.com/operators"), grant("other", "other"),
			grant("older", oldGroup+"operators"))

		r := h.run(tool, "", "revoke", h.ns, "--to", h.ops, "--scope", "operator.ibm.com/operators", "--grant-only")
		if r.code != 0 || strings.Contains(r.out+r.err, "$(touch") || !strings.Contains(r.out, "scope other stays") {
			h.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
		}

		list := &rbacv1.RoleList{}
		if err := h.List(h.Context(), list, client.InNamespace(h.ns)); err != nil {
			h.Fatal(err)
		}

		var left []string
		for i := range list.Items {
			left = append(left, list.Items[i].Name)
		}

		if want := []string{"bystander", "older", "other"}; !slices.Equal(left, want) {
			h.Errorf("left are %q, not %q: %s", left, want, r.out)
		}
	})
}
