package narrow

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// readsSecrets is an operator that reads the Secrets of the whole cluster.
func readsSecrets() string {
	return anOperator([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}})
}

// has says whether any of some texts has a part.
func has(texts []string, part string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, part) })
}

// TestWhatGoesOnInTheCluster holds that a ClusterRoleBinding of the cluster which the output does not have is named, if an
// account goes on holding by it what is narrowed, and counted.
func TestWhatGoesOnInTheCluster(t *testing.T) {
	t.Parallel()

	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "op"}
	user := rbacv1.Subject{Kind: rbacv1.UserKind, Name: scope.AccountUser("ops", "op")}
	other := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "x"}
	group := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: rbacv1.GroupKind, Name: name} }
	binds := func(name, role string, to rbacv1.Subject) rbacv1.RoleBinding {
		return rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: kindClusterRole, Name: role},
			Subjects: []rbacv1.Subject{to},
		}
	}

	for name, tc := range map[string]struct {
		there       rbacv1.RoleBinding
		keep        bool
		unread      bool
		told, noted bool
	}{
		"one of an older version":     {there: binds("old", "reads", account), told: true},
		"by its user name":            {there: binds("old", "reads", user), told: true},
		"by a group of it":            {there: binds("old", "reads", group(scope.GroupAccounts)), told: true},
		"by the group of everybody":   {there: binds("old", "reads", group(scope.GroupAuthenticated))},
		"of another account":          {there: binds("old", "reads", other)},
		"that of the input":           {there: binds("op", "reads", account)},
		"of what has no namespace":    {there: binds("old", "nodes", account)},
		"of a role that is not there": {there: binds("old", "none", account)},
		"what is kept":                {there: binds("old", "reads", account), keep: true},
		"that may not be read":        {unread: true, noted: true},
		"of what was kept before":     {there: binds("op-cluster-scoped", "reads", account), told: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o := Options{
				Members:    []string{"a"},
				Everywhere: func() ([]rbacv1.RoleBinding, bool) { return []rbacv1.RoleBinding{tc.there}, !tc.unread },
				Roles: func(name string) *rbacv1.ClusterRole {
					of := map[string]string{"reads": "configmaps", "nodes": "nodes"}[name]
					if of == "" {
						return nil
					}

					return &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{
						{APIGroups: []string{""}, Resources: []string{of}, Verbs: []string{"get"}},
					}}
				},
			}
			if tc.keep {
				o.Keep = []reach.Keep{{Verbs: []string{"get"}, Resource: reach.Resource{Name: "configmaps"}}}
			}

			_, report := narrowed(t, o, readsSecrets())
			if has(report.Warnings, "kubectl delete clusterrolebinding -- "+tc.there.Name) != tc.told {
				t.Errorf("told is %q", report.Warnings)
			}

			if has(report.Notes, "ClusterRoleBindings of the cluster could not be read") != tc.noted {
				t.Errorf("noted is %q", report.Notes)
			}

			if after := report.Accounts[0].After; after != map[bool]int{true: 1}[tc.told] {
				t.Errorf("%d rules are counted in the whole cluster", after)
			}
		})
	}
}

