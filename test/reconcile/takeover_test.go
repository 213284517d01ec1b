package reconcile_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// legacy makes what IBM's operator projected of a Role into a namespace, after the edits.
func (w *world) legacy(role, short string, edits ...func(*rbacv1.Role, *rbacv1.RoleBinding)) {
	w.Helper()

	r, b := testbed.LegacyCopies(w.ns(ops), role, "op", w.ns(short))
	for _, edit := range edits {
		edit(r, b)
	}

	w.Make(r, b)
}

// inherited shows what there is that bears the mark of IBM's operator: "a: Role", sorted.
func (w *world) inherited() []string {
	w.Helper()

	var (
		roles    rbacv1.RoleList
		bindings rbacv1.RoleBindingList
		out      = []string{}
	)

	for _, list := range []client.ObjectList{&roles, &bindings} {
		if err := w.client.List(w.Context(), list, client.HasLabels{"namespace-scope-configmap"}); err != nil {
			w.Fatal(err)
		}
	}

	note := func(kind string, obj client.Object) {
		if slices.Contains([]string{w.ns("a"), w.ns("b"), w.ns("c")}, obj.GetNamespace()) {
			out = append(out, w.called(obj.GetNamespace()+": "+kind))
		}
	}

	for i := range roles.Items {
		note("Role", &roles.Items[i])
	}

	for i := range bindings.Items {
		note("RoleBinding", &bindings.Items[i])
	}

	slices.Sort(out)

	return out
}

// TestTakeOver: what of the marks of IBM's operator is taken over, in which order, and what is somebody's own and stays.
func TestTakeOver(t *testing.T) {
	t.Parallel()

	role := func(edit func(*rbacv1.Role)) func(*rbacv1.Role, *rbacv1.RoleBinding) {
		return func(r *rbacv1.Role, _ *rbacv1.RoleBinding) { edit(r) }
	}
	binding := func(edit func(*rbacv1.RoleBinding)) func(*rbacv1.Role, *rbacv1.RoleBinding) {
		return func(_ *rbacv1.Role, b *rbacv1.RoleBinding) { edit(b) }
	}
	labelled := func(key, value string) func(*rbacv1.Role, *rbacv1.RoleBinding) {
		return func(r *rbacv1.Role, b *rbacv1.RoleBinding) { r.Labels[key], b.Labels[key] = value, value }
	}
	nothing, all := []string{}, []string{"a: Role", "a: RoleBinding"}

	for name, tc := range map[string]struct {
		given func(w *world)
		// left is what is there still, and says what the condition TakenOver is, which names it.
		left []string
		says string
	}{
		"what it projected into members": {
			given: func(w *world) { w.legacy("op-role", "a"); w.legacy("op-role", "b") }, left: nothing, says: "-",
		},
		"what it projected into a namespace that is no member any more": {
			given: func(w *world) { w.legacy("op-role", "c") }, left: nothing, says: "-",
		},
		"what it projected of a Role that is gone": {
			given: func(w *world) { w.legacy("retired", "a") }, left: nothing, says: "-",
		},
		"what it projected of a Role with a dot in its name": {
			given: func(w *world) {
				w.grant(ops, "op.further", "op", "get secrets")
				w.legacy("op.further", "a")
			}, left: nothing, says: "-",
		},
		"not what is called otherwise": {
			given: func(w *world) {
				w.legacy("op-role", "a", func(r *rbacv1.Role, b *rbacv1.RoleBinding) { r.Name, b.Name, b.RoleRef.Name = "my", "my", "my" })
			},
			left: all, says: "False LeftAlone",
		},
		"not a Role that is called otherwise": {
			given: func(w *world) { w.legacy("op-role", "a", role(func(r *rbacv1.Role) { r.Name = "my-own" })) },
			left:  []string{"a: Role"}, says: "False LeftAlone",
		},
		"not a binding that somebody joined": {
			given: func(w *world) {
				w.legacy("op-role", "a", binding(func(b *rbacv1.RoleBinding) { b.Subjects = append(b.Subjects, toUser("jane")) }))
			},
			left: []string{"a: RoleBinding"}, says: "False LeftAlone",
		},
		"not a binding to somebody else's account": {
			given: func(w *world) {
				w.legacy("op-role", "a", binding(func(b *rbacv1.RoleBinding) { b.Subjects[0].Namespace = w.ns("b") }))
			},
			left: []string{"a: RoleBinding"}, says: "False LeftAlone",
		},
		"not a binding of another Role": {
			given: func(w *world) {
				w.legacy("op-role", "a", binding(func(b *rbacv1.RoleBinding) {
					b.RoleRef = rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"}
				}))
			},
			left: []string{"a: RoleBinding"}, says: "False LeftAlone",
		},
		"not what somebody else manages": {
			given: func(w *world) { w.legacy("op-role", "a", labelled("app.kubernetes.io/managed-by", "jane")) },
			left:  all, says: "False LeftAlone",
		},
		"not what is for another list": {
			given: func(w *world) { w.legacy("op-role", "a", labelled("app.kubernetes.io/name", "another")) },
			left:  all, says: "False LeftAlone",
		},
		"not what is marked for another namespace": {
			given: func(w *world) {
				w.legacy("op-role", "a", labelled("namespace-scope-configmap", "namespace-scope-"+w.ns("b")))
			},
			left: all, says: "-",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.common()
			tc.given(w)

			is(w, "there is something to take over", len(w.inherited()) > 0, true)

			nss := w.scope(both)
			w.settle()
			is(w, "copies", slices.Contains(w.copies("a"), one[1]), true)
			w.rest()

			is(w, "what is left", w.inherited(), tc.left)
			is(w, "TakenOver", w.condition("scope", "TakenOver"), tc.says)
			is(w, "Ready", w.condition("scope", "Ready"), reconciled)
			is(w, "watch list", w.list(), "a,b,ops")

			if c := meta.FindStatusCondition(w.status(nss.Name).Conditions, "TakenOver"); c != nil {
				for _, left := range tc.left {
					w.names("the condition", c.Message, fmt.Sprintf("%s %s/", left[len("a: "):], w.ns("a")))
				}
			}
		})
	}
}

