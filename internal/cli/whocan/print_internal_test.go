package whocan

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// told is what users read of data, and what is beside it.
func told(t *testing.T, d *Data, form string) (text, beside string) {
	t.Helper()

	var out, errOut bytes.Buffer

	o := &Options{Output: form, Streams: output.Streams{
		Out: terminal.NewWriter(&out), ErrOut: terminal.NewWriter(&errOut),
	}}

	if d.Question.Verb == "" {
		d.Question = explain.Question{Verb: "get", Resource: "secrets"}
	}

	if err := o.print(d); err != nil {
		t.Fatal(err)
	}

	return out.String(), errOut.String()
}

func holder(kind, namespace, name string) explain.Entry {
	h := explain.Entry{Right: explain.Right{
		Binding: explain.Ref{Kind: "RoleBinding", Namespace: "m", Name: "b"}, Role: explain.Ref{Kind: "ClusterRole", Name: "edit"},
	}}
	h.Kind, h.Namespace, h.Name = kind, namespace, name

	return h
}

// TestHoldersAreListed: each has a line, with the binding by which it may, the role, where an aggregated one has it from, and the
// scope where Ambit made the binding.
func TestHoldersAreListed(t *testing.T) {
	t.Parallel()

	scoped := holder("ServiceAccount", "ops", "op")
	scoped.Right.Scope = &explain.Ref{Kind: "NamespaceScope", Namespace: "ops", Name: "s"}

	aggregated := holder("User", "", "jane")
	aggregated.Aggregated = []string{"edit-secrets", "edit-pods"}

	forging := holder("ServiceAccount", "trusted   op   RoleBinding", "x")

	holders := []explain.Entry{scoped, aggregated, holder("Group", "", "x\ny"), forging}
	text, _ := told(t, &Data{Namespace: "m", Holders: holders}, output.Table)

	var got []string
	for line := range strings.Lines(strings.TrimSpace(text)) {
		got = append(got, strings.Join(strings.Fields(line), " "))
	}

	want := []string{
		"WHO NAMESPACE NAME BINDING ROLE SCOPE",
		"ServiceAccount ops op RoleBinding m/b ClusterRole edit NamespaceScope ops/s",
		"User jane RoleBinding m/b ClusterRole edit, from edit-secrets, edit-pods",
		`Group "x\ny" RoleBinding m/b ClusterRole edit`,
		`ServiceAccount "trusted op RoleBinding" x RoleBinding m/b ClusterRole edit`,
	}

	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("it says %q, want %q", got, want)
	}
}

// TestWhatIsNotKnownOfHolders: whoever reads the list learns what it is about, and that there may be others where something could
// not be read, also where it names nobody.
func TestWhatIsNotKnownOfHolders(t *testing.T) {
	t.Parallel()

	unread := holder("", "", "").Right
	unread.Problem = "its role may not be read"

	for reason, tc := range map[string]struct {
		data Data
		want []string
		not  []string
	}{
		"everything is known": {
			Data{Namespace: "m", Holders: []explain.Entry{holder("User", "", "jane")}},
			[]string{"Note: this is who may get secrets in namespace m\n", "Note: the group system:masters may do everything\n"},
			[]string{"others may", "no binding", "its role"},
		},
		"it is about the cluster": {Data{}, []string{"in the whole cluster\n"}, []string{"in namespace"}},
		"nobody may":              {Data{Namespace: "m"}, []string{"Note: no binding that you may read gives it to anybody\n"}, nil},
		"something is not read": {
			Data{NotRead: []string{"you may not list roles"}}, []string{"Note: you may not list roles, so others may be able to\n"}, nil,
		},
		"a role is not read": {
			Data{Unread: []explain.Right{unread}}, []string{"Note: RoleBinding m/b: its role may not be read\n"}, nil,
		},
		"there are notes": {Data{Notes: []string{"so it is"}}, []string{"Note: so it is\n"}, nil},
	} {
		_, beside := told(t, &tc.data, output.Table)

		for _, want := range tc.want {
			if !strings.Contains(beside, want) {
				t.Errorf("%s: it does not say %q: %q", reason, want, beside)
			}
		}

		for _, not := range tc.not {
			if strings.Contains(beside, not) {
				t.Errorf("%s: it says %q: %q", reason, not, beside)
			}
		}
	}
}

// TestWhoMayByNameIsNoted: whoever asks who may read Secrets learns of those who may read some of them.
func TestWhoMayByNameIsNoted(t *testing.T) {
	t.Parallel()

	limited := func(names ...string) []explain.Entry {
		of := []explain.Entry{holder("ServiceAccount", "pay", "x"), holder("User", "", "a\nb")}
		of[0].Right.Rules = []rbacv1.PolicyRule{{ResourceNames: names}}

		return of
	}

	var d Data

	d.Namespace = "m"
	d.noteNamed([][]explain.Entry{limited("stripe"), limited("1", "2", "3", "4")})
	_, beside := told(t, &d, output.Table)

	for _, want := range []string{
		"Note: RoleBinding m/b gives it to ServiceAccount pay/x, User \"a\\nb\" for objects of some names alone: stripe\n",
		"for objects of some names alone: 1, 2, 3 and 1 more\n", "gives it to anybody for objects of any name\n",
	} {
		if !strings.Contains(beside, want) {
			t.Errorf("it does not say %q: %q", want, beside)
		}
	}

	var many Data

	many.noteNamed(slices.Repeat([][]explain.Entry{limited("stripe")}, 1000))

	if n := len(many.Notes); n != maxNamed+1 || !strings.HasPrefix(many.Notes[maxNamed], "990 more bindings") {
		t.Errorf("there are %d notes, the last of which is %q", n, many.Notes[n-1])
	}
}

// TestWhoMayTheSameIsNoted: whoever asks who may get Secrets learns of those who read them by a list or a watch, once each.
func TestWhoMayTheSameIsNoted(t *testing.T) {
	t.Parallel()

	for question, want := range map[explain.Question]string{
		{Verb: "get", Resource: "secrets"}:              "User bob, User eve may list or watch them",
		{Verb: "get", Resource: "secrets", Name: "one"}: "User bob, User eve, User one may list or watch them",
		{Verb: "update", Resource: "secrets"}:           "User bob, User eve may patch them",
		{Verb: "list", Resource: "secrets"}:             "",
		{Verb: "get", Resource: "pods/log"}:             "",
	} {
		d := Data{Question: question, Holders: []explain.Entry{holder("User", "", "amy")}}
		d.noteAlike(func(q *explain.Question) []explain.Entry {
			switch {
			case q.Name != "":
				return []explain.Entry{holder("User", "", "one"), holder("User", "", "eve")}
			case q.Verb == "list":
				return []explain.Entry{holder("User", "", "eve"), holder("User", "", "amy")}
			default:
				return []explain.Entry{holder("User", "", "eve"), holder("User", "", "bob")}
			}
		})

		if got := strings.Join(d.Notes, ""); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: it says %q, want %q", question.String(), got, want)
		}
	}
}

// TestHoldersForPrograms: programs get the same as data, and nothing beside it.
func TestHoldersForPrograms(t *testing.T) {
	t.Parallel()

	text, beside := told(t, &Data{Namespace: "m", Holders: []explain.Entry{holder("User", "", "jane")}}, output.JSON)

	var got struct {
		Holders []struct {
			Name string `json:"name"`
		} `json:"holders"`
	}

	err := json.Unmarshal([]byte(text), &got)
	if err != nil || len(got.Holders) != 1 || got.Holders[0].Name != "jane" || beside != "" {
		t.Errorf("%v: %q, and beside it %q", err, text, beside)
	}
}
