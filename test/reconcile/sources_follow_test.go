package reconcile_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// runner is what a member holds beside an operator called runner.
var runner = with("Role further: list pods", "further: Role further to ops/runner")

// runs makes a workload of a kind, with an account that is granted something.
func (w *world) runs(kind string) {
	w.Helper()
	w.Make(w.account("runner"), w.workload(kind, "runner"))
	w.further(w.account("runner"))
}

// role is that of the operator of most cases, and opBinding what binds it.
func (w *world) role() *rbacv1.Role { return testbed.Role(w.ns(ops), "op-role") }

func (w *world) opBinding() *rbacv1.RoleBinding {
	return w.binding(ops, "op-role", "Role", "op-role", w.account("op"))
}

// operatorDeployment is the Deployment of the operator of most cases.
func (w *world) operatorDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "op"}}
}

// follow is a case in which something changes at the source.
type follow struct {
	// given is what there is before beside the operator, and before what is copied then; by default what the operator has.
	given  func(w *world)
	spec   string
	before []string

	change func(w *world)
	want   []string
	// accounts and roles are conditions afterwards, where the case is about them.
	accounts, roles string
}

func (f *follow) run(t *testing.T) {
	t.Helper()
	t.Parallel()

	w := begin(t)
	w.common()

	if f.given != nil {
		f.given(w)
	}

	if f.spec == "" {
		f.spec = `{"namespaceMembers":["a>","b>"]}`
	}

	if f.before == nil {
		f.before = one
	}

	w.scope(f.spec)
	w.settle()
	is(w, "copies before", w.copies("a"), f.before)

	w.asks(f.change)
	w.rest()

	for _, member := range []string{"a", "b"} {
		is(w, "copies after in "+member, w.copies(member), f.want)
		w.mirrors(member)
	}

	// The list says where operators work, not what they may do.
	w.sees(seen{list: "a,b,ops", ready: reconciled, failed: []string{}})
	w.finds(f.accounts, f.roles)
}

// TestRolesFollow: what changes of Roles and bindings changes in every member with the next call, for which the change asks.
func TestRolesFollow(t *testing.T) {
	t.Parallel()

	further := with("Role further: list pods", "further: Role further to ops/op")
	rules := func(edit func(r *rbacv1.Role)) func(w *world) {
		return func(w *world) { r := w.role(); w.Change(r, func() { edit(r) }) }
	}
	binding := func(edit func(b *rbacv1.RoleBinding)) func(w *world) {
		return func(w *world) { b := w.opBinding(); w.Change(b, func() { edit(b) }) }
	}
	dangling := func(kind string) func(w *world) {
		return func(w *world) { w.Make(w.binding(ops, "dangling", kind, w.ns("late"), w.account("op"))) }
	}
	clusterRole := func(w *world) *rbacv1.ClusterRole {
		return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.ns("late")}, Rules: testbed.Role("", "", "get pods").Rules}
	}
	late := with("Role late: get pods", "dangling: Role late to ops/op")
	lateInCluster := with("dangling: ClusterRole late to ops/op")

	for name, tc := range map[string]follow{
		"a rule that is added": {
			change: rules(func(r *rbacv1.Role) { r.Rules = append(r.Rules, testbed.Rule("list pods")) }),
			want:   []string{"Role op-role: get secrets; list pods", "op-role: Role op-role to ops/op"},
		},
		"a rule that is replaced": {
			change: rules(func(r *rbacv1.Role) { r.Rules = []rbacv1.PolicyRule{testbed.Rule("list pods")} }),
			want:   []string{"Role op-role: list pods", "op-role: Role op-role to ops/op"},
		},
		"rules that are taken": {
			change: rules(func(r *rbacv1.Role) { r.Rules = nil }),
			want:   []string{"Role op-role: ", "op-role: Role op-role to ops/op"},
		},
		"a Role that goes": {change: func(w *world) { w.Remove(w.role()) }, want: []string{}, roles: "False Missing"},
		"a Role that comes": {
			given: dangling("Role"), want: late, roles: "True AllFound",
			change: func(w *world) { w.Make(testbed.Role(w.ns(ops), w.ns("late"), "get pods")) },
		},
		"a ClusterRole that comes": {
			given: dangling("ClusterRole"), want: lateInCluster, roles: "True AllFound",
			change: func(w *world) { w.Make(clusterRole(w)) },
		},
		"a ClusterRole that goes": {
			given:  func(w *world) { w.Make(clusterRole(w)); dangling("ClusterRole")(w) },
			before: lateInCluster, want: one, roles: "False Missing",
			change: func(w *world) { w.Remove(clusterRole(w)) },
		},
		"a binding that comes": {change: func(w *world) { w.further(w.account("op")) }, want: further},
		"a binding that goes":  {change: func(w *world) { w.Remove(w.opBinding()) }, want: []string{}},
		"a binding that is made again, of another Role": {
			change: func(w *world) {
				w.Make(testbed.Role(w.ns(ops), "other", "list pods"))
				w.Remove(w.opBinding())
				w.Make(w.binding(ops, "op-role", "Role", "other", w.account("op")))
			},
			want: []string{"Role other: list pods", "op-role: Role other to ops/op"},
		},
		"a subject that goes": {
			change: binding(func(b *rbacv1.RoleBinding) { b.Subjects[0].Name = "somebody" }), want: []string{},
		},
		"a binding that opts out": {
			change: binding(func(b *rbacv1.RoleBinding) {
				b.Annotations = map[string]string{scope.AnnotationProject: scope.ProjectDisabled}
			}),
			want: []string{},
		},
	} {
		t.Run(name, tc.run)
	}
}

