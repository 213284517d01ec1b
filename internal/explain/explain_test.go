package explain_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/explain"
)

var account = explain.Account{Namespace: "ops", Name: "op"}

func binding(name string, annotations map[string]string, subjects ...rbacv1.Subject) rbacv1.RoleBinding {
	b := rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: "m", Name: name, Annotations: annotations},
		RoleRef:    rbacv1.RoleRef{Kind: "Role", Name: "r"}, Subjects: subjects,
	}
	if annotations != nil {
		b.Labels = map[string]string{"app.kubernetes.io/managed-by": "ambit", "ambit.dev/scope": "0123"}
	}

	return b
}

func subject(kind, namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: kind, Namespace: namespace, Name: name}
}

func roles() *explain.Roles {
	return &explain.Roles{
		Roles: map[string]*rbacv1.Role{"r": {
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"ambit.dev/source": "Role/ops/r"}},
			Rules: []rbacv1.PolicyRule{
				{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"one"}},
				{Verbs: []string{"*"}, APIGroups: []string{"apps"}, Resources: []string{"*"}},
			},
		}},
		ClusterRoles: map[string]*rbacv1.ClusterRole{"closed": nil},
	}
}

// TestAccountWithoutANamespace: it is that of the namespace of its RoleBinding, and nobody in a ClusterRoleBinding.
func TestAccountWithoutANamespace(t *testing.T) {
	t.Parallel()

	unnamed := subject("ServiceAccount", "", "op")
	everywhere := []rbacv1.ClusterRoleBinding{
		{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"}, Subjects: []rbacv1.Subject{unnamed}},
	}

	for namespace, want := range map[string]int{"m": 1, "ops": 0} {
		is := explain.Account{Namespace: namespace, Name: "op"}
		if got := explain.Of(is, []rbacv1.RoleBinding{binding("b", nil, unnamed)}, everywhere, roles()); len(got) != want {
			t.Errorf("the account of %s holds %+v", namespace, got)
		}
	}
}

func TestWhoIsMeant(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		subject rbacv1.Subject
		meant   bool
		through string
	}{
		"itself":                              {subject("ServiceAccount", "ops", "op"), true, ""},
		"its user name":                       {subject("User", "", "system:serviceaccount:ops:op"), true, ""},
		"the group of all":                    {subject("Group", "", "system:serviceaccounts"), true, "system:serviceaccounts"},
		"that of its namespace":               {subject("Group", "", "system:serviceaccounts:ops"), true, "system:serviceaccounts:ops"},
		"everybody":                           {subject("Group", "", "system:authenticated"), true, "system:authenticated"},
		"another beside it":                   {subject("ServiceAccount", "ops", "other"), false, ""},
		"another of that name":                {subject("ServiceAccount", "m", "op"), false, ""},
		"without a namespace, in another one": {subject("ServiceAccount", "", "op"), false, ""},
		"a group of another":                  {subject("Group", "", "system:serviceaccounts:m"), false, ""},
		"a user of its name":                  {subject("User", "", "op"), false, ""},
		"who is not logged in":                {subject("Group", "", "system:unauthenticated"), false, ""},
		"a user called as a group":            {subject("User", "", "system:serviceaccounts"), false, ""},
	} {
		got := explain.Of(account, []rbacv1.RoleBinding{binding("b", nil, tc.subject)}, nil, roles())
		if len(got) > 0 != tc.meant || tc.meant && got[0].Through != tc.through {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

func TestWhereItComesFrom(t *testing.T) {
	t.Parallel()

	marks := map[string]string{
		"ambit.dev/owner": "NamespaceScope/ops/s", "ambit.dev/source": "RoleBinding/ops/b",
	}
	me := subject("ServiceAccount", "ops", "op")
	everywhere := []rbacv1.ClusterRoleBinding{
		{ObjectMeta: metav1.ObjectMeta{Name: "system:basic-user"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "none"},
			Subjects: []rbacv1.Subject{subject("Group", "", "system:authenticated")}},
		{ObjectMeta: metav1.ObjectMeta{Name: "a"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "closed"},
			Subjects: []rbacv1.Subject{me}},
	}
	got := explain.Of(account, []rbacv1.RoleBinding{binding("a", nil, me), binding("z", marks, me)}, everywhere, roles())

	var names []string
	for i := range got {
		names = append(names, got[i].Binding.Name)
	}

	if want := []string{"z", "a", "a", "system:basic-user"}; !reflect.DeepEqual(names, want) {
		t.Fatalf("the order is %v, want %v", names, want)
	}

	if r := got[0]; r.Scope == nil || r.Scope.String() != "NamespaceScope ops/s" || r.SourceBinding.Name != "b" ||
		r.SourceRole.String() != "Role ops/r" || len(r.Rules) != 2 {
		t.Errorf("what Ambit made: %+v", r)
	}

	if got[1].Scope != nil || !strings.Contains(got[2].Problem, "may not read") ||
		!strings.Contains(got[3].Problem, "does not exist") || !got[3].IsEverybodys() || got[2].IsEverybodys() {
		t.Errorf("the others: %+v", got[1:])
	}
}

// TestMarksThatAnybodyCanWrite: marks do not make a binding one of a scope that makes no such binding, or that cannot exist.
func TestMarksThatAnybodyCanWrite(t *testing.T) {
	t.Parallel()

	me, mallory := subject("ServiceAccount", "ops", "op"), subject("User", "", "mallory")

	for name, tc := range map[string]struct {
		owner    string
		at       string
		subjects []rbacv1.Subject
		is       bool
	}{
		"a copy":                          {"NamespaceScope/ops/s", "m", []rbacv1.Subject{me}, true},
		"of an install":                   {"ClusterServiceVersion/ops/s.v1", "ops", []rbacv1.Subject{me}, true},
		"of an instance, to a Role":       {"ScopeInstance//s", "m", []rbacv1.Subject{me}, false},
		"for a user":                      {"NamespaceScope/ops/s", "m", []rbacv1.Subject{mallory}, false},
		"for a user with a namespace":     {"NamespaceScope/ops/s", "m", []rbacv1.Subject{subject("User", "ops", "mallory")}, false},
		"for a user, too":                 {"NamespaceScope/ops/s", "m", []rbacv1.Subject{me, mallory}, false},
		"for an account of another":       {"NamespaceScope/ops/s", "m", []rbacv1.Subject{subject("ServiceAccount", "m", "op")}, false},
		"for an account beside":           {"NamespaceScope/ops/s", "m", []rbacv1.Subject{subject("ServiceAccount", "", "op")}, false},
		"for a user, of an install":       {"ClusterServiceVersion/ops/s.v1", "m", []rbacv1.Subject{mallory}, false},
		"in the operator namespace":       {"NamespaceScope/ops/s", "ops", []rbacv1.Subject{me}, false},
		"in the whole cluster":            {"NamespaceScope/ops/s", "", []rbacv1.Subject{me}, false},
		"of a group, which binds nothing": {"OperatorGroup/ops/s", "m", []rbacv1.Subject{me}, false},
		"of a Role":                       {"Role/ops/s", "m", []rbacv1.Subject{me}, false},
		"of another kind":                 {"Secret/ops/s", "m", []rbacv1.Subject{me}, false},
		"without a name":                  {"NamespaceScope/ops/", "m", []rbacv1.Subject{me}, false},
		"without a namespace":             {"NamespaceScope//s", "m", []rbacv1.Subject{me}, false},
		"with a name that is none":        {"NamespaceScope/ops/a%2f", "m", []rbacv1.Subject{me}, false},
		"with a name of dots":             {"NamespaceScope/ops/..", "m", []rbacv1.Subject{me}, false},
		"with a namespace that is none":   {"NamespaceScope/o%/s", "m", []rbacv1.Subject{me}, false},
		"of an instance in a namespace":   {"ScopeInstance/ops/s", "m", []rbacv1.Subject{me}, false},
		"of too many parts":               {"NamespaceScope/ops/s/t", "m", []rbacv1.Subject{me}, false},
		"of nothing":                      {"", "m", []rbacv1.Subject{me}, false},
	} {
		b := binding("b", map[string]string{"ambit.dev/owner": tc.owner}, tc.subjects...)
		b.Namespace = tc.at

		local, everywhere := []rbacv1.RoleBinding{b}, []rbacv1.ClusterRoleBinding(nil)
		if tc.at == "" {
			local, everywhere = nil, []rbacv1.ClusterRoleBinding{{ObjectMeta: b.ObjectMeta, RoleRef: b.RoleRef, Subjects: b.Subjects}}
			everywhere[0].RoleRef.Kind = "ClusterRole"
		}

		all := roles()
		all.ClusterRoles["r"] = &rbacv1.ClusterRole{Rules: all.Roles["r"].Rules}

		holders, _, _ := explain.Who(&explain.Question{Verb: "patch", Group: "apps", Resource: "deployments"}, local, everywhere, all)
		if len(holders) != len(tc.subjects) {
			t.Errorf("%s: %+v", name, holders)
		}

		for i := range holders {
			if r := &holders[i].Right; (r.Scope != nil) != tc.is || r.Marked == tc.is {
				t.Errorf("%s: the scope is %v, and marked %t", name, r.Scope, r.Marked)
			}
		}
	}
}

// TestInstancesBindWhatTemplatesMade: for an instance Ambit binds ClusterRoles of templates, which nobody makes who may write in
// one namespace alone. A binding to another role only bears the marks.
func TestInstancesBindWhatTemplatesMade(t *testing.T) {
	t.Parallel()

	mallory := subject("User", "", "mallory")
	rules := roles().Roles["r"].Rules
	made := func(source string) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"ambit.dev/source": source}}, Rules: rules,
		}
	}

	all := roles()
	all.ClusterRoles["made"], all.ClusterRoles["others"] = made("ScopeTemplate//t"), made("")
	all.Roles["r"].Annotations["ambit.dev/source"] = "ScopeTemplate//t"
	all.Roles["unread"] = nil

	for ref, is := range map[string]bool{
		"ClusterRole/made": true, "ClusterRole/others": false, "Role/r": false, "Role/unread": false,
		"ClusterRole/gone": true, "ClusterRole/closed": true, // Nothing is known of these.
	} {
		b := binding("b", map[string]string{"ambit.dev/owner": "ScopeInstance//s"}, subject("ServiceAccount", "ops", "op"), mallory)
		b.RoleRef.Kind, b.RoleRef.Name, _ = strings.Cut(ref, "/")

		got := explain.Of(account, []rbacv1.RoleBinding{b}, nil, all)
		if len(got) != 1 || (got[0].Scope != nil) != is || got[0].Marked == is {
			t.Errorf("to %s: %+v", ref, got)
		}
	}
}