// TestScopesBesideTheOneThatIsMade holds that a scope of the input or of the cluster which serves an account already is named:
// what is narrowed comes into its members, too.
func TestScopesBesideTheOneThatIsMade(t *testing.T) {
	t.Parallel()

	const scopes = "---\napiVersion: operator.ibm.com/v1\nkind: NamespaceScope\nmetadata: {name: own, namespace: ops}\nspec: {%s}\n"

	projected := func(text string) string {
		return strings.Replace(text, "labels: {app: op", "labels: {intent: projected, app: op", 1)
	}

	for name, tc := range map[string]struct {
		spec string
		pods func(string) string
		told string
	}{
		"by name":                {spec: "serviceAccountMembers: [op], namespaceMembers: [bank]", told: "members as well: bank."},
		"by a label of pods":     {spec: "namespaceMembers: [bank, a]", pods: projected, told: "members as well: bank."},
		"by labels of members":   {spec: "serviceAccountMembers: [op], namespaceSelector: {matchLabels: {a: b}}", told: "labels a=b."},
		"for other accounts":     {spec: "serviceAccountMembers: [x], namespaceMembers: [bank]"},
		"with the same members":  {spec: "serviceAccountMembers: [op], namespaceMembers: [a]"},
		"with members of no use": {spec: "serviceAccountMembers: [op]"},
	} {
		for _, live := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, live: %t", name, live), func(t *testing.T) {
				t.Parallel()

				in, of, o := readsSecrets(), fmt.Sprintf(scopes, tc.spec), Options{Members: []string{"a"}}
				if tc.pods != nil {
					in = tc.pods(in)
				}

				if live {
					there := compiledOf(t, of)
					o.Scopes, of = func() ([]scope.Scope, bool) { return there, true }, ""
				}

				_, report := narrowed(t, o, in, of)
				if told := has(report.Warnings, "serves ops/op, too"); told != (tc.told != "") || told && !has(report.Warnings, tc.told) {
					t.Errorf("told is %q", report.Warnings)
				}
			})
		}
	}

	_, report := narrowed(t, Options{Scopes: func() ([]scope.Scope, bool) { return nil, false }}, readsSecrets())
	if !has(report.Notes, "NamespaceScopes of the cluster could not be read") {
		t.Errorf("noted is %q", report.Notes)
	}
}

func compiledOf(t *testing.T, text string) []scope.Scope {
	t.Helper()

	var out []scope.Scope

	for d := range stream(t, text).objects() {
		s, is := compiled(d, "default")
		if !is {
			t.Fatalf("%s is no scope", d)
		}

		out = append(out, s)
	}

	return out
}

// TestNoScopeTakesTheNameOfAnother holds that the scope of an operator takes the name of none that the cluster has for others:
// to apply it would take their members away. One that has an account in common is that of a version before.
func TestNoScopeTakesTheNameOfAnother(t *testing.T) {
	t.Parallel()

	for account, want := range map[string]string{"x": "op-2", "op": "op"} {
		there := compiledOf(t, "apiVersion: operator.ibm.com/v1\nkind: NamespaceScope\nmetadata: {name: op, namespace: ops}\n"+
			"spec: {serviceAccountMembers: ["+account+"]}\n")

		out, _ := narrowed(t, Options{Scopes: func() ([]scope.Scope, bool) { return there, true }}, readsSecrets())
		if !strings.Contains(out, "configmapName: "+want+"-namespaces\n") || !strings.Contains(out, LabelScope+": "+want+"\n") {
			t.Errorf("beside one for %s:\n%s", account, out)
		}
	}
}

// TestWhatStaysAtHomeWhateverItSays holds that no RoleBinding of the input comes into the members by what the input says of it:
// neither by the annotation that scopes read, nor by the label of a scope on the pods of another account. One that says that it
// was narrowed before does, and is named.
func TestWhatStaysAtHomeWhateverItSays(t *testing.T) {
	t.Parallel()

	extra := func(account, annotations string) string {
		return "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\n" +
			"metadata: {name: extra, namespace: ops, annotations: {" + annotations + "}}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}\n" +
			"subjects: [{kind: ServiceAccount, name: " + account + ", namespace: ops}]\n"
	}
	pods := "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: other, namespace: ops}\n" +
		"spec: {template: {metadata: {labels: {" + LabelScope + ": %s}}, spec: {serviceAccountName: other, containers: []}}}\n"

	for name, tc := range map[string]struct {
		text            string
		stays, isCopied bool
	}{
		"it is for members, it says":      {text: extra("op", scope.AnnotationProject+": enabled"), stays: true},
		"of another account":              {text: extra("other", "")},
		"of one with the scope's label":   {text: extra("other", "") + fmt.Sprintf(pods, "op"), stays: true},
		"of one with that of another":     {text: extra("other", "") + fmt.Sprintf(pods, "x")},
		"it was narrowed before, it says": {text: extra("op", AnnotationFrom+": ClusterRoleBinding/op"), isCopied: true},
		"it was, and it stays all the same": {
			text: extra("op", AnnotationFrom+": ClusterRoleBinding/op, "+scope.AnnotationProject+": disabled"),
		},
	} {
		_, report := narrowed(t, Options{Members: []string{"a"}}, readsSecrets(), tc.text)

		stays := slices.ContainsFunc(report.Notes, func(note string) bool {
			return strings.HasPrefix(note, "stays in the operator's own namespace") && strings.Contains(note, "RoleBinding ops/extra")
		})
		if stays != tc.stays || has(report.Notes, "narrowed before: RoleBinding ops/extra") != tc.isCopied {
			t.Errorf("%s: noted is %q", name, report.Notes)
		}
	}
}

