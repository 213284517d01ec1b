package install

import (
	"crypto/sha256"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/scope"
)

var base62 = regexp.MustCompile(`^[0-9a-zA-Z]{30,38}$`)

// TestGroupRoleName holds that the name is as OLM gives it, whatever the group is called: it fits, and no two groups share one.
func TestGroupRoleName(t *testing.T) {
	t.Parallel()

	name := rapid.StringMatching(`[a-z]([-.a-z0-9]{0,251}[a-z0-9])?`)

	rapid.Check(t, func(t *rapid.T) {
		g := &Group{Namespace: rapid.StringMatching(`[a-z]{1,63}`).Draw(t, "namespace"), Name: name.Draw(t, "name")}
		suffix := rapid.SampledFrom([]string{"admin", "edit", "view"}).Draw(t, "suffix")
		got := groupRoleName(g, suffix)

		if len(got) > maxName || len(content.IsPathSegmentName(got)) > 0 {
			t.Fatalf("%q is no name for a ClusterRole", got)
		}

		if again := groupRoleName(&Group{Namespace: g.Namespace, Name: g.Name, UID: "other"}, suffix); again != got {
			t.Fatalf("%q and %q for the same group", got, again)
		}

		head, hash, _ := cutLast(got, "-")
		if !base62.MatchString(hash) || !strings.HasPrefix(head, "olm.og.") || !strings.HasSuffix(head, "."+suffix) {
			t.Fatalf("%q is not of OLM's form", got)
		}

		sum := sha256.Sum224([]byte(g.Namespace + "/" + g.Name + "/" + suffix))
		if n, ok := new(big.Int).SetString(hash, 62); !ok || n.Cmp(new(big.Int).SetBytes(sum[:])) != 0 {
			t.Fatalf("%q does not end with the hash of namespace, name and suffix", got)
		}

		other := &Group{Namespace: g.Namespace, Name: name.Draw(t, "other")}
		if other.Name != g.Name && groupRoleName(other, suffix) == got {
			t.Fatalf("%q for the groups %s and %s", got, g.Name, other.Name)
		}
	})

	long := strings.Repeat("g", maxName-1)
	if a, b := groupRoleName(&Group{Name: long + "a"}, "view"), groupRoleName(&Group{Name: long + "b"}, "view"); a == b {
		t.Error("names that differ in the last letter share a ClusterRole")
	}
}

func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}

	return s[:i], s[i+len(separator):], true
}

func TestGroupRoles(t *testing.T) {
	t.Parallel()

	g, _ := one("a")
	before, roles := GroupRoles(g, nil), GroupRoles(g, []string{"Widget.v1.example.com", "Gadget.v1.example.com"})
	if len(roles) != 3 || len(before) != 3 {
		t.Fatalf("%d roles, and %d before the first API", len(roles), len(before))
	}

	for i, r := range before {
		if r.Name != roles[i].Name || len(r.Rules) > 0 || len(r.Aggregates) > 0 {
			t.Errorf("before the first API, %s is %+v", roles[i].Name, r)
		}
	}

	for _, r := range roles {
		if len(r.Rules) > 0 || len(r.Aggregates) != 2 || !slices.IsSorted(r.Aggregates) {
			t.Errorf("%s: rules %v, aggregates %q", r.Name, r.Rules, r.Aggregates)
		}

		for _, label := range r.Aggregates {
			if problems := validation.IsQualifiedName(label); len(problems) > 0 {
				t.Errorf("label %s: %q", label, problems)
			}
		}
	}
}

