package installs_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/testbed"
)

const userRolesProvided = "UserRolesProvided"

var errRules = errors.New("its rules are others")

// allows waits until a ClusterRole has one rule with these verbs.
func (w *world) allows(role *rbacv1.ClusterRole, verbs ...string) {
	w.Helper()
	w.Eventually(role.Name+" allows "+strings.Join(verbs, ","), func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(role), role); err != nil {
			return err
		}

		if len(role.Rules) != 1 || !slices.Equal(role.Rules[0].Verbs, verbs) {
			return fmt.Errorf("%w: %+v", errRules, role.Rules)
		}

		return nil
	})
}

func named(name string) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// TestPeopleOfTwoGroups: two groups that provide one API, and call its kind by two names, agree on the ClusterRoles for people.
// What somebody changes is put back by one write, what they put beside stays, and what somebody else made is not touched.
func TestPeopleOfTwoGroups(t *testing.T) {
	w := begin(t, "cluster")
	crd := w.definition("twins", "Twin")
	theirs := named(crd + "-v1-edit")
	theirs.Rules, theirs.Labels = []rbacv1.PolicyRule{testbed.Rule("get pods")}, map[string]string{"olm.managed": "true"}
	w.Make(theirs)

	opsNamespaces := []string{w.Namespace("one"), w.Namespace("two")}
	for i, ops := range opsNamespaces {
		w.group(ops, targets(ops))
		op := csv(ops, "op.v1", owning(crd, []string{"Twin", "Twain"}[i]))
		w.Make(op)
		w.succeeds(op)
	}

	admin, view := named(crd+"-v1-admin"), named(crd+"-v1-view")
	w.Eventually("both groups take their rules from it", func() error {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(admin), admin); err != nil {
			return err
		}

		if n := len(admin.Labels); n != 4 {
			return fmt.Errorf("the labels are %v", admin.Labels)
		}

		return nil
	})
	labels := maps.Clone(admin.Labels)

	w.plansAgain(opsNamespaces...)

	began := time.Now()
	w.Change(admin, func() { admin.Labels["theirs"] = "yes" })
	w.Change(view, func() {
		view.Rules[0].Verbs = []string{"*"}
		view.OwnerReferences = nil
		view.Labels["theirs"] = "yes"
		view.Labels["rbac.authorization.k8s.io/aggregate-to-edit"] = "true"
		view.Annotations = map[string]string{"theirs": "yes"}
	})
	w.allows(view, "get", "list", "watch")
	w.plansAgain(opsNamespaces...)

	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(admin), admin); err != nil {
		t.Fatal(err)
	}

	labels["theirs"] = "yes"
	if !maps.Equal(admin.Labels, labels) {
		t.Errorf("the labels are %v, want %v", admin.Labels, labels)
	}

	if len(view.OwnerReferences) != 1 || view.Labels["theirs"] != "yes" || view.Annotations["theirs"] != "yes" ||
		view.Labels["rbac.authorization.k8s.io/aggregate-to-edit"] != "" {
		t.Errorf("it is %+v", view.ObjectMeta)
	}

	asked := func(r *testbed.Request) bool {
		return strings.HasPrefix(r.Object.Name, crd) && (isWrite(r.Verb) || r.Verb == "get")
	}

	// Each namespace was planned for each of the two changes, and once more, maybe before it had heard of what another one wrote.
	writes := w.Count(began, asked)
	if writes["get clusterroles"] > 0 || writes["patch clusterroles"] > 3*len(opsNamespaces) || len(writes) > 1 {
		t.Errorf("asked for: %v", writes)
	}

	settled := time.Now()
	w.plansAgain(opsNamespaces...)

	if again := w.Count(settled, asked); len(again) > 0 {
		t.Errorf("once all is right, asked for: %v", again)
	}

	before := theirs.ResourceVersion
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs); err != nil || theirs.ResourceVersion != before {
		t.Errorf("somebody else's was written: %+v (%v)", theirs, err)
	}
}

// plansAgain has each namespace planned anew, and waits until that was done: a Deployment is spoilt, and comes back.
func (w *world) plansAgain(namespaces ...string) {
	w.Helper()

	for _, namespace := range namespaces {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "op"}}
		w.Change(d, func() { d.Labels = nil })
		w.Eventually("the Deployment in "+namespace+" is put back", func() error {
			if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(d), d); err != nil {
				return err
			}

			return has(d.Labels, map[string]string{"olm.owner": "op.v1"})
		})
	}
}

