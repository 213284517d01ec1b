package grant_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const old = "namespacescope.ibm.com/"

// scopes are of the group operator.ibm.com, or of the one before a slash.
func scopes(names ...string) []scope.Scope {
	out := make([]scope.Scope, 0, len(names))

	for _, name := range names {
		wanted, _ := grant.ParseWanted(name)
		out = append(out, scope.Scope{Owner: wanted.Owner("ops"), Key: scope.NamespaceScopes.In("ops")})
	}

	return out
}

func TestChoose(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		scopes []string
		asked  string
		want   string
		err    error
	}{
		"none":           {"without a scope there is nothing to be a member of", nil, "", "", grant.ErrNoScope},
		"none, asked":    {"also when one is asked for", nil, "a", "", grant.ErrNoScope},
		"the only one":   {"one is enough to know", []string{"a"}, "", "a", nil},
		"the usual name": {"the usual name is meant", []string{"a", "namespacescope"}, "", "namespacescope", nil},
		"asked":          {"what is asked for is meant", []string{"a", "namespacescope"}, "a", "a", nil},
		"asked wrongly":  {"the only one is not what was asked for", []string{"a"}, "b", "", grant.ErrScopeNotThere},
		"several":        {"nobody guesses", []string{"a", "b"}, "", "", grant.ErrSeveralScopes},

		"the only one, older": {"the group does not matter", []string{old + "a"}, "", old + "a", nil},
		"the usual name, older": {
			"nor does it for the usual name", []string{"a", old + "namespacescope"}, "", old + "namespacescope", nil,
		},
		"asked, older":  {"nor for a name that is asked for", []string{"a", old + "b"}, "b", old + "b", nil},
		"one each":      {"two are several, whatever their groups", []string{"a", old + "b"}, "", "", grant.ErrSeveralScopes},
		"a name twice":  {"no group goes first", []string{"a", old + "a"}, "a", "", grant.ErrTwoGroups},
		"usual twice":   {"nor where none is named", []string{"namespacescope", old + "namespacescope"}, "", "", grant.ErrTwoGroups},
		"group asked":   {"the group tells them apart", []string{"a", old + "a"}, old + "a", old + "a", nil},
		"other group":   {"whichever it is", []string{"a", old + "a"}, "operator.ibm.com/a", "a", nil},
		"wrong group":   {"the group counts", []string{"a"}, old + "a", "", grant.ErrScopeNotThere},
		"none of group": {"also where there is none", nil, old + "a", "", grant.ErrNoScope},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			wanted, err := grant.ParseWanted(tc.asked)
			if err != nil {
				t.Fatal(err)
			}

			got, err := grant.Choose(scopes(tc.scopes...), "ops", wanted)
			if !errors.Is(err, tc.err) || err == nil && grant.Short(got.Owner) != tc.want {
				t.Errorf("%s: got %v, %v", tc.reason, got, err)
			}
		})
	}

	leaving := scopes("a")
	leaving[0].Deleted = time.Unix(1, 0)

	if got, err := grant.Choose(leaving, "ops", grant.Wanted{}); err != nil || got.Owner.Name != "a" {
		t.Errorf("a scope that is being deleted may need a grant, to remove what it projected: %v, %v", got, err)
	}

	if _, err := grant.ParseWanted("example.com/a"); err == nil {
		t.Error("there are two groups of NamespaceScopes, and no third")
	}
}

// TestMeans holds what a value of --scope leaves open.
func TestMeans(t *testing.T) {
	t.Parallel()

	for value, want := range map[string][2]bool{
		"": {true, true}, "s": {true, true}, old + "s": {false, true}, "operator.ibm.com/s": {true, false}, old: {false, true},
		"t": {false, false}, old + "t": {false, false},
	} {
		wanted, err := grant.ParseWanted(value)
		if err != nil {
			t.Fatal(err)
		}

		for i, s := range scopes("s", old+"s") {
			if got := wanted.Means(s.Owner); got != want[i] {
				t.Errorf("%q means %s of %s: %t", value, s.Owner.Name, s.Owner.Group, got)
			}
		}
	}

	if owner := (grant.Wanted{Group: "operator.ibm.com"}).Owner("ops"); owner != (scope.Owner{}) {
		t.Errorf("without a name there is no scope, and it is %v", owner)
	}
}

