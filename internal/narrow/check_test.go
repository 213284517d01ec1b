package narrow

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/reach"
)

// bound is an account that is bound to a ClusterRole, in a namespace or with "" in the whole cluster.
func bound(namespace, role string) string {
	kind, name := kindClusterRoleBinding, "of-"+role
	if namespace != "" {
		kind, name = kindRoleBinding, name+", namespace: "+namespace
	}

	return "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: " + name + "}\n" +
		"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: " + role + "}\n" +
		"subjects: [{kind: ServiceAccount, name: op, namespace: ops}]\n"
}

// TestCheckOfRolesThatNobodyKnows holds that a new version asks for more where it binds a role that is not in the files, unless
// the old one bound it to the same account in the same place: what the role gives may be anything. A role that the cluster knows
// is compared by its rules.
func TestCheckOfRolesThatNobodyKnows(t *testing.T) {
	t.Parallel()

	const shipped = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: nowhere}\n" +
		"rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n"

	for name, tc := range map[string]struct {
		before, after string
		known         string
		// want is the role, by name, of each thing that is asked for; with a + if its rules are known.
		want []string
	}{
		"admin is bound":                        {after: bound("", "admin"), want: []string{"admin"}},
		"a role of nowhere is bound":            {after: bound("", "nowhere"), want: []string{"nowhere"}},
		"both are":                              {after: bound("", "admin") + bound("", "nowhere"), want: []string{"admin", "nowhere"}},
		"in a namespace":                        {after: bound("shop", "admin"), want: []string{"admin"}},
		"as before":                             {before: bound("", "admin"), after: bound("", "admin")},
		"as before, in a namespace":             {before: bound("shop", "admin"), after: bound("shop", "admin")},
		"before everywhere, now in a namespace": {before: bound("", "admin"), after: bound("shop", "admin")},
		"before in a namespace, now everywhere": {before: bound("shop", "admin"), after: bound("", "admin"), want: []string{"admin"}},
		"before in another namespace": {
			before: bound("bank", "admin"), after: bound("shop", "admin"), want: []string{"admin"},
		},
		"before another role": {before: bound("", "edit"), after: bound("", "admin"), want: []string{"admin"}},
		"before the files had it": {
			before: bound("", "nowhere") + shipped, after: bound("", "nowhere"), want: []string{"nowhere"},
		},
		"the cluster knows it":                   {after: bound("", "admin"), known: "admin", want: []string{"admin+"}},
		"the cluster knows it, and it is as was": {before: bound("", "admin"), after: bound("", "admin"), known: "admin"},
		"a Role of kube-system that everybody knows": {
			after: `---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: reader, namespace: kube-system}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: extension-apiserver-authentication-reader}
subjects: [{kind: ServiceAccount, name: op, namespace: ops}]
`, want: []string{"extension-apiserver-authentication-reader+"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			roles := func(role string) *rbacv1.ClusterRole {
				if role != tc.known {
					return nil
				}

				return &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{
					{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}},
				}}
			}

			more, _, err := Check(stream(t, tc.before), stream(t, tc.after), &Options{Kinds: reach.NewKinds(), Roles: roles})
			if err != nil {
				t.Fatal(err)
			}

			var got []string

			for i := range more {
				_, role, _ := strings.Cut(more[i].Role, " ")
				if more[i].Unknown == (len(more[i].Rules) > 0) || len(more[i].Rules) != len(more[i].Rights) {
					t.Errorf("it is %+v", more[i])
				}

				if !more[i].Unknown {
					role += "+"
				}

				got = append(got, role)
			}

			if slices.Sort(got); !slices.Equal(got, tc.want) {
				t.Errorf("asked for is %q, want %q", got, tc.want)
			}

			sarif := SarifOf(more, "").Runs[0].Results
			if len(sarif) != len(more) {
				t.Fatalf("of %+v the report is %+v", more, sarif)
			}

			for i := range sarif {
				if more[i].Unknown && (sarif[i].Level != "error" || !strings.Contains(sarif[i].Message.Text, "RoleBinding ")) {
					t.Errorf("the report is %+v", sarif[i])
				}
			}
		})
	}
}

