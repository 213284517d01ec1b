package reconcile_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

const toUsers = "rbac.authorization.k8s.io/aggregate-to-"

// forUsers shows the ClusterRoles of the APIs of a case, by what follows the name of the definition, with Kubernetes' own roles
// of which they are a part: "v1-admin: * things, part of admin".
func (w *world) forUsers() []string {
	w.Helper()

	out := []string{}

	for _, r := range w.userRoles() {
		parts := []string{}

		for key, value := range r.Labels {
			if to, is := strings.CutPrefix(key, toUsers); is && value == "true" {
				parts = append(parts, to)
			}
		}

		slices.Sort(parts)

		_, suffix, _ := strings.Cut(r.Name, ".com-")
		out = append(out, w.called(fmt.Sprintf("%s: %s, part of %s", suffix, words(r.Rules), strings.Join(parts, "+"))))
	}

	slices.Sort(out)

	return out
}

// provided is what there is for an API of a case.
var provided = []string{
	"v1-admin: * things, part of admin",
	"v1-crdview: get customresourcedefinitions/things.g.example.com, part of view",
	"v1-edit: create,update,patch,delete things, part of edit",
	"v1-view: get,list,watch things, part of view",
}

// groupRoles are the ClusterRoles of the group of a namespace, by what it gives: admin, edit or view.
func (w *world) groupRoles(short, name string) map[string]*rbacv1.ClusterRole {
	w.Helper()

	var all rbacv1.ClusterRoleList
	if err := w.client.List(w.Context(), &all); err != nil {
		w.Fatal(err)
	}

	out := map[string]*rbacv1.ClusterRole{}

	for i := range all.Items {
		r := &all.Items[i]
		if r.Annotations["ambit.dev/owner"] != "OperatorGroup/"+w.ns(short)+"/"+name {
			continue
		}

		for _, gives := range []string{"admin", "edit", "view"} {
			if strings.Contains(r.Name, "."+gives+"-") {
				out[gives] = r
			}
		}
	}

	return out
}

// takes shows from which of the case's ClusterRoles one takes its rules.
func (w *world) takes(role *rbacv1.ClusterRole) []string {
	w.Helper()

	out := []string{}

	if role.AggregationRule == nil {
		return out
	}

	for _, of := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&of)
		if err != nil || selector.Empty() {
			w.Fatalf("ClusterRole %s takes what %v selects: %v", role.Name, of, err)
		}

		for _, r := range w.userRoles() {
			if selector.Matches(labels.Set(r.Labels)) {
				out = append(out, w.called(r.Name))
			}
		}
	}

	slices.Sort(out)

	return out
}

func (w *world) things(suffix string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "things." + w.long(apiGroup) + "-v1-" + suffix}}
}

// provides makes a group and an operator that brings things, in a namespace of its own.
func (w *world) provides(kind string) {
	w.Helper()
	w.group("group", `{"targetNamespaces":["ops>"]}`)
	w.csv("*", w.owning("things", kind))
	w.reconcileGroup()
	is(w, "phase", w.phase(), installing)
}

