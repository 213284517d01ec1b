package namespacescope_test

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestBindingIsProjectedForTheAccountsItNames(t *testing.T) {
	t.Parallel()

	const ops = "HOME" // stands for the operator namespace's name, which differs from run to run

	for name, tc := range map[string]struct {
		reason   string
		subjects []rbacv1.Subject
		want     []string
	}{
		"ServiceAccount": {
			reason:   "the usual form",
			subjects: []rbacv1.Subject{subject(ops, "op")},
			want:     []string{"op"},
		},
		"TwoAccounts": {
			reason:   "each that is projected, and once",
			subjects: []rbacv1.Subject{subject(ops, "other"), subject(ops, "op"), subject(ops, "op")},
			want:     []string{"op", "other"},
		},
		"AccountThatIsNoOperand": {
			reason:   "nobody asked for it to work elsewhere",
			subjects: []rbacv1.Subject{subject(ops, "op"), subject(ops, "bystander")},
			want:     []string{"op"},
		},
		"ForeignAccount": {
			reason:   "an account of the same name in another namespace is another account",
			subjects: []rbacv1.Subject{subject(ops, "op"), subject("default", "op"), subject("default", "other")},
			want:     []string{"op"},
		},
		"User": {
			reason:   "this is what an account is called as a user",
			subjects: []rbacv1.Subject{{Kind: "User", APIGroup: rbacGroup, Name: "system:serviceaccount:" + ops + ":op"}},
			want:     []string{"op"},
		},
		"ForeignUsers": {
			reason: "people and foreign accounts are not projected",
			subjects: []rbacv1.Subject{
				subject(ops, "op"), {Kind: "User", APIGroup: rbacGroup, Name: "op"},
				{Kind: "User", APIGroup: rbacGroup, Name: "system:serviceaccount:default:other"},
			},
			want: []string{"op"},
		},
		"AllAccountsOfTheHome": {
			reason:   "the group names every account there, of which the operands' are projected",
			subjects: []rbacv1.Subject{{Kind: "Group", APIGroup: rbacGroup, Name: "system:serviceaccounts:" + ops}},
			want:     []string{"op", "other"},
		},
		"AllAccounts": {
			reason:   "so does the group of all service accounts",
			subjects: []rbacv1.Subject{{Kind: "Group", APIGroup: rbacGroup, Name: "system:serviceaccounts"}},
			want:     []string{"op", "other"},
		},
		"ForeignGroups": {
			reason: "other groups are not about the operands",
			subjects: []rbacv1.Subject{
				subject(ops, "op"), {Kind: "Group", APIGroup: rbacGroup, Name: "system:serviceaccounts:default"},
				{Kind: "Group", APIGroup: rbacGroup, Name: "system:authenticated"},
				{Kind: "Group", APIGroup: rbacGroup, Name: "developers"},
			},
			want: []string{"op"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			ns, member := w.namespace("home"), w.namespace("member")
			w.create(deployment(ns, "op"), deployment(ns, "other"))
			w.create(serviceAccount(ns, "op"), serviceAccount(ns, "other"), serviceAccount(ns, "bystander"))
			w.create(role(ns, "reader", "get secrets"))

			source := binding(ns, "readers", "Role", "reader")
			for _, s := range tc.subjects {
				s.Name = strings.ReplaceAll(s.Name, ops, ns)
				s.Namespace = strings.ReplaceAll(s.Namespace, ops, ns)
				source.Subjects = append(source.Subjects, s)
			}

			w.create(source)
			w.ready(w.scope(ns, "scope", members(member)))

			var want []rbacv1.Subject
			for _, account := range tc.want {
				want = append(want, subject(ns, account))
				w.may(ns, account, member, "get secrets")
			}

			w.equal(tc.reason, w.projectedBinding(ns, "readers", member).Subjects, want)

			for _, r := range []right{
				on(ns, "bystander", member, "get secrets"), on("default", "op", member, "get secrets"),
				on("default", "other", member, "get secrets"),
			} {
				if w.allowed(r) {
					t.Errorf("%s: allowed: %s", tc.reason, r)
				}
			}
		})
	}
}

func TestRulesAreExactlyThoseOfTheSource(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	w.operator(ops, "op")
	w.grant(ops, "op", "some", "get secrets", "get,update configmaps/one", "list deployments", "* services")
	w.grant(ops, "op", "everything", "get *")
	w.grant(ops, "op", "nothing")

	w.ready(w.scope(ops, "scope", members(member)))

	for _, name := range []string{"some", "everything", "nothing"} {
		source := role(ops, name)
		w.mustGet(source)
		w.equal("the rules of "+name, w.projectedRole(ops, name, member).Rules, source.Rules)
	}

	w.may(ops, "op", member, "update configmaps/one")
	w.may(ops, "op", member, "deletecollection services")

	for _, words := range []string{"update configmaps/two", "update configmaps", "delete deployments", "create pods"} {
		if r := on(ops, "op", member, words); w.allowed(r) {
			t.Errorf("the projection is wider than its source: allowed: %s", r)
		}
	}
}