// TestCheckOfWhatPeopleGet holds that a new version asks for more where a label hands more to whoever is bound to admin, edit or
// view, and says to whom; what was handed to them before is nothing more.
func TestCheckOfWhatPeopleGet(t *testing.T) {
	t.Parallel()

	shipped := func(label, resources string) string {
		return "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n" +
			"metadata: {name: widgets, labels: {" + label + "}}\n" +
			"rules: [{apiGroups: [''], resources: [" + resources + "], verbs: [get]}]\n"
	}

	const (
		toView  = "rbac.authorization.k8s.io/aggregate-to-view: 'true'"
		toAdmin = "rbac.authorization.k8s.io/aggregate-to-admin: 'true'"
	)

	for name, tc := range map[string]struct {
		before, after string
		want          []string
	}{
		"secrets for all who view": {
			shipped(toView, "pods"), shipped(toView, "pods, secrets"),
			[]string{"whoever is bound to ClusterRole view may do more there, by ClusterRole widgets: get secrets"},
		},
		"for others than before": {
			shipped(toAdmin, "pods"), shipped(toAdmin+", "+toView, "pods"),
			[]string{"whoever is bound to ClusterRole view may do more there, by ClusterRole widgets: get pods"},
		},
		"as before":                      {shipped(toView, "pods, secrets"), shipped(toView, "secrets"), nil},
		"a label that says no":           {"", shipped("rbac.authorization.k8s.io/aggregate-to-view: 'false'", "secrets"), nil},
		"a ClusterRole that nobody gets": {"", shipped("a: b", "secrets"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := askedFor(t, tc.before, tc.after, &Options{Kinds: reach.NewKinds()})
			if !slices.Equal(got, tc.want) {
				t.Errorf("asked for is %q, want %q", got, tc.want)
			}
		})
	}
}

// askedFor is what a new version asks for beyond an old one, in words.
func askedFor(t *testing.T, before, after string, o *Options) []string {
	t.Helper()

	more, _, err := Check(stream(t, before), stream(t, after), o)
	if err != nil {
		t.Fatal(err)
	}

	var said []string
	for i := range more {
		said = append(said, more[i].String())
	}

	return said
}

// TestCheckOfRolesOfOneName holds that what a Role of one namespace gives more hides nothing of a Role of that name in another.
func TestCheckOfRolesOfOneName(t *testing.T) {
	t.Parallel()

	roles := func(resource string) string {
		text := "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r, namespace: NAME}\n" +
			"rules: [{apiGroups: [''], resources: [" + resource + "], verbs: [get]}]\n"

		return strings.ReplaceAll(text, "NAME", "a") + strings.ReplaceAll(text, "NAME", "b")
	}

	const bound = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: r, namespace: a}\n" +
		"roleRef: {kind: Role, name: r}\nsubjects: [{kind: ServiceAccount, name: op, namespace: a}]\n"

	for files, want := range map[string]int{"": 2, bound: 2} {
		more, _, err := Check(stream(t, roles("pods")+files), stream(t, roles("secrets")+files), &Options{Kinds: reach.NewKinds()})
		if err != nil || len(more) != want || more[0].Namespace == more[len(more)-1].Namespace {
			t.Errorf("with %q, %v: %+v", files, err, more)
		}
	}
}