// TestAccountsFollow: so does what changes of accounts and workloads.
func TestAccountsFollow(t *testing.T) {
	t.Parallel()

	const extra = `{"namespaceMembers":["a>","b>"],"serviceAccountMembers":["extra","extra","op"]}`

	ofExtra := with("Role further: list pods", "further: Role further to ops/extra")
	other := func(w *world) {
		w.Make(w.account("other"))
		w.further(w.account("other"))
	}

	for name, tc := range map[string]follow{
		"an account that goes": {
			change: func(w *world) { w.Remove(w.account("op")) }, want: []string{}, accounts: "False Missing",
		},
		"a named account that comes": {
			given: func(w *world) { w.further(w.account("extra")) }, spec: extra,
			change: func(w *world) { w.Make(w.account("extra")) }, want: ofExtra, accounts: "True AllFound",
		},
		"an account that is named no more": {
			given: func(w *world) { w.Make(w.account("extra")); w.further(w.account("extra")) }, spec: extra, before: ofExtra,
			change: func(w *world) { w.respec(`{"namespaceMembers":["a>","b>"]}`) }, want: one,
		},
		"a Deployment that comes":  {change: func(w *world) { w.runs("Deployment") }, want: runner},
		"a StatefulSet that comes": {change: func(w *world) { w.runs("StatefulSet") }, want: runner},
		"a DaemonSet that comes":   {change: func(w *world) { w.runs("DaemonSet") }, want: runner},
		"a ReplicaSet that comes":  {change: func(w *world) { w.runs("ReplicaSet") }, want: runner},
		"a Job that comes":         {change: func(w *world) { w.runs("Job") }, want: runner},
		"a CronJob that comes":     {change: func(w *world) { w.runs("CronJob") }, want: runner},
		"a bare pod that comes":    {change: func(w *world) { w.runs("Pod") }, want: runner},
		"a workload that goes": {
			change: func(w *world) { w.Remove(w.workload("Deployment", "op")) }, want: []string{},
		},
		"another workload of the account keeps it": {
			given:  func(w *world) { w.Make(w.workload("StatefulSet", "op")) },
			change: func(w *world) { w.Remove(w.workload("Deployment", "op")) }, want: one,
		},
		"pods that lose the label": {
			change: func(w *world) {
				d := w.operatorDeployment()
				w.Change(d, func() { delete(d.Spec.Template.Labels, "intent") })
			},
			want: []string{},
		},
		"pods that run as somebody else": {
			given: other,
			change: func(w *world) {
				d := w.operatorDeployment()
				w.Change(d, func() { d.Spec.Template.Spec.ServiceAccountName = "other" })
			},
			want: []string{"Role further: list pods", "further: Role further to ops/other"},
		},
		"other restartLabels": {
			given: func(w *world) {
				other(w)

				d := w.deployment("other")
				w.Change(d, func() { d.Spec.Template.Labels["intent"] = "another" })
			},
			change: func(w *world) { w.respec(`{"namespaceMembers":["a>","b>"],"restartLabels":{"intent":"another"}}`) },
			want:   []string{"Role further: list pods", "further: Role further to ops/other"},
		},
	} {
		t.Run(name, tc.run)
	}
}

// TestMissingIsNamed: the conditions name what is missing, and only that.
func TestMissingIsNamed(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.common()
	w.deployment("orphan")
	w.Make(w.binding(ops, "dangling", "Role", "gone", w.account("op")))
	w.scope(`{"namespaceMembers":["a>"],"serviceAccountMembers":["late","op"]}`)
	w.settle()

	is(w, "AccountsFound", w.messageOn("scope", "AccountsFound"),
		"service accounts that do not exist in namespace ops: late, orphan; they are projected once they do")
	w.names("RolesFound", w.messageOn("scope", "RolesFound"), "gone", "dangling")
	is(w, "copies", w.copies("a"), one)
}

// TestSourcesComeInAnyOrder: whatever comes first, and whenever a plan is made.
func TestSourcesComeInAnyOrder(t *testing.T) {
	t.Parallel()

	for _, order := range []string{"nsarbd", "dbrasn", "nsdrab", "adnrsb", "sbnrda", "rbnads"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.namespaces("ops")
			w.watch(w.ns(ops))

			begun := false
			steps := map[rune]func(){
				'n': func() { w.namespaces("d") },
				's': func() { begun = true; w.scope(`{"namespaceMembers":["d>"]}`) },
				'a': func() { w.Make(w.account("op")) },
				'r': func() { w.Make(w.role()) },
				'b': func() { w.Make(w.opBinding()) },
				'd': func() { w.deployment("op") },
			}
			for _, step := range order {
				// Before there is a scope nothing is planned.
				if steps[step](); begun {
					w.settle()
				}
			}

			is(w, "watch list", w.list(), "d,ops")
			is(w, "copies", w.copies("d"), []string{"Role op-role: ", "op-role: Role op-role to ops/op"})
		})
	}
}

// TestTwoScopesCopySideBySide: each has copies of its own, which stay when the other goes.
func TestTwoScopesCopySideBySide(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.common()
	w.scopeCalled("x", `{"namespaceMembers":["a>"]}`)
	w.scopeCalled("y", `{"namespaceMembers":["a>"]}`)
	w.settle()
	is(w, "copies of two", len(w.copies("a")), 2*len(one))

	w.asks(func(w *world) { w.removeScope("x") })
	w.settle()
	is(w, "copies", w.copies("a"), one)
	is(w, "the scope that stays", w.condition("y", "Ready"), reconciled)

	copied := w.copy("a", &rbacv1.RoleList{})
	is(w, "its owner", w.called(copied.GetAnnotations()[scope.AnnotationOwner]), "NamespaceScope/ops/y")
}