func TestClusterRoleIsReferredToAndNotCopied(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	w.create(serviceAccount(ops, "op"), deployment(ops, "op"))
	w.create(binding(ops, "viewers", "ClusterRole", "view", subject(ops, "op")))

	w.ready(w.scope(ops, "scope", members(member)))

	w.may(ops, "op", member, "list pods")
	w.equal("roleRef", w.projectedBinding(ops, "viewers", member).RoleRef,
		rbacv1.RoleRef{APIGroup: rbacGroup, Kind: "ClusterRole", Name: "view"})

	if roles, _ := w.projections(member); len(roles) > 0 {
		t.Errorf("a ClusterRole was copied: %v", roles)
	}
}

func TestBindingToAMissingRoleIsPickedUpWithTheRole(t *testing.T) {
	t.Parallel()

	for kind, reason := range map[string]string{
		"Role":        "the role may be installed after the binding",
		"ClusterRole": "so may a ClusterRole",
	} {
		t.Run(kind, func(t *testing.T) {
			w := begin(t)
			if kind == "ClusterRole" {
				w.needs(readsEverything, "it may not look whether a ClusterRole exists")
			}

			ops, member := w.namespace("home"), w.namespace("member")
			name := "late-" + rand.String(6)
			w.operator(ops, "op")
			w.create(binding(ops, "dangling", kind, name, subject(ops, "op")))

			nss := w.scope(ops, "scope", members(member))

			c := w.reports(nss, "RolesFound", metav1.ConditionFalse, "Missing")
			if !strings.Contains(c.Message, name) || !strings.Contains(c.Message, "dangling") {
				t.Errorf("the message names neither role nor binding: %s", c.Message)
			}

			// It holds up nothing.
			w.ready(nss)
			w.lists(ops, defaultList, ops, member)
			w.may(ops, "op", member, "get secrets")

			var late client.Object = role(ops, name, "get pods")
			if kind == "ClusterRole" {
				late = &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: role(ops, name, "get pods").Rules}
				t.Cleanup(func() { w.discard(late) })
			}

			w.create(late)
			w.may(ops, "op", member, "get pods")
			w.reports(nss, "RolesFound", metav1.ConditionTrue, "AllFound")

			w.delete(late)
			w.eventually(reason, func() error {
				_, bindings := w.projections(member)
				if len(bindings) != 1 {
					return fmt.Errorf("%d bindings", len(bindings))
				}

				return nil
			})
			w.reports(nss, "RolesFound", metav1.ConditionFalse, "Missing")
		})
	}
}

func TestSourcesMayComeInAnyOrder(t *testing.T) {
	t.Parallel()

	for _, order := range []string{"nsarbd", "dbrasn", "nsdrab", "adnrsb", "sbnrda", "rbnads"} {
		t.Run(order, func(t *testing.T) {
			w := begin(t)
			ops, member := w.namespace("home"), names(1, "member")[0]

			steps := map[rune]func(){
				'n': func() { w.namespaceCalled(member) },
				's': func() { w.scope(ops, "scope", members(member)) },
				'a': func() { w.create(serviceAccount(ops, "op")) },
				'r': func() { w.create(role(ops, "reader", "get secrets")) },
				'b': func() { w.create(binding(ops, "readers", "Role", "reader", subject(ops, "op"))) },
				'd': func() { w.create(deployment(ops, "op")) },
			}
			for _, step := range order {
				steps[step]()
			}

			w.lists(ops, defaultList, ops, member)
			w.may(ops, "op", member, "get secrets")
		})
	}
}