// TestAPIRoles holds that the ClusterRoles of a group find those of its APIs, for each suffix, and nothing is given for a
// definition that does not exist.
func TestAPIRoles(t *testing.T) {
	t.Parallel()

	csv := member("op.v1", func(c *olm.ClusterServiceVersion) {
		c.Spec.CustomResourceDefinitions.Owned = append(c.Spec.CustomResourceDefinitions.Owned,
			olm.CRDDescription{Name: "absents.example.com", Version: "v1", Kind: "Absent"})
	})
	w := snapshotOf([]string{"a"}, csv)
	roles := w.APIRoles(csv)
	got := make([]string, 0, len(roles))

	for _, r := range roles {
		got = append(got, r.Name+" "+strings.Join(r.Rules[0].Verbs, ","))

		if len(r.OwnerReferences) != 1 || r.OwnerReferences[0].UID != "uid-widgets" {
			t.Errorf("%s is owned by %v", r.Name, r.OwnerReferences)
		}

		for label := range r.Labels {
			if problems := validation.IsQualifiedName(label); len(problems) > 0 {
				t.Errorf("label %s: %q", label, problems)
			}
		}
	}

	want := []string{
		"widgets.example.com-v1-admin *", "widgets.example.com-v1-crdview get",
		"widgets.example.com-v1-edit create,update,patch,delete", "widgets.example.com-v1-view get,list,watch",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}

	for _, group := range GroupRoles(w.Group.Group, Provided(csv)) {
		found := 0

		for _, r := range roles {
			for _, label := range group.Aggregates {
				if r.Labels[label] == "true" {
					found++
				}
			}
		}

		want := 1
		if strings.Contains(group.Name, ".view-") {
			want = 2 // That of the definition itself is for those who view, too.
		}

		if found != want {
			t.Errorf("%s takes from %d ClusterRoles, want %d", group.Name, found, want)
		}
	}
}

func TestProvided(t *testing.T) {
	t.Parallel()

	csv := member("op.v1", func(c *olm.ClusterServiceVersion) {
		owned := &c.Spec.CustomResourceDefinitions.Owned
		*owned = append(*owned, (*owned)[0])
		c.Spec.APIServiceDefinitions.Owned = []olm.APIServiceDescription{{Group: "api.example.com", Version: "v1", Kind: "Thing"}}
	})
	if got := Provided(csv); !slices.Equal(got, []string{"Thing.v1.api.example.com", "Widget.v1.example.com"}) {
		t.Errorf("provided are %q", got)
	}
}

// TestCorrected holds that what somebody changes of a ClusterRole for people is put right, that what they put beside stays, and
// that it is right after that.
func TestCorrected(t *testing.T) {
	t.Parallel()

	csv := member("op.v1")
	w := snapshotOf([]string{"a"}, csv)
	other := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}}

	for reason, change := range map[string]func(*rbacv1.ClusterRole){
		"a rule more": func(r *rbacv1.ClusterRole) { r.Rules = append(r.Rules, other) },
		"rules of others": func(r *rbacv1.ClusterRole) {
			r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}
		},
		"no labels":        func(r *rbacv1.ClusterRole) { r.Labels = nil },
		"another value":    func(r *rbacv1.ClusterRole) { r.Labels[labelToUsers+"admin"] = "false" },
		"for more people":  func(r *rbacv1.ClusterRole) { r.Labels[labelToUsers+"view"] = "true" },
		"for more members": func(r *rbacv1.ClusterRole) { r.Labels[labelToGroups+"1-view"] = "true" },
		"a scope's label":  func(r *rbacv1.ClusterRole) { r.Labels[scope.LabelScope] = "x" },
		"a scope's owner": func(r *rbacv1.ClusterRole) {
			r.Annotations = map[string]string{scope.AnnotationOwner: "x", scope.AnnotationSource: "x"}
		},
		"no owner":      func(r *rbacv1.ClusterRole) { r.OwnerReferences = nil },
		"another owner": func(r *rbacv1.ClusterRole) { r.OwnerReferences[0].UID = "other" },
		"an owner more": func(r *rbacv1.ClusterRole) {
			r.OwnerReferences = append(r.OwnerReferences, metav1.OwnerReference{UID: "other"})
		},
		"everything": func(r *rbacv1.ClusterRole) {
			*r = rbacv1.ClusterRole{
				TypeMeta: r.TypeMeta, ObjectMeta: metav1.ObjectMeta{Name: r.Name}, Rules: append(r.Rules, other),
			}
		},
	} {
		want := w.APIRoles(csv)[0] // That for admins.
		live := want.DeepCopy()
		change(live)

		fixed := Corrected(live, want)
		if fixed == nil || !equality.Semantic.DeepEqual(fixed, want) {
			t.Errorf("%s: corrected to %+v, want %+v", reason, fixed, want)

			continue
		}

		if again := Corrected(fixed, want); again != nil {
			t.Errorf("%s: corrected again, to %+v", reason, again)
		}
	}
}

