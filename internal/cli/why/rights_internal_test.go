package why

import (
	"bytes"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// explained is what users read of data, and what is beside it.
func explained(t *testing.T, d *Data, all bool) (text, beside string) {
	t.Helper()

	var out, errOut bytes.Buffer

	d.Account, d.Namespace = explain.Account{Namespace: "ops", Name: "op"}, "m"
	o := &Options{All: all, Options: reading.Options{Streams: output.Streams{
		Out: terminal.NewWriter(&out), ErrOut: terminal.NewWriter(&errOut),
	}}}

	if err := o.table(d); err != nil {
		t.Fatal(err)
	}

	return out.String(), errOut.String()
}

func ref(kind, namespace, name string) *explain.Ref {
	return &explain.Ref{Kind: kind, Namespace: namespace, Name: name}
}

func rightTo(resource string) explain.Right {
	return explain.Right{
		Binding: *ref("RoleBinding", "m", "b"), Role: *ref("Role", "m", "r"), Author: &explain.Author{Manager: "jane"},
		Rules: []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{resource}}},
	}
}

// words are a text without how it is laid out.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestWhereARightComesFrom: each right says what it allows, by which binding, and from what that came: from a scope and what it
// copies, from an authorization, or from nothing of Ambit's, whatever marks it bears.
func TestWhereARightComesFrom(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		change func(r *explain.Right)
		want   string
		not    string
	}{
		"it is somebody's": {
			func(*explain.Right) {},
			"get secrets by RoleBinding m/b, to Role m/r from nothing of Ambit's; written by jane", "marks",
		},
		"it only bears Ambit's marks": {
			func(r *explain.Right) { r.Marked = true },
			"from nothing of Ambit's, although it bears Ambit's marks, which anybody can write; written by jane", "",
		},
		"somebody authorized it": {
			func(r *explain.Right) { r.Authorization = "service account ops/op may write" },
			"from ambit authorize: service account ops/op may write", "nothing of Ambit's",
		},
		"it holds everywhere": {
			func(r *explain.Right) { r.Everywhere = true }, "by RoleBinding m/b, to Role m/r, in the whole cluster from", "through",
		},
		"a group has it": {
			func(r *explain.Right) { r.Through = "system:serviceaccounts:ops" },
			"to Role m/r, through the group system:serviceaccounts:ops from", "in the whole cluster",
		},
		"a group has it everywhere": {
			func(r *explain.Right) { r.Everywhere, r.Through = true, "system:authenticated" },
			"to Role m/r, in the whole cluster, through the group system:authenticated from", "",
		},
		"there is a problem": {func(r *explain.Right) { r.Problem = "the Role is gone" }, "but the Role is gone", ""},
		"a scope copied both": {
			func(r *explain.Right) {
				r.Scope, r.ScopeAuthor = ref("NamespaceScope", "ops", "s"), &explain.Author{Manager: "joe"}
				r.SourceBinding, r.SourceRole = ref("RoleBinding", "ops", "b"), ref("Role", "ops", "r")
			},
			"copied from RoleBinding ops/b, to Role ops/r for NamespaceScope ops/s, written by joe", "jane",
		},
		"a scope copied a binding of a ClusterRole": {
			func(r *explain.Right) {
				r.Scope, r.Role = ref("NamespaceScope", "ops", "s"), *ref("ClusterRole", "", "view")
				r.SourceBinding = ref("RoleBinding", "ops", "b")
			},
			"copied from RoleBinding ops/b, to the same ClusterRole view for NamespaceScope ops/s", "",
		},
		"a scope copied a role that may not be read": {
			func(r *explain.Right) {
				r.Scope, r.SourceBinding, r.Unread = ref("NamespaceScope", "ops", "s"), ref("RoleBinding", "ops", "b"), true
			},
			"copied from RoleBinding ops/b for NamespaceScope ops/s", "the same",
		},
		"a scope copied rules": {
			func(r *explain.Right) {
				r.Scope, r.SourceRole = ref("ScopeInstance", "", "i"), ref("ScopeTemplate", "", "t")
			},
			"copied from no binding; the rules are those of ScopeTemplate t for ScopeInstance i", "",
		},
		"a scope says it itself": {
			func(r *explain.Right) { r.Scope = ref("ScopeInstance", "", "i") },
			"copied from nothing: the scope says it itself for ScopeInstance i", "",
		},
	} {
		r := rightTo("secrets")
		tc.change(&r)

		text, _ := explained(t, &Data{Rights: []explain.Right{r}}, false)
		if !strings.Contains(words(text), tc.want) || tc.not != "" && strings.Contains(text, tc.not) {
			t.Errorf("%s: it says %q, want %q", reason, words(text), tc.want)
		}

		if !strings.HasPrefix(text, "Service account ops/op in namespace m\n") || strings.Contains(text, "is for it") {
			t.Errorf("%s: it begins %q", reason, text)
		}
	}
}

