package projected_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	rbacv1 "k8s.io/api/rbac/v1"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func source() *rapid.Generator[projected.Source] {
	return rapid.Custom(func(t *rapid.T) projected.Source {
		return projected.Source{
			Kind:      rapid.SampledFrom([]string{"Role", "RoleBinding"}).Draw(t, "kind"),
			Namespace: rapid.StringMatching(`[a-z]{1,63}`).Draw(t, "namespace"),
			Name:      rapid.StringMatching(`[^/%\x00]{1,253}`).Draw(t, "name"),
		}
	})
}

func TestSlotIsAValidName(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := source().Draw(t, "source")

		name := projected.Slot("0123456789abcdef", s)
		if len(name) > 63 || !utf8.ValidString(name) || strings.ContainsAny(name, "/%") {
			t.Fatalf("%q is no name for a copy of %q", name, s.Name)
		}
	})
}

func TestSlotDiffersBySourceAndScope(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("r", 62)
	a := projected.Source{Kind: "Role", Namespace: "ops", Name: long + "a"}

	for reason, other := range map[string]projected.Source{
		"63 characters that differ in the last": {Kind: "Role", Namespace: "ops", Name: long + "b"},
		"another kind":                          {Kind: "RoleBinding", Namespace: "ops", Name: long + "a"},
		"another namespace":                     {Kind: "Role", Namespace: "op", Name: long + "a"},
	} {
		if projected.Slot("h", a) == projected.Slot("h", other) {
			t.Errorf("%s: one name for two sources", reason)
		}
	}

	if projected.Slot("h", a) == projected.Slot("i", a) {
		t.Error("one name for the copies of two scopes")
	}

	// Without separators these two would run together.
	if (scope.Owner{Namespace: "ab", Name: "c"}).Hash() == (scope.Owner{Namespace: "a", Name: "bc"}).Hash() {
		t.Error("one hash for two owners")
	}
}

func TestDigestSeesEveryDecision(t *testing.T) {
	t.Parallel()

	base := func() projected.Object {
		return projected.Object{
			Kind: projected.RoleBinding, Slot: "n", ScopeHash: "h", Owner: "o", Source: "s",
			Rules:    []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "r"},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ops", Name: "a"}},
		}
	}
	original := base()

	for reason, change := range map[string]func(*projected.Object){
		"slot":          func(o *projected.Object) { o.Slot = "m" },
		"label":         func(o *projected.Object) { o.ScopeHash = "" },
		"owner":         func(o *projected.Object) { o.Owner = "" },
		"source":        func(o *projected.Object) { o.Source = "x" },
		"verb":          func(o *projected.Object) { o.Rules[0].Verbs = []string{"*"} },
		"group":         func(o *projected.Object) { o.Rules[0].APIGroups = []string{"apps"} },
		"resource name": func(o *projected.Object) { o.Rules[0].ResourceNames = []string{"x"} },
		"URL":           func(o *projected.Object) { o.Rules[0].NonResourceURLs = []string{"/"} },
		"moved value": func(o *projected.Object) {
			o.Rules[0].Verbs, o.Rules[0].APIGroups = []string{"get", ""}, []string{}
		},
		"aggregation":       func(o *projected.Object) { o.Aggregated = true },
		"owner reference":   func(o *projected.Object) { o.OwnerRefs = []projected.OwnerRef{{UID: "u"}} },
		"no rule":           func(o *projected.Object) { o.Rules = nil },
		"subject":           func(o *projected.Object) { o.Subjects[0].Name = "b" },
		"subject's kind":    func(o *projected.Object) { o.Subjects[0].Kind = "User" },
		"subject elsewhere": func(o *projected.Object) { o.Subjects[0].Namespace = "x" },
		"one more subject":  func(o *projected.Object) { o.Subjects = append(o.Subjects, o.Subjects[0]) },
	} {
		changed := base()
		change(&changed)

		if changed.Digest(scope.ManagedBy) == original.Digest(scope.ManagedBy) {
			t.Errorf("%s: the change is not seen", reason)
		}
	}

	elsewhere := base()
	elsewhere.Name, elsewhere.RoleRef.Name = "another", "another"

	if elsewhere.Digest(scope.ManagedBy) != original.Digest(scope.ManagedBy) {
		t.Error("names, which differ from member to member, are part of the decision")
	}

	if original.Digest("") == original.Digest(scope.ManagedBy) {
		t.Error("the label managed-by is not seen")
	}

	empty, null := base(), base()
	empty.Rules[0].ResourceNames, null.Rules[0].ResourceNames = []string{}, nil

	if empty.Digest("") != null.Digest("") {
		t.Error("an empty and a null list differ, although RBAC sees no difference")
	}
}