// TestCorrectedGivesNothing holds that a ClusterRole for people that lost rules gets none: somebody may have bound it
// without them. What it has beyond those that it should have goes all the same.
func TestCorrectedGivesNothing(t *testing.T) {
	t.Parallel()

	w := snapshotOf([]string{"a"}, member("op.v1"))
	want := w.APIRoles(member("op.v1"))[2] // That for those who edit.
	rule := func(verbs ...string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: want.Rules[0].APIGroups, Resources: want.Rules[0].Resources, Verbs: verbs}}
	}

	secrets := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"}}}

	for reason, tc := range map[string]struct{ live, kept []rbacv1.PolicyRule }{
		"none":                 {nil, []rbacv1.PolicyRule{}},
		"one of its verbs":     {rule("patch"), rule("patch")},
		"another verb":         {rule("get"), []rbacv1.PolicyRule{}},
		"some and another":     {rule("get", "delete"), rule("delete")},
		"another resource":     {secrets, []rbacv1.PolicyRule{}},
		"all, in two rules":    {append(rule("create", "update"), rule("patch", "delete")...), want.Rules},
		"more than all of its": {rule("*"), want.Rules},
	} {
		live := want.DeepCopy()
		live.Rules = tc.live

		fixed := Corrected(live, want)
		if fixed == nil {
			fixed = live
		}

		if !equality.Semantic.DeepEqual(fixed.Rules, tc.kept) || Corrected(fixed, want) != nil {
			t.Errorf("%s: it has %v, want %v, and then %v", reason, fixed.Rules, tc.kept, Corrected(fixed, want))
		}

		if HasShrunk(live, want) != !equality.Semantic.DeepEqual(tc.kept, want.Rules) {
			t.Errorf("%s: that it lost rules is said wrongly", reason)
		}
	}
}

// TestCorrectedLeavesAlone holds that nothing is written for what others put beside, nor for a name of the kind that another
// ClusterServiceVersion has for the same API: the two would correct each other for ever.
func TestCorrectedLeavesAlone(t *testing.T) {
	t.Parallel()

	csv := member("op.v1")
	w := snapshotOf([]string{"a"}, csv)

	twin := csv.DeepCopy()
	twin.Spec.CustomResourceDefinitions.Owned[0].Kind = "Wodget"

	roles := w.APIRoles(csv)
	if len(roles) == 0 {
		t.Fatal("there is no role to correct")
	}

	for i, want := range roles {
		live := want.DeepCopy()
		live.Labels["theirs"], live.Labels[labelToUsers+"auditors"] = "yes", "true"
		live.Annotations = map[string]string{"theirs": "yes"}
		live.OwnerReferences[0].BlockOwnerDeletion = new(bool)

		if got := Corrected(live, want); got != nil {
			t.Errorf("%s: corrected to %+v", want.Name, got)
		}

		theirs := w.APIRoles(twin)[i]

		both := Corrected(live, theirs)
		if both == nil || Corrected(both, want) != nil || Corrected(both, theirs) != nil || both.Labels["theirs"] != "yes" {
			t.Errorf("%s: for two it is %+v", want.Name, both)
		}
	}
}

// TestAPIRolesOfADefinitionThatGoes: what goes with a definition is not made again while that is on its way out.
func TestAPIRolesOfADefinitionThatGoes(t *testing.T) {
	t.Parallel()

	csv := member("op.v1")
	w := snapshotOf([]string{"a"}, csv)

	for name, crd := range w.CRDs {
		crd.Served = nil
		w.CRDs[name] = crd
	}

	if got := w.APIRoles(csv); len(got) > 0 {
		t.Errorf("made are %v", got)
	}
}

// TestAPIRolesOfDeclarations: the roles of Kubernetes only look at what Ambit acts for, whatever a ClusterServiceVersion says
// that it owns.
func TestAPIRolesOfDeclarations(t *testing.T) {
	t.Parallel()

	csv := member("op.v1")
	w := snapshotOf([]string{"a"}, csv)

	for _, name := range []string{
		"namespacescopes.operator.ibm.com", "namespacescopes.namespacescope.ibm.com", "operatorgroups.operators.coreos.com",
	} {
		csv.Spec.CustomResourceDefinitions.Owned = []olm.CRDDescription{{Name: name, Version: "v1", Kind: "Kind"}}
		w.CRDs[name] = CRD{UID: "u", Served: []string{"v1"}}

		if got := w.APIRoles(csv); len(got) > 0 {
			t.Errorf("made are %v", got)
		}
	}
}