// TestChooseSaysWhatThereIs: whoever has to choose is told between which.
func TestChooseSaysWhatThereIs(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		scopes []string
		asked  string
		want   string
	}{
		"several": {
			[]string{"b", old + "c", "a"}, "",
			"there are several NamespaceScopes in namespace ops and none is called namespacescope; " +
				"choose one of a, b, namespacescope.ibm.com/c",
		},
		"several, and two of one name": {
			[]string{"a", old + "a", "b"}, "",
			"there are several NamespaceScopes in namespace ops and none is called namespacescope; " +
				"choose one of b, namespacescope.ibm.com/a, operator.ibm.com/a",
		},
		"another beside two of one name": {
			[]string{"a", old + "a"}, "c",
			"there is no such NamespaceScope c in namespace ops; there is namespacescope.ibm.com/a, operator.ibm.com/a",
		},
		"another": {[]string{"b", "a"}, "c", "there is no such NamespaceScope c in namespace ops; there is a, b"},
		"none":    {nil, "c", "there is no NamespaceScope in namespace ops"},
		"none of the group": {
			nil, old + "c", "there is no NamespaceScope of namespacescope.ibm.com in namespace ops",
		},
		"one each": {
			[]string{"a", old + "a"}, "a", "there are two NamespaceScopes called a in namespace ops; " +
				"choose one of operator.ibm.com/a and namespacescope.ibm.com/a",
		},
	} {
		wanted, err := grant.ParseWanted(tc.asked)
		if err != nil {
			t.Fatal(err)
		}

		if _, err = grant.Choose(scopes(tc.scopes...), "ops", wanted); err == nil || err.Error() != tc.want {
			t.Errorf("%s: %v, want %s", reason, err, tc.want)
		}
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()

	before := []string{"b", "a", "b"}

	if got, differs := grant.With(before, "c"); !differs || !slices.Equal(got, []string{"b", "a", "b", "c"}) {
		t.Errorf("a member comes last, the order of the others stays: %v", got)
	}

	if got, differs := grant.With(before, "a"); differs || !slices.Equal(got, before) {
		t.Errorf("a member is a member once: %v", got)
	}

	if got, differs := grant.Without(before, "b"); !differs || !slices.Equal(got, []string{"a"}) {
		t.Errorf("a member that was listed twice goes twice: %v", got)
	}

	if got, differs := grant.Without(before, "c"); differs || !slices.Equal(got, before) {
		t.Errorf("who is no member cannot go: %v", got)
	}
}

// TestGrantIsNobodysCopy holds a grant against everything by which the manager knows its own.
func TestGrantIsNobodysCopy(t *testing.T) {
	t.Parallel()

	if grant.FieldManager == scope.FieldManager || grant.ManagedBy == scope.ManagedBy {
		t.Error("the manager would take a grant for its own")
	}

	g := grant.Grant{Namespace: "member", To: "ops", Account: "ambit", Scope: scopes("s")[0].Owner}

	for _, obj := range []metav1.Object{g.Role(), g.RoleBinding()} {
		if obj.GetLabels()[scope.LabelScope] != "" || obj.GetAnnotations()[scope.AnnotationOwner] != "" ||
			obj.GetAnnotations()[scope.AnnotationSource] != "" || obj.GetLabels()[scope.LabelManagedBy] == scope.ManagedBy {
			t.Errorf("%v bears marks of a copy", obj)
		}

		if !grant.IsGrant(obj, "ops") || grant.IsGrant(obj, "other") || grant.IsGrant(&rbacv1.Role{}, "") {
			t.Errorf("%v is a grant to ops and to nobody else", obj)
		}
	}

	names := map[string]struct{}{g.Name(): {}}

	for reason, other := range map[string]grant.Grant{
		"a grant for no scope":                        {To: "ops"},
		"a scope of the older group":                  {To: "ops", Scope: scopes(old + "s")[0].Owner},
		"a scope with a group's name":                 {To: "ops", Scope: scopes("s.namespacescope.ibm.com")[0].Owner},
		"a namespace with a scope's":                  {To: "ops-s"},
		"another scope of another operator namespace": {To: "op", Scope: scopes("s.s")[0].Owner},
	} {
		if _, taken := names[other.Name()]; taken {
			t.Errorf("%s: two grants are called %s", reason, other.Name())
		}

		names[other.Name()] = struct{}{}

		if other.Scope.Name != "" && grant.ScopeOf(other.Role(), "ops") != other.Scope {
			t.Errorf("%s: the grant does not say for which scope it is: %v", reason, other.Role())
		}
	}
}

func TestIsProjectedFor(t *testing.T) {
	t.Parallel()

	both := scopes("s", old+"s")
	mine, twin := both[0].Owner, both[1].Owner

	for name, tc := range map[string]struct {
		reason            string
		label, annotation string
		want              bool
	}{
		"both marks":    {"this is what the manager writes", mine.Hash(), mine.String(), true},
		"label":         {"the label is enough", mine.Hash(), "", true},
		"annotation":    {"so is the annotation", "", mine.String(), true},
		"other label":   {"also where somebody has changed the label", "x", mine.String(), true},
		"none":          {"without a mark it is nobody's", "", "", false},
		"another":       {"another scope's is not this one's", "x", "NamespaceScope/ops/t", false},
		"the twin's":    {"the annotation does not say the group, the label does", twin.Hash(), twin.String(), false},
		"twin's and so": {"whatever the annotation says", twin.Hash(), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			obj := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{
				Labels:      map[string]string{scope.LabelScope: tc.label},
				Annotations: map[string]string{scope.AnnotationOwner: tc.annotation},
			}}
			if got := grant.IsProjectedFor(obj, mine); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}
