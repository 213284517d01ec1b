package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func binding(name string, subjects ...rbacv1.Subject) facts.ClusterBinding {
	return facts.ClusterBinding{
		Name: name, Role: name, Subjects: subjects,
		Rights: []facts.ClusterRight{{Verbs: []string{"get"}, Resource: "secrets", Sensitive: true}},
	}
}

// TestClusterWideOf says whom a ClusterRoleBinding means.
func TestClusterWideOf(t *testing.T) {
	t.Parallel()

	op := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: "op"}
	group := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: rbacv1.GroupKind, Name: name} }
	csv := scope.Owner{Group: "operators.coreos.com", Kind: scope.KindCSV, Namespace: "ops", Name: "c"}
	own := binding("own", op)
	own.Owner = csv.String()

	for name, tc := range map[string]struct {
		reason  string
		binding facts.ClusterBinding
		holder  rbacv1.Subject
		owner   scope.Owner
		want    string
	}{
		"by name": {"it is named", binding("b", op), op, scope.Owner{},
			"ClusterRoleBinding b gives service account ops/op get secrets"},
		"another namespace": {
			"it only has the same name", binding("b", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "x", Name: "op"}),
			op, scope.Owner{}, "",
		},
		"a user of its name": {"users are others", binding("b", rbacv1.Subject{Kind: rbacv1.UserKind, Name: "op"}), op,
			scope.Owner{}, ""},
		"group of the namespace": {
			"it is in it", binding("b", group("system:serviceaccounts:ops")), op, scope.Owner{},
			"by the group system:serviceaccounts:ops,",
		},
		"group of another namespace": {"it is not in it", binding("b", group("system:serviceaccounts:x")), op, scope.Owner{}, ""},
		"group of all accounts": {"it is in it", binding("b", group("system:serviceaccounts")), op, scope.Owner{},
			"bind only who needs it"},
		"everybody": {"it is in it", binding("b", group("system:authenticated")), op, scope.Owner{},
			"bind only who needs it"},
		"no account is a person": {"it is not in it", binding("b", group("system:unauthenticated")), op, scope.Owner{}, ""},
		"group as a holder": {"it is the same group", binding("b", group("people")), group("people"), scope.Owner{},
			"group people"},
		"a person in all groups": {
			"who is in a group, nobody knows", binding("b", group("people")), rbacv1.Subject{Kind: "User", Name: "jane"},
			scope.Owner{}, "",
		},
		"clusterPermissions": {"it asks for them itself", own, op, csv, "move its clusterPermissions to permissions"},
		"about to go": {
			"an instance that was everywhere", func() facts.ClusterBinding {
				b := binding("b", op)
				b.Owner = scope.Owner{Kind: "ScopeInstance", Name: "i"}.String()

				return b
			}(), op, scope.Owner{Kind: "ScopeInstance", Name: "i"}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := &facts.Facts{ClusterBindings: facts.ClusterBindings{Giving: []facts.ClusterBinding{tc.binding}}}

			got := plan.SayClusterWide(plan.ClusterWideOf([]rbacv1.Subject{tc.holder}, tc.owner, f), 0)
			if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("%s: %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// TestClusterWideSaysByWhichGroupOfEach holds that of holders whom one binding includes in different ways, each is said to hold
// by its own: by its name, or by the group that it is in. What to do about it differs, too.
func TestClusterWideSaysByWhichGroupOfEach(t *testing.T) {
	t.Parallel()

	account := func(namespace, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	group := func(name string) rbacv1.Subject { return rbacv1.Subject{Kind: rbacv1.GroupKind, Name: name} }
	holders := []rbacv1.Subject{account("a", "x"), account("a", "y"), account("b", "x"), account("c", "x"), account("d", "x")}

	f := &facts.Facts{ClusterBindings: facts.ClusterBindings{Giving: []facts.ClusterBinding{
		binding("all", group("system:serviceaccounts:a"), group("system:serviceaccounts")),
		binding("one", group("system:serviceaccounts:b"), group("system:serviceaccounts:a"), account("c", "x")),
	}}}

	type said struct{ words, wayOut string }

	var got []said

	all := plan.ClusterWideOf(holders, scope.Owner{}, f)
	for i := range all {
		got = append(got, said{all[i].Words(), all[i].WayOut()})
	}

	want := []said{
		{"ClusterRoleBinding all gives service account b/x, service account c/x, service account d/x, " +
			"by the group system:serviceaccounts, get secrets", "bind only who needs it"},
		{"ClusterRoleBinding all gives service account a/x, service account a/y, by the group system:serviceaccounts:a, get secrets",
			"ambit narrow --from a/x"},
		{"ClusterRoleBinding one gives service account c/x get secrets", "ambit narrow --from c/x"},
		{"ClusterRoleBinding one gives service account a/x, service account a/y, by the group system:serviceaccounts:a, get secrets",
			"ambit narrow --from a/x"},
		{"ClusterRoleBinding one gives service account b/x, by the group system:serviceaccounts:b, get secrets",
			"ambit narrow --from b/x"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("it says\n%q\nwant\n%q", got, want)
	}
}

// TestSayClusterWideIsBounded: names and rules may be of any length and number, and the text is not.
func TestSayClusterWideIsBounded(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("\u202e", 2000)
	f := &facts.Facts{}

	var holders []rbacv1.Subject
	for i := range 1000 {
		holders = append(holders, rbacv1.Subject{Kind: "User", Name: fmt.Sprint(long, i)})
	}

	for i := range 20 {
		b := binding(fmt.Sprint(long, i), holders...)
		for range 20 {
			b.Rights = append(b.Rights, facts.ClusterRight{Verbs: []string{long}, Resource: long})
		}

		f.ClusterBindings.Giving = append(f.ClusterBindings.Giving, b)
	}

	// What matters most is first, whatever it is called.
	sensitive := binding("z", holders...)
	f.ClusterBindings.Giving = append([]facts.ClusterBinding{}, f.ClusterBindings.Giving...)

	for i := range f.ClusterBindings.Giving {
		f.ClusterBindings.Giving[i].Rights = f.ClusterBindings.Giving[i].Rights[1:]
	}

	f.ClusterBindings.Giving = append(f.ClusterBindings.Giving, sensitive)

	text := plan.SayClusterWide(plan.ClusterWideOf(holders, scope.Owner{}, f), 7)
	if len(text) > 8<<10 || strings.Contains(text, "\u202e") {
		t.Errorf("%d bytes: %q", len(text), text[:300])
	}

	for _, words := range []string{"ClusterRoleBinding z gives", "and 997 more", "; and 23 more", "get secrets"} {
		if !strings.Contains(text, words) {
			t.Errorf("nothing of %q in %q", words, text[:600])
		}
	}
}