func TestQuestions(t *testing.T) {
	t.Parallel()

	rights := explain.Of(account, []rbacv1.RoleBinding{binding("b", nil, subject("ServiceAccount", "ops", "op"))}, nil, roles())

	for name, tc := range map[string]struct {
		question       explain.Question
		allowed, named int
	}{
		"by a wildcard":     {explain.Question{Verb: "patch", Group: "apps", Resource: "deployments"}, 1, 0},
		"the named one":     {explain.Question{Verb: "get", Resource: "secrets", Name: "one"}, 1, 0},
		"only a named one":  {explain.Question{Verb: "get", Resource: "secrets"}, 0, 1},
		"another name":      {explain.Question{Verb: "get", Resource: "secrets", Name: "two"}, 0, 1},
		"another verb":      {explain.Question{Verb: "list", Resource: "secrets"}, 0, 0},
		"a group of others": {explain.Question{Verb: "get", Group: "batch", Resource: "jobs"}, 0, 0},
	} {
		allowed, named := explain.Allowing(rights, &tc.question)
		if len(allowed) != tc.allowed || len(named) != tc.named {
			t.Errorf("%s: allowed %+v, named %+v", name, allowed, named)
		}
	}
}

func TestAuthors(t *testing.T) {
	t.Parallel()

	early, late := metav1.NewTime(time.Unix(10, 0)), metav1.NewTime(time.Unix(20, 0))
	spec, status := &metav1.FieldsV1{}, &metav1.FieldsV1{}
	spec.SetRawString(`{"f:spec":{}}`)
	status.SetRawString(`{"f:status":{}}`)

	obj := &metav1.ObjectMeta{
		ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "helm", Time: &early, FieldsV1: spec}, {Manager: "kubectl-edit", Time: &late, FieldsV1: spec},
			{Manager: "ambit", Time: &late, FieldsV1: spec}, {Manager: "other", Time: &late, FieldsV1: status, Subresource: "status"},
		},
		Annotations: map[string]string{"meta.helm.sh/release-name": "web"},
	}

	if got := explain.AuthorOf(obj).String(); got != "kubectl-edit (Helm release web)" {
		t.Errorf("got %q", got)
	}

	if got := explain.AuthorOf(&metav1.ObjectMeta{}).String(); got != "nobody knows whom" {
		t.Errorf("got %q", got)
	}

	installed := &metav1.ObjectMeta{ManagedFields: obj.ManagedFields[2:]}
	if got := explain.AuthorOf(installed).String(); got != "nobody knows whom" {
		t.Errorf("of what is Ambit's anyway, got %q", got)
	}

	for what, want := range map[*metav1.ObjectMeta]string{
		obj: "kubectl-edit (Helm release web)", installed: "ambit", {ManagedFields: obj.ManagedFields[3:]}: "nobody knows whom",
	} {
		if got := explain.AuthorOfScope(what).String(); got != want {
			t.Errorf("of a scope, got %q, want %q", got, want)
		}
	}
}