// TestUserRoles: which ClusterRoles people may be given on what an operator brings, and what becomes of them when others change
// them.
func TestUserRoles(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		// given is one of somebody else's.
		given  func(w *world) *rbacv1.ClusterRole
		change func(w *world)
		want   []string
		// told is what the group says.
		told string
	}{
		"admin, edit and view of an API, and view of its definition": {want: provided},
		"rules that somebody adds go": {
			change: func(w *world) {
				r := w.things("view")
				w.Change(r, func() { r.Rules = append(r.Rules, testbed.Rule("* *")) })
			},
			want: provided,
		},
		"rules that somebody takes do not come back, since they may have bound it without": {
			change: func(w *world) { r := w.things("edit"); w.Change(r, func() { r.Rules = nil }) },
			want:   []string{provided[0], provided[1], "v1-edit: , part of edit", provided[3]},
			told:   "lacks rules, and Ambit gives none to a ClusterRole that is there",
		},
		"nor do they where others take their place, and these go": {
			change: func(w *world) {
				r := w.things("edit")
				w.Change(r, func() { r.Rules = []rbacv1.PolicyRule{testbed.Rule("get secrets")} })
			},
			want: []string{provided[0], provided[1], "v1-edit: , part of edit", provided[3]},
			told: "-v1-edit lacks rules",
		},
		"a role that somebody deletes comes back": {change: func(w *world) { w.Remove(w.things("admin")) }, want: provided},
		"a label that gives it to more people goes": {
			change: func(w *world) { r := w.things("admin"); w.Change(r, func() { r.Labels[toUsers+"view"] = "true" }) }, want: provided,
		},
		"a label by which people get it comes back": {
			change: func(w *world) { r := w.things("admin"); w.Change(r, func() { r.Labels = nil }) }, want: provided,
		},
		"rules that it would take from others go": {
			change: func(w *world) {
				r := w.things("view")
				w.Change(r, func() {
					r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{}}}
				})
			},
			want: provided,
		},
		"one of somebody else's stays as it is": {
			given: func(w *world) *rbacv1.ClusterRole {
				r := w.things("edit")
				r.Rules, r.Labels = []rbacv1.PolicyRule{testbed.Rule("get pods")}, map[string]string{"olm.managed": "true"}
				w.Make(r)

				return r
			},
			want: []string{provided[0], provided[1], "v1-edit: get pods, part of ", provided[3]},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.definition("things", "Thing")

			theirs := &rbacv1.ClusterRole{}
			if tc.given != nil {
				theirs = tc.given(w)
			}

			w.provides("Thing")

			if tc.change != nil {
				is(w, "ClusterRoles before", w.forUsers(), provided)
				w.groupAsks(tc.change)
				w.reconcileGroup()
			}

			is(w, "ClusterRoles", w.forUsers(), tc.want)

			if _, message := w.groupCondition("UserRolesProvided"); !strings.Contains(message, tc.told) {
				t.Errorf("the group says %q, want %q", message, tc.told)
			}

			for _, r := range w.userRoles() {
				if r.Name == theirs.Name {
					is(w, "the version of what is theirs", r.ResourceVersion, theirs.ResourceVersion)
				}

				owners := r.OwnerReferences
				if r.AggregationRule != nil || tc.given == nil && (len(owners) != 1 || owners[0].Name != w.definitions[0]) {
					t.Errorf("ClusterRole %s takes rules by %v, and goes with %v", r.Name, r.AggregationRule, owners)
				}
			}
		})
	}
}

// TestUserRolesLeaveWhatIsBeside: what others put on a ClusterRole for themselves stays when it is put right.
func TestUserRolesLeaveWhatIsBeside(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.definition("things", "Thing")
	w.provides("Thing")

	view := w.things("view")
	w.Change(view, func() {
		view.Labels["theirs"], view.Labels["ambit.dev/scope"] = "yes", "0123456789"
		view.Annotations["theirs"] = "yes"
		view.OwnerReferences, view.Rules = nil, append(view.Rules, testbed.Rule("* *"))
	})
	w.reconcileGroup()

	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(view), view); err != nil {
		t.Fatal(err)
	}

	is(w, "ClusterRoles", w.forUsers(), provided)
	is(w, "labels and annotations of others", view.Labels["theirs"]+view.Annotations["theirs"], "yesyes")
	is(w, "the mark of a scope", view.Labels["ambit.dev/scope"], "")
	is(w, "how many owners there are", len(view.OwnerReferences), 1)
}