// TestWhatEverybodyHas: what every service account has is named alone, unless all is asked for, or a question is answered by it.
func TestWhatEverybodyHas(t *testing.T) {
	t.Parallel()

	everybodys := rightTo("selfsubjectreviews")
	everybodys.Binding, everybodys.Everywhere = *ref("ClusterRoleBinding", "", "system:basic-user"), true
	everybodys.Through = "system:authenticated"

	if !everybodys.IsEverybodys() {
		t.Fatal("everybody has it")
	}

	const besides = "Besides, what every service account has, by system:basic-user (--all shows it)."

	for reason, tc := range map[string]struct {
		data  Data
		all   bool
		shown bool
	}{
		"nothing is asked":     {Data{}, false, false},
		"all is asked for":     {Data{}, true, true},
		"a question is asked":  {Data{Question: &explain.Question{Verb: "get", Resource: "x"}, Allowed: new(true)}, false, true},
		"both are, of nothing": {Data{Question: &explain.Question{Verb: "get", Resource: "x"}, Allowed: new(true)}, true, true},
	} {
		tc.data.Rights = []explain.Right{everybodys, rightTo("secrets")}

		text, _ := explained(t, &tc.data, tc.all)
		if strings.Contains(text, "selfsubjectreviews") != tc.shown || strings.Contains(text, besides) == tc.shown ||
			!strings.Contains(text, "get secrets") {
			t.Errorf("%s: it says %q", reason, text)
		}
	}

	if text, _ := explained(t, &Data{Rights: []explain.Right{rightTo("secrets")}}, false); strings.Contains(text, "Besides") {
		t.Errorf("without anything that everybody has, it says %q", text)
	}
}

// TestWhenNothingIsExplained: that nothing is for the account is said only of what may be read, and hints say why.
func TestWhenNothingIsExplained(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		data       Data
		want, note string
	}{
		"there is nothing":        {Data{}, "Nothing here is for it.", ""},
		"something is not read":   {Data{NotRead: []string{"no roles"}}, "Nothing that you may read is for it.", "Note: no roles\n"},
		"there are hints":         {Data{Hints: []string{"m is no member"}}, "Nothing here is for it.\n\nWhy not: m is no member.", ""},
		"everybody has something": {Data{Rights: []explain.Right{rightTo("x")}, Hints: []string{}}, "Nothing here is for it.", ""},
		"there are notes":         {Data{Notes: []string{"so it is"}}, "Nothing here is for it.", "Note: so it is\n"},
	} {
		text, beside := explained(t, &tc.data, false)
		if !strings.Contains(text, tc.want) || beside != tc.note || strings.Contains(text, "Why not") != (len(tc.data.Hints) > 0) {
			t.Errorf("%s: it says %q, and beside it %q", reason, text, beside)
		}
	}
}