// TestWhatIsToBeCopiedIsQuoted holds that no name of a manifest ends the quotes of a flag that a report proposes.
func TestWhatIsToBeCopiedIsQuoted(t *testing.T) {
	t.Parallel()

	const evil, quoted = `x'$(id)'`, `x'\''$(id)'\''`

	in := strings.NewReplacer("metadata: {name: op, namespace: ops}", `metadata: {name: "`+evil+`", namespace: ops}`,
		"WATCH_NAMESPACE", "X").Replace(
		anOperator([]rbacv1.PolicyRule{{APIGroups: []string{evil}, Resources: []string{"secrets"}, Verbs: []string{"list"}}}))

	// The first is in no table, and the second takes one namespace or all.
	for _, image := range []string{"example.com/unknown:1", "quay.io/jetstack/cert-manager-controller:v1"} {
		_, report := narrowed(t, Options{Members: []string{"a"}}, strings.Replace(in, "example.com/op:1", image, 1))
		if all := strings.Join(report.Warnings, "\n"); !strings.Contains(all, quoted) {
			t.Errorf("told is %s", all)
		}
	}
}

// TestFencesAreAsShortAsTheyCanBe holds that a role which is bound in many namespaces is said once, and that a fence is refused
// which no API server would take.
func TestFencesAreAsShortAsTheyCanBe(t *testing.T) {
	t.Parallel()

	there := func(rules int) func() ([]rbacv1.RoleBinding, bool) {
		var out []rbacv1.RoleBinding

		for i := range 200 {
			b := leads("op", nil)
			b.Namespace, b.RoleRef.Name = fmt.Sprintf("namespace-%d", i), fmt.Sprintf("role-%d", i%rules)
			out = append(out, b)
		}

		return func() ([]rbacv1.RoleBinding, bool) { return out, true }
	}
	of := func(namespace, name string) *rbacv1.Role {
		if namespace == "ops" {
			return nil
		}

		return &rbacv1.Role{Rules: slices.Repeat([]rbacv1.PolicyRule{
			{APIGroups: []string{name + strings.Repeat("x", 900)}, Resources: []string{"things"}, Verbs: []string{"create", "update"}},
		}, 3)}
	}

	out, _ := narrowed(t, Options{Fence: &Fence{}, RoleBindings: there(1), RoleIn: of}, readsSecrets())
	if n := strings.Count(out, "xxx\""); n != 1 || !strings.Contains(out, "namespace-199") {
		t.Errorf("the rule is said %d times", n)
	}

	o := &Options{As: AsScope, Kinds: reach.NewKinds(), Fence: &Fence{}, RoleBindings: there(200), RoleIn: of}
	if _, err := Narrow(stream(t, readsSecrets()), o); err == nil || !strings.Contains(err.Error(), "leave out --fence") {
		t.Errorf("a fence that is too long: %v", err)
	}
}