// TestGroupRoles: the ClusterRoles of a group are there from the moment that the group is, and take their rules from what its
// members bring, and from nothing else.
func TestGroupRoles(t *testing.T) {
	t.Parallel()

	gives := map[string][]string{"admin": {}, "edit": {}, "view": {}}
	things := map[string][]string{
		"admin": {"things.g.example.com-v1-admin"}, "edit": {"things.g.example.com-v1-edit"},
		"view": {"things.g.example.com-v1-crdview", "things.g.example.com-v1-view"},
	}

	for name, tc := range map[string]struct {
		given, change func(w *world)
		want          map[string][]string
		annotation    string
	}{
		"without an operator they give nothing": {want: gives},
		"with an operator that brings an API they give that": {
			given: func(w *world) { w.csv("*", w.owning("things", "Thing")) }, want: things, annotation: "Thing.v1.g.example.com",
		},
		"an operator that comes later brings its API to who is bound already": {
			change: func(w *world) { w.csv("*", w.owning("things", "Thing")) }, want: things, annotation: "Thing.v1.g.example.com",
		},
		"an operator that cannot be a member brings nothing": {
			given: func(w *world) { w.csv("AllNamespaces", w.owning("things", "Thing")) }, want: gives,
		},
		"an operator that goes takes its API with it": {
			given:  func(w *world) { w.csv("*", w.owning("things", "Thing")) },
			change: func(w *world) { w.Remove(w.operatorCSV(podTemplate("op"))) }, want: gives,
		},
		"what somebody has them take goes": {
			given: func(w *world) { w.csv("*", w.owning("things", "Thing")) },
			change: func(w *world) {
				r := w.groupRoles(ops, "group")["view"]
				w.Change(r, func() {
					r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
						{MatchLabels: map[string]string{toUsers + "admin": "true"}},
					}}
				})
			},
			want: things, annotation: "Thing.v1.g.example.com",
		},
		"one that somebody deletes comes back": {
			change: func(w *world) { w.Remove(w.groupRoles(ops, "group")["edit"]) }, want: gives,
		},
		"they go with the group": {
			change: func(w *world) {
				w.Remove(w.groupNamed(ops, "group"))
			},
			want: map[string][]string{},
		},
		"a second group leaves none to either": {
			given:  func(w *world) { w.csv("*", w.owning("things", "Thing")) },
			change: func(w *world) { w.group("another", `{}`) }, want: map[string][]string{}, annotation: "Thing.v1.g.example.com",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.definition("things", "Thing")
			g := w.groupIn(ops, "group", `{"targetNamespaces":["ops>"]}`)

			if tc.given != nil {
				tc.given(w)
			}

			w.reconcileGroup()
			is(w, "how many ClusterRoles there are before", len(w.groupRoles(ops, "group")), 3)

			before := w.groupRoles(ops, "group")

			if tc.change != nil {
				w.groupAsks(tc.change)
				w.reconcileGroup()
			}

			for gives, role := range w.groupRoles(ops, "group") {
				is(w, "what the one is called that people are bound to", role.Name, before[gives].Name)
			}

			got := map[string][]string{}
			for gives, role := range w.groupRoles(ops, "group") {
				got[gives] = w.takes(role)
			}

			is(w, "what they give", got, tc.want)

			err := w.client.Get(t.Context(), client.ObjectKeyFromObject(g), g)
			if client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}

			is(w, "olm.providedAPIs", w.called(g.Annotations["olm.providedAPIs"]), tc.annotation)
		})
	}
}

// TestGroupRolesOfTwo: groups of one name in two namespaces, and of long names that differ in the end, have ClusterRoles of their
// own, so that who is bound to one gets nothing of the other.
func TestGroupRolesOfTwo(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("long-name.", 24)[:239]

	for name, groups := range map[string][2]string{
		"of one name":                               {"group", "group"},
		"of 240 characters, the last differs":       {long + "a", long + "b"},
		"of 240 characters, all of them alike":      {long + "a", long + "a"},
		"of which one's name begins with the other": {"group", "group.admin"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.installsIn("a")
			w.definition("things", "Thing")
			w.groupIn(ops, groups[0], `{"targetNamespaces":["ops>"]}`)
			w.groupIn("a", groups[1], `{"targetNamespaces":["a>"]}`)
			w.csv("*", w.owning("things", "Thing"))
			w.reconcileGroup()
			w.reconcileGroupIn("a")

			ours, theirs := w.groupRoles(ops, groups[0]), w.groupRoles("a", groups[1])
			is(w, "how many ClusterRoles there are", [2]int{len(ours), len(theirs)}, [2]int{3, 3})

			for gives, role := range ours {
				if role.Name == theirs[gives].Name || len(role.Name) > 253 || !strings.HasPrefix(role.Name, "olm.og.") {
					t.Errorf("%s is given by %s, and by %s of the other group", gives, role.Name, theirs[gives].Name)
				}

				is(w, "what "+gives+" of the group that provides takes", len(w.takes(role)) > 0, true)
				is(w, "what "+gives+" of the other group takes", w.takes(theirs[gives]), []string{})
			}
		})
	}
}

