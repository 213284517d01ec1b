package narrow

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/rights"
)

// toWhom is a ClusterRole that reads a resource, bound to a subject.
func toWhom(name, resource, subject string) string {
	return "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + name + "}\n" +
		"rules: [{apiGroups: [''], resources: [" + resource + "], verbs: [get]}]\n" +
		"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: " + name + "}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: " + name + "}\nsubjects: [" + subject + "]\n"
}

// TestWhatAnAccountHoldsByOtherNames holds that a ClusterRoleBinding of an account's user name is narrowed as one of the account,
// and that what it holds by a group, which stays, is neither said to be lost nor left unsaid.
func TestWhatAnAccountHoldsByOtherNames(t *testing.T) {
	t.Parallel()

	const (
		account  = `{kind: ServiceAccount, name: op, namespace: ops}`
		user     = `{kind: User, name: "system:serviceaccount:ops:op"}`
		group    = `{kind: Group, name: "system:serviceaccounts:ops"}`
		accounts = `{kind: Group, name: "system:serviceaccounts"}`
		everyone = `{kind: Group, name: "system:authenticated"}`
		others   = `{kind: Group, name: "system:serviceaccounts:bank"}`
		byGroup  = "ClusterRoleBinding second gives"
		nothing  = "nothing was to be narrowed"
		unknown  = "ClusterRoleBinding of-admin refers to"
	)

	op := Account{Namespace: "ops", Name: "op"}

	for name, tc := range map[string]struct {
		input string
		keep  string
		// lost and still are the resources of which the report says so; of after there are as many rules.
		lost, still []string
		after       int
		told        []string
		// holds says whether the account may read Secrets of every namespace afterwards.
		holds bool
	}{
		"the account":   {input: toWhom("first", "secrets", account), lost: []string{"secrets"}},
		"its user name": {input: toWhom("first", "secrets", user), lost: []string{"secrets"}},
		"both":          {input: toWhom("first", "secrets", account+","+user), lost: []string{"secrets"}},
		"one by each": {
			input: toWhom("first", "secrets", account) + toWhom("second", "pods", user), lost: []string{"pods", "secrets"},
		},
		"its group":                 {input: toWhom("second", "secrets", group), told: []string{byGroup}, holds: true},
		"all accounts":              {input: toWhom("second", "secrets", accounts), told: []string{byGroup}, holds: true},
		"everybody":                 {input: toWhom("second", "secrets", everyone), told: []string{nothing}, holds: true},
		"another group":             {input: toWhom("second", "secrets", others), told: []string{nothing}},
		"its group, in the cluster": {input: toWhom("second", "nodes", group), told: []string{nothing}},
		"its group, by what is kept": {
			input: toWhom("second", "secrets", group), keep: "get secrets", told: []string{nothing}, holds: true,
		},
		"a role that nobody knows": {
			input: strings.Replace(bound("", "admin"), account, group, 1), told: []string{unknown},
		},
		"the same by its group": {
			input: toWhom("first", "secrets", account) + toWhom("second", "secrets", group), still: []string{"secrets"}, after: 1,
			told: []string{byGroup}, holds: true,
		},
		"the same as everybody": {
			input: toWhom("first", "secrets", account) + toWhom("second", "secrets", everyone), still: []string{"secrets"}, after: 1,
			holds: true,
		},
		"something else by its group": {
			input: toWhom("first", "configmaps", account) + toWhom("second", "secrets", group), lost: []string{"configmaps"},
			still: []string{"secrets"}, after: 1, told: []string{byGroup}, holds: true,
		},
	} {
		for how, o := range map[string]Options{"of the files": {}, "of what runs": {Accounts: []Account{op}}} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()

				if tc.keep != "" {
					var err error
					if o.Keep, err = reach.ParseKeep(tc.keep); err != nil {
						t.Fatal(err)
					}
				}

				o.Members = []string{"a"}
				input := "apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: op, namespace: ops}\n" + tc.input
				out, report := narrowed(t, o, input)

				if again, _ := narrowed(t, o, out); again != out {
					t.Errorf("twice is not once:\n%s\nbecame\n%s", out, again)
				}

				secrets := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}
				if rights.Covers(held(t, out, op, "", nil), secrets) != tc.holds {
					t.Errorf("it holds, or not:\n%s", out)
				}

				if strings.Contains(input, "first") && !rights.Covers(held(t, out, op, "a", o.Members), held(t, input, op, "", nil)) {
					t.Errorf("it loses something in a member:\n%s", out)
				}

				var got AccountReport
				if len(report.Accounts) > 0 {
					got = report.Accounts[0]
				}

				if !slices.Equal(resourcesOf(got.Lost), tc.lost) || !slices.Equal(resourcesOf(got.Still), tc.still) || got.After != tc.after {
					t.Errorf("the report is %+v", got)
				}

				for _, want := range []string{byGroup, nothing, unknown} {
					told := slices.ContainsFunc(slices.Concat(report.Warnings, report.Notes), func(w string) bool {
						return strings.Contains(w, want)
					})
					if told != slices.Contains(tc.told, want) {
						t.Errorf("of %q it is told %t: %q, %q", want, told, report.Warnings, report.Notes)
					}
				}
			})
		}
	}
}

func resourcesOf(rights []reach.Right) []string {
	var out []string
	for i := range rights {
		out = append(out, rights[i].Resource)
	}

	slices.Sort(out)

	return out
}