func TestWhatGoesAtTheSourceGoesInEveryMember(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		remove func(w *world, ops string)
	}{
		"Role":    {"a role that is deleted", func(w *world, ops string) { w.delete(role(ops, "secrets")) }},
		"Binding": {"a binding that is deleted", func(w *world, ops string) { w.delete(binding(ops, "secrets", "", "")) }},
		"Account": {"an account that is deleted", func(w *world, ops string) { w.delete(serviceAccount(ops, "op")) }},
		"Workload": {"the last workload of an account", func(w *world, ops string) {
			w.delete(deployment(ops, "op"))
		}},
		"Label": {"a pod template that is no operand any more", func(w *world, ops string) {
			d := deployment(ops, "op")
			w.change(d, func() { delete(d.Spec.Template.Labels, "intent") })
		}},
		"Rule": {"a rule that is taken out of a role", func(w *world, ops string) {
			r := role(ops, "secrets")
			w.change(r, func() { r.Rules = r.Rules[1:] })
		}},
		"Subject": {"an account that is taken out of a binding", func(w *world, ops string) {
			b := binding(ops, "secrets", "", "")
			w.change(b, func() { b.Subjects = []rbacv1.Subject{subject(ops, "another")} })
		}},
		"OtherAccount": {"another account in the place of the first", func(w *world, ops string) {
			d := deployment(ops, "op")
			w.change(d, func() { d.Spec.Template.Spec.ServiceAccountName = "another" })
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			ops, a, b := w.namespace("home"), w.namespace("a"), w.namespace("b")
			w.operator(ops, "op")
			w.create(serviceAccount(ops, "another"))
			r := role(ops, "secrets")
			w.change(r, func() { r.Rules = append(r.Rules, rule("get pods")) })
			w.ready(w.scope(ops, "scope", members(a, b)))
			w.may(ops, "op", a, "get secrets")
			w.may(ops, "op", b, "get secrets")

			tc.remove(w, ops)

			for _, member := range []string{a, b} {
				w.mayNot(ops, "op", member, "get secrets")
			}

			// The list says where operators work, not what they may do.
			w.lists(ops, defaultList, ops, a, b)
		})
	}
}

func TestProjectedRBACIsNeverASource(t *testing.T) {
	w := begin(t)
	first, second, last := w.namespace("home"), w.namespace("home"), w.namespace("last")
	w.letIn(second)
	w.operator(first, "op")
	w.operator(second, "op")
	w.ready(w.scope(first, "scope", members(second)))
	w.may(first, "op", second, "get secrets")

	// The second namespace's operator is bound to the role that was projected there.
	copied := w.projectedRole(first, "secrets", second)
	w.create(binding(second, "borrowed", "Role", copied.Name, subject(second, "op")))

	nss := w.scope(second, "scope", members(last))

	w.ready(nss)
	w.may(second, "op", last, "get secrets")
	w.reports(nss, "RolesFound", metav1.ConditionFalse, "Missing")

	roles, bindings := w.projections(last)
	w.equal("copies", [2]int{len(roles), len(bindings)}, [2]int{1, 1})

	for _, obj := range append(pointers(roles), pointers(bindings)...) {
		if source := obj.GetAnnotations()["ambit.dev/source"]; !strings.HasSuffix(source, "/"+second+"/secrets") {
			t.Errorf("%s was projected from %s", obj.GetName(), source)
		}
	}

	w.mayNot(first, "op", last, "get secrets")
}

func pointers[T any, P interface {
	*T
	client.Object
}](items []T) []client.Object {
	var out []client.Object

	for i := range items {
		out = append(out, P(&items[i]))
	}

	return out
}

func TestProjectionsSayWhereTheyCameFrom(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	w.operator(ops, "op")

	long := strings.Repeat("long.", 20) + "name"
	w.grant(ops, "op", long, "get pods")
	w.grant(ops, "op", "system:with:colons", "get services")
	w.ready(w.scope(ops, "scope", members(member)))
	w.may(ops, "op", member, "get pods")
	w.may(ops, "op", member, "get services")

	hash := w.projectedRole(ops, long, member).Labels[scopeLabel]

	roles, bindings := w.projections(member)
	for _, obj := range append(pointers(roles), pointers(bindings)...) {
		w.equal("labels", obj.GetLabels(), map[string]string{"app.kubernetes.io/managed-by": "ambit", scopeLabel: hash})
		w.equal("owner", obj.GetAnnotations()["ambit.dev/owner"], "NamespaceScope/"+ops+"/scope")

		source := obj.GetAnnotations()["ambit.dev/source"]
		stem := obj.GetName()[:len(obj.GetName())-17]

		if name := source[strings.LastIndex(source, "/")+1:]; !strings.HasPrefix(name, stem) {
			t.Errorf("%s is not named after its source %s", obj.GetName(), source)
		}

		if len(obj.GetName()) > 63 {
			t.Errorf("%s is longer than 63 characters", obj.GetName())
		}
	}

	w.equal("copies", [2]int{len(roles), len(bindings)}, [2]int{3, 3})
}

func TestTwoScopesOfAOperatorNamespaceProjectSideBySide(t *testing.T) {
	w := begin(t)
	ops, member := w.namespace("home"), w.namespace("member")
	w.operator(ops, "op")
	one, two := w.scope(ops, "one", members(member)), w.scope(ops, "two", members(member))
	w.ready(one)
	w.ready(two)

	w.delete(one)
	w.gone(one)

	if err := w.checkAllowed(on(ops, "op", member, "get secrets")); err != nil {
		t.Errorf("one scope took what the other projects: %v", err)
	}

	w.lists(ops, defaultList, ops, member)
}