// TestUserRolesOfTwoGroups: groups that provide one API, and call its kind by two names, agree on the ClusterRoles of it, and
// each takes its rules from them.
func TestUserRolesOfTwoGroups(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.installsIn("a")
	w.definition("things", "Thing")
	w.provides("Thing")

	w.groupIn("a", "group", `{"targetNamespaces":["a>"]}`)
	w.csvIn("a", "*", w.owning("things", "Thung"))
	w.reconcileGroupIn("a")

	for range 2 {
		is(w, "ClusterRoles", w.forUsers(), provided)

		for _, short := range []string{ops, "a"} {
			roles := w.groupRoles(short, "group")
			is(w, "how many there are of the group in "+short, len(roles), 3)

			for gives, role := range roles {
				is(w, "what "+gives+" of the group in "+short+" takes", len(w.takes(role)) > 0, true)
			}
		}

		// Neither undoes what the other needs.
		is(w, "writes of the first", w.reconcileGroup(), []string(nil))
		is(w, "writes of the second", w.reconcileGroupIn("a"), []string(nil))
	}

	// What somebody changes is put right by one write, and what they put beside it by none.
	admin, view := w.things("admin"), w.things("view")
	w.groupAsks(func(w *world) {
		w.Change(admin, func() { admin.Labels["theirs"] = "yes" })
		w.Change(view, func() { view.Rules[0].Verbs = []string{"*"} })
	})
	is(w, "writes of the first", w.reconcileGroup(), []string{"patch clusterroles things.g.example.com-v1-view"})
	is(w, "writes of the second", w.reconcileGroupIn("a"), []string(nil))
	is(w, "ClusterRoles", w.forUsers(), provided)
}

// TestGroupRolesForged: a ClusterRole that somebody makes where one of a group's is to be stays theirs, whatever it says that it
// is. Who is bound to it holds what they made, and not what the operators bring.
func TestGroupRolesForged(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		manager client.FieldOwner
		rules   []string
	}{
		"with other rules":                  {"somebody", []string{"* *"}},
		"as if Ambit had written it, empty": {"ambit", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.definition("things", "Thing")
			g := w.groupIn(ops, "group", `{"targetNamespaces":["ops>"]}`)
			w.reconcileGroup()

			was := w.groupRoles(ops, "group")["view"]
			w.Remove(g)
			w.reconcileGroup()
			is(w, "how many there are without the group", len(w.groupRoles(ops, "group")), 0)

			forged := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: was.Name}}
			for _, rule := range tc.rules {
				forged.Rules = append(forged.Rules, testbed.Rule(rule))
			}

			if err := w.Client.Create(t.Context(), forged, tc.manager); err != nil {
				t.Fatal(err)
			}

			w.installsIn(ops)
			w.group("group", `{"targetNamespaces":["ops>"]}`)
			w.csv("*", w.owning("things", "Thing"))
			w.reconcileGroup()

			is(w, "how many there are of the group", len(w.groupRoles(ops, "group")), 2)

			if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(forged), forged); err != nil {
				t.Fatal(err)
			}

			is(w, "what is in it", words(forged.Rules), strings.Join(tc.rules, ""))
			is(w, "what it takes", w.takes(forged), []string{})
		})
	}
}

// TestForgedClusterRoleOfAGroup: somebody who may create ClusterRoles and bind them puts the marks of a group's ClusterRole
// on one of their own, as Ambit would write it, before the group gets something to give. Theirs gets nothing of that, and
// goes.
func TestForgedClusterRoleOfAGroup(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.definition("things", "Thing")
	w.group("group", `{"targetNamespaces":["ops>"]}`)
	w.reconcileGroup()

	right := w.groupRoles(ops, "group")["admin"]
	forged := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name: "a-" + right.Name, Labels: right.Labels, Annotations: right.Annotations,
	}}

	w.groupAsks(func(w *world) {
		w.csv("*", w.owning("things", "Thing"))

		if err := w.Client.Create(t.Context(), forged, client.FieldOwner("ambit")); err != nil {
			t.Fatal(err)
		}
	})
	w.reconcileGroup()

	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(forged), forged); err == nil {
		is(w, "what theirs takes", w.takes(forged), []string{})
	}

	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(right), right); err != nil {
		t.Fatal(err)
	}

	is(w, "what the right one takes", w.takes(right), []string{"things.g.example.com-v1-admin"})
}