// TestTakeOverWaits: what IBM's operator projected goes from no member before Ambit's own is there.
func TestTakeOverWaits(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.common()
	w.legacy("op-role", "a")
	w.legacy("op-role", "b")
	w.Delegate(w.ns(ops), nil)
	w.grant("a", "in-member", "delegate", append(testbed.InMember(), "get secrets")...)
	w.May(w.ns(ops), "delegate", w.ns("a"), "delete roles")

	w.scope(`{"namespaceMembers":["a>","b>"],"serviceAccountName":"delegate"}`)

	w.settle()
	w.rest()

	const delegate = "system:serviceaccount:ops:delegate: "

	wrote := w.short(w.wroteAs)
	if w.at(wrote, delegate+"delete rolebindings a/op-role-") < w.at(wrote, delegate+"create rolebindings a/") {
		t.Errorf("what was there goes first: %q", wrote)
	}

	is(w, "copies", w.copies("a"), one)
	is(w, "what is there in the end", w.inherited(), []string{"b: Role", "b: RoleBinding"})
	is(w, "copies in the member that is refused", w.copies("b"), []string{})
	is(w, "failed members", w.failed("scope"), []string{"b AuthorizationRequired"})
}

// TestListIsTakenOver: the ConfigMap that IBM's operator wrote goes on, with the owner and the label that it has, and its list is
// put in order.
func TestListIsTakenOver(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.common()

	nss := w.scope(both)
	cm := w.configMap("namespace-scope", map[string]string{"namespaces": w.long("ops>,b>,a>"), "other": "kept"})
	cm.Labels = map[string]string{"managedby-namespace-scope": "true"}
	cm.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "operator.ibm.com/v1", Kind: "NamespaceScope", Name: nss.Name, UID: nss.UID,
	}}
	w.Make(cm)
	w.settle()

	is(w, "ConfigMap", w.data("namespace-scope"), "namespaces=a,b,ops other=kept")

	uid := cm.UID
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm); err != nil {
		t.Fatal(err)
	}

	is(w, "it is the one that it was", cm.UID, uid)
	is(w, "its label", cm.Labels["managedby-namespace-scope"], "true")
	is(w, "its owner", cm.OwnerReferences[0].UID, nss.UID)
}

// TestListOfSomebodyElseRestartsNobody: readers that began with the same members, in whatever order, know them. Those that began
// before that list was written restart once.
func TestListOfSomebodyElseRestartsNobody(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		list    string
		younger bool
		want    []string
	}{
		"the same":                  {"a>,b>,ops>", false, []string{}},
		"in another order":          {"ops>,b>,a>", false, []string{}},
		"of other members":          {"a>,ops>", false, []string{"patch deployments ops/reader"}},
		"younger than who reads it": {"a>,b>,ops>", true, []string{"patch deployments ops/reader"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.common()

			steps := []func(){
				func() { w.Make(w.configMap("namespace-scope", map[string]string{"namespaces": w.long(tc.list)})) },
				func() { w.reads(nil, byVariable) },
			}
			if tc.younger {
				slices.Reverse(steps)
			}

			// The API server counts in seconds: what comes later has to come in another one.
			for _, step := range steps {
				step()

				for second := time.Now().Unix(); time.Now().Unix() == second; {
					time.Sleep(50 * time.Millisecond)
				}
			}

			w.scope(both)

			_, wrote := w.settle()
			is(w, "restarts", restarts(wrote), tc.want)
			is(w, "ConfigMap", w.data("namespace-scope"), "namespaces=a,b,ops")
		})
	}
}