// TestPeopleByAnAccount: the account of a group that may make the ClusterRoles of an API makes them, though it may not make those
// of the group; what it may not put right is told, and put right once it may.
func TestPeopleByAnAccount(t *testing.T) {
	for _, profile := range profiles {
		t.Run(profile, func(t *testing.T) {
			w := begin(t, profile)
			crd := w.definition("modests", "Modest")
			plural, group, _ := strings.Cut(crd, ".")
			own := w.Namespace("own")
			g := w.scoped(own, own)
			w.grant(own, own, "own", append(fineGrained, testbed.Rule("get,list secrets"))...)

			op := csv(own, "op.v1", owning(crd, "Modest"))
			w.Make(op)
			w.succeeds(op)
			w.complains(g, userRolesProvided, metav1.ConditionFalse, "create clusterroles")

			w.give(own, "people-"+own, authority.Place{
				Rules: []rbacv1.PolicyRule{testbed.Rule("create clusterroles")},
				Handed: []rbacv1.PolicyRule{
					{APIGroups: []string{group}, Resources: []string{plural}, Verbs: []string{"*"}},
					{
						APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"},
						ResourceNames: []string{crd}, Verbs: []string{"get"},
					},
				},
			})

			edit := named(crd + "-v1-edit")
			w.allows(edit, "create", "update", "patch", "delete")
			w.allows(named(crd+"-v1-crdview"), "get")

			w.Change(edit, func() { edit.Rules[0].Verbs = []string{"get"} })
			w.complains(g, userRolesProvided, metav1.ConditionFalse, "patch clusterroles")
			w.allows(edit, "get")
			w.succeeds(op)

			w.give(own, "right-"+own, authority.Place{Rules: []rbacv1.PolicyRule{testbed.Rule("patch clusterroles")}})
			w.allows(edit, "create", "update", "patch", "delete")

			// Those of the group are refused still, and that alone is told.
			w.Eventually("what is right is not told of any more", func() error {
				if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(g), g); err != nil {
					return err
				}

				c := meta.FindStatusCondition(g.Status.Conditions, userRolesProvided)
				if c == nil || strings.Contains(c.Message, "patch") || !strings.Contains(c.Message, "*") {
					return fmt.Errorf("it says %+v", c)
				}

				return nil
			})
			w.writtenAs(own, "system:serviceaccount:"+own+":scoped")
		})
	}
}

// TestPeopleAreBoundBeforeTheFirstOperator: the ClusterRoles of a group are there as soon as the group is, also of groups of one
// name in different namespaces, and of names of 240 characters that differ in the last. Who is bound to one then may use what the
// first operator brings, where they are bound, and nobody else may.
func TestPeopleAreBoundBeforeTheFirstOperator(t *testing.T) {
	w := begin(t, "cluster")
	long := strings.Repeat("long-name.", 24)[:239]
	names := map[string]string{
		w.Namespace("one"): "same", w.Namespace("two"): "same", w.Namespace("three"): long + "a", w.Namespace("four"): long + "b",
	}
	edits := map[string]string{}

	for own, name := range names {
		g := &operatorsv1.OperatorGroup{Spec: targets(own)}
		g.Namespace, g.Name = own, name
		w.Make(g)
	}

	w.Eventually("each group has three roles of its own", func() error {
		var roles rbacv1.ClusterRoleList
		if err := w.Client.List(t.Context(), &roles); err != nil {
			return err
		}

		found := 0

		for i := range roles.Items {
			role := &roles.Items[i]
			_, owner, _ := strings.Cut(role.Annotations["ambit.dev/owner"], "/")
			own, name, _ := strings.Cut(owner, "/")

			if name == "" || names[own] != name || len(role.Rules) > 0 || !strings.HasPrefix(role.Name, "olm.og."+name[:4]) {
				continue
			}

			if found++; strings.Contains(role.Name, ".edit-") {
				edits[own] = role.Name
			}
		}

		if found != 3*len(names) || len(edits) != len(names) {
			return fmt.Errorf("there are %d, and to edit with %v", found, edits)
		}

		return nil
	})

	crd := w.definition("firsts", "First")
	_, group, _ := strings.Cut(crd, ".")

	var first string

	for own := range names {
		w.Make(testbed.Bind(own, "ClusterRole", edits[own], own, "person"))

		if names[own] == long+"a" {
			first = own
		}
	}

	op := csv(first, "op.v1", owning(crd, "First"))
	w.Make(op)
	w.succeeds(op)
	w.Eventually("who was bound before may use the API", func() error {
		if !w.AllowedIn(first, "person", first, "create", group, "firsts") {
			return errNot
		}

		return nil
	})

	for own := range names {
		if own != first && w.AllowedIn(own, "person", own, "create", group, "firsts") {
			t.Errorf("who is bound to the role of another group may use the API in %s", own)
		}
	}
}