// TestCheckOfRolesThatOthersAreBoundTo holds that a new version asks for more where a role that the old one had, too, gives more
// to whoever is bound to it, and where one gives something to a ClusterRole of the cluster that takes it by a label.
func TestCheckOfRolesThatOthersAreBoundTo(t *testing.T) {
	t.Parallel()

	role := func(kind, meta, resources string) string {
		return "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: " + meta + "}\n" +
			"rules: [{apiGroups: [''], resources: [" + resources + "], verbs: [get]}]\n"
	}
	all := role("ClusterRole", "all}\naggregationRule: {clusterRoleSelectors: [{matchLabels: {of: all}}]", "")

	for name, tc := range map[string]struct {
		before, after string
		want          []string
	}{
		"more by a ClusterRole": {
			role(kindClusterRole, "x", "pods"), role(kindClusterRole, "x", "pods, secrets"),
			[]string{"whoever is bound to ClusterRole x may do more there, by ClusterRole x: get secrets"},
		},
		"more by a Role": {
			role(kindRole, "x, namespace: ops", "pods"), role(kindRole, "x, namespace: ops", "secrets"),
			[]string{"whoever is bound to Role x may do more in namespace ops, by Role x: get secrets"},
		},
		"more by a ClusterRole that is bound": {
			role(kindClusterRole, "x", "pods") + bound("", "x"), role(kindClusterRole, "x", "secrets") + bound("", "x"),
			[]string{"ops/op may do more in the whole cluster, by ClusterRole x: get secrets"},
		},
		"more by one that takes another": {
			all, all + role(kindClusterRole, "x, labels: {of: all}", "secrets"),
			[]string{"whoever is bound to ClusterRole all may do more there, by ClusterRole all: get secrets"},
		},
		"more by one of the cluster that takes another": {
			role(kindClusterRole, "x", "pods"), role(kindClusterRole, "x, labels: {for: live}", "pods"),
			[]string{"whoever is bound to ClusterRole live may do more there, by ClusterRole x: get pods"},
		},
		"less": {role(kindClusterRole, "x", "pods, secrets"), role(kindClusterRole, "x", "pods"), nil},
		"new":  {role(kindClusterRole, "x", "pods"), role(kindClusterRole, "y", "secrets"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			more, _, err := Check(stream(t, tc.before), stream(t, tc.after), &Options{
				Kinds: reach.NewKinds(), ClusterRoles: func() ([]rbacv1.ClusterRole, bool) {
					return []rbacv1.ClusterRole{{
						ObjectMeta: metav1.ObjectMeta{Name: "live"},
						AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
							{MatchLabels: map[string]string{"for": "live"}},
						}},
					}}, true
				},
			})
			if err != nil {
				t.Fatal(err)
			}

			var got []string
			for i := range more {
				got = append(got, more[i].String())
			}

			if !slices.Equal(got, tc.want) {
				t.Errorf("asked for is %q, want %q", got, tc.want)
			}
		})
	}
}

// TestSarifNamesFilesByReferences holds that a report names the standard input, and files with any name, by what its schema takes
// for a reference.
func TestSarifNamesFilesByReferences(t *testing.T) {
	t.Parallel()

	for file, want := range map[string]string{
		"standard input": "standard%20input", "charts/op.yaml": "charts/op.yaml", "/tmp/new version.yaml": "/tmp/new%20version.yaml",
		"100%.yaml": "100%25.yaml", "a#b?c.yaml": "a%23b%3Fc.yaml", "c:op.yaml": "./c:op.yaml", "ö.yaml": "%C3%B6.yaml",
	} {
		got := SarifOf([]More{{Source: file}}, "").Runs[0].Results[0].Locations[0].Physical.Artifact.URI
		if got != want {
			t.Errorf("%q is named %q, want %q", file, got, want)
		}
	}
}

// TestCheckOfTheNamespaceThatOneVersionNames holds that a Role with and one without a namespace are the same where the accounts
// that are bound say which namespace is meant.
func TestCheckOfTheNamespaceThatOneVersionNames(t *testing.T) {
	t.Parallel()

	const (
		with = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r, namespace: ops}\n" +
			"rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n" +
			"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: r, namespace: ops}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: r}\n" +
			"subjects: [{kind: ServiceAccount, name: op, namespace: ops}]\n"
	)

	without := strings.ReplaceAll(with, "r, namespace: ops}", "r}")

	for _, tc := range []struct{ before, after string }{{with, without}, {without, with}, {with, with}, {without, without}} {
		if got := asks(t, tc.before, tc.after); len(got) > 0 {
			t.Errorf("of\n%s\nasked for is %q", tc.after, got)
		}

		if got := asks(t, tc.before, strings.ReplaceAll(tc.after, "pods", "secrets")); len(got) != 1 ||
			!strings.HasPrefix(got[0], "ops/op may do more in namespace ops, ") {
			t.Errorf("of\n%s\nasked for is %q", tc.after, got)
		}
	}
}