// TestByWhatAnAnswerIsGiven: who may not ask the API server learns that the answer is by the bindings alone, and whether these
// explain it. Other names matter only where the answer is not yes.
func TestByWhatAnAnswerIsGiven(t *testing.T) {
	t.Parallel()

	const (
		byBindings = "you may not ask the API server itself"
		byNothing  = "The API server says so; by no binding that you may read."
		named      = "It may about other names:"
	)

	secrets := explain.Question{Verb: "get", Resource: "secrets"}
	nodes := explain.Question{Verb: "get", Resource: "nodes", ClusterScoped: true}
	rights, others := []explain.Right{rightTo("secrets")}, []explain.Right{rightTo("of-other-names")}

	for reason, tc := range map[string]struct {
		data Data
		has  []string
		not  []string
	}{
		"the API server says yes": {
			Data{Question: &secrets, Allowed: new(true), APIServer: "yes", Rights: rights}, []string{"in namespace m."},
			[]string{byBindings, byNothing},
		},
		"it says yes by what cannot be read": {
			Data{Question: &secrets, Allowed: new(true), APIServer: "yes"}, []string{byNothing}, []string{byBindings},
		},
		"it says no": {
			Data{Question: &secrets, Allowed: new(false), APIServer: "no"}, []string{"No: "}, []string{byBindings, byNothing},
		},
		"it may not be asked": {
			Data{Question: &secrets, Allowed: new(true), Rights: rights}, []string{byBindings, "By the bindings"}, []string{byNothing},
		},
		"it is unknown": {Data{Question: &secrets}, []string{byBindings, "By no binding"}, []string{byNothing}},
		"it is about the cluster": {
			Data{Question: &nodes, Allowed: new(false), APIServer: "no"}, []string{"in the whole cluster."}, nil,
		},
		"no, but about other names": {
			Data{Question: &secrets, Allowed: new(false), Named: others}, []string{named, "get of-other-names"}, nil,
		},
		"yes, and about other names": {
			Data{Question: &secrets, Allowed: new(true), Named: others}, nil, []string{named, "of-other-names"},
		},
		"no, and about none":        {Data{Question: &secrets, Allowed: new(false)}, nil, []string{named}},
		"unknown, and about others": {Data{Question: &secrets, Named: others}, []string{named}, nil},
	} {
		text, _ := explained(t, &tc.data, false)

		for _, want := range tc.has {
			if !strings.Contains(text, want) {
				t.Errorf("%s: it does not say %q: %q", reason, want, text)
			}
		}

		for _, not := range tc.not {
			if strings.Contains(text, not) {
				t.Errorf("%s: it says %q: %q", reason, not, text)
			}
		}
	}
}

// TestWhatALoneListGives: who may list and not get sees what is in the objects all the same, and whoever asks learns of it.
func TestWhatALoneListGives(t *testing.T) {
	t.Parallel()

	list := rightTo("secrets")
	list.Rules[0].Verbs = []string{"list"}

	ask := func(verb, resource, name string) explain.Question {
		return explain.Question{Verb: verb, Resource: resource, Name: name}
	}

	for reason, tc := range map[string]struct {
		question explain.Question
		rights   []explain.Right
		want     string
	}{
		"all of them":     {ask("get", "secrets", ""), []explain.Right{list}, "may list secrets, which"},
		"and so any one":  {ask("get", "secrets", "a"), []explain.Right{list}, "may list secrets, which"},
		"it may get them": {ask("get", "secrets", ""), []explain.Right{list, rightTo("secrets")}, ""},
		"another verb":    {ask("create", "secrets", ""), []explain.Right{list}, ""},
		"others":          {ask("get", "pods", ""), []explain.Right{list}, ""},
	} {
		d := Data{Question: &tc.question, Rights: tc.rights}
		d.keepAllowing()

		if got := strings.Join(d.Notes, ""); !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
			t.Errorf("%s: it says %q, want %q", reason, got, tc.want)
		}
	}
}
