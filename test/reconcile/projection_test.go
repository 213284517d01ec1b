package reconcile_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// with adds further copies to those of the operator of most cases.
func with(further ...string) []string {
	out := append(slices.Clone(one), further...)
	slices.Sort(out)

	return out
}

// account is the operator's service account.
func (w *world) account(name string) *corev1.ServiceAccount { return testbed.Account(w.ns(ops), name) }

// further makes a Role that may list pods, and a binding of it to subjects.
func (w *world) further(to ...any) *rbacv1.RoleBinding {
	w.Helper()

	b := w.binding(ops, "further", "Role", "further", to...)
	w.Make(testbed.Role(w.ns(ops), "further", "list pods"), b)

	return b
}

// TestProjection: which bindings have copies, of what, and for whom.
func TestProjection(t *testing.T) {
	t.Parallel()

	further := with("Role further: list pods", "further: Role further to ops/op")

	for name, tc := range map[string]struct {
		given func(w *world)
		spec  string
		want  []string
		// accounts and roles are conditions, where the case is about them.
		accounts, roles string
	}{
		"a copy has exactly the rules of its Role": {
			given: func(w *world) {
				w.grant(ops, "more", "op", "get,list,watch configmaps", "create pods/eviction", "get secrets/one")
			},
			want: with("Role more: get,list,watch configmaps; create pods/eviction; get secrets/one",
				"more: Role more to ops/op"),
		},
		"no wildcard is rewritten": {
			given: func(w *world) { w.grant(ops, "all", "op", "* *") }, want: with("Role all: * *", "all: Role all to ops/op"),
		},
		"one Role of two bindings is copied once": {
			given: func(w *world) { w.Make(w.binding(ops, "again", "Role", "op-role", w.account("op"))) },
			want:  with("again: Role op-role to ops/op"),
		},
		"a ClusterRole stays the same ClusterRole": {
			given: func(w *world) { w.Make(w.binding(ops, "viewer", "ClusterRole", "view", w.account("op"))) },
			want:  with("viewer: ClusterRole view to ops/op"),
		},
		"an account of no workload is not projected": {
			given: func(w *world) { w.Make(w.account("other")); w.further(w.account("other")) }, want: one,
		},
		"subjects are the projected accounts only": {
			given: func(w *world) {
				w.Make(w.account("other"))
				w.further(w.account("other"), toUser("jane"), toGroup("people"), w.account("op"), testbed.Account(w.ns("a"), "op"))
			},
			want: further,
		},
		"two operators of one binding are subjects of one copy": {
			given: func(w *world) { w.operator("two"); w.further(w.account("op"), w.account("two")) },
			want:  with("Role further: list pods", "further: Role further to ops/op ops/two"),
		},
		"a subject without a namespace is one beside its binding": {
			given: func(w *world) { w.further(rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "op"}) }, want: further,
		},
		"an account of another namespace is somebody else": {
			given: func(w *world) { w.further(testbed.Account(w.ns("b"), "op")) }, want: one,
		},
		"a user of the account's name is not the account": {given: func(w *world) { w.further(toUser("op")) }, want: one},
		"the group of all accounts names them": {
			given: func(w *world) { w.further(toGroup("system:serviceaccounts")) }, want: further,
		},
		"the group of the namespace's accounts names them": {
			given: func(w *world) { w.further(toGroup("system:serviceaccounts:" + w.ns(ops))) }, want: further,
		},
		"the group of another namespace's accounts does not": {
			given: func(w *world) { w.further(toGroup("system:serviceaccounts:" + w.ns("a"))) }, want: one,
		},
		"the group of everybody does not": {given: func(w *world) { w.further(toGroup("system:authenticated")) }, want: one},
		"a binding with the annotation is not projected": {
			given: func(w *world) {
				b := w.binding(ops, "lease", "Role", "lease", w.account("op"))
				b.Annotations = map[string]string{scope.AnnotationProject: scope.ProjectDisabled}
				w.Make(testbed.Role(w.ns(ops), "lease", "update leases"), b)
			},
			want: one,
		},
		"another value of the annotation means nothing": {
			given: func(w *world) {
				b := w.binding(ops, "further", "Role", "further", w.account("op"))
				b.Annotations = map[string]string{scope.AnnotationProject: "enabled"}
				w.Make(testbed.Role(w.ns(ops), "further", "list pods"), b)
			},
			want: further,
		},
		"a Role that nobody binds is not projected": {
			given: func(w *world) { w.Make(testbed.Role(w.ns(ops), "idle", "get pods")) }, want: one,
		},
		"an account that does not exist is not projected": {
			given: func(w *world) { w.deployment("ghost"); w.further(w.account("ghost")) }, want: one, accounts: "False Missing",
		},
		"a workload without the labels is not projected": {
			given: func(w *world) {
				w.Make(w.account("plain"))
				w.deployment("plain", func(t *corev1.PodTemplateSpec) { delete(t.Labels, "intent") })
				w.further(w.account("plain"))
			},
			want: one,
		},
		"restartLabels choose the workloads": {
			given: func(w *world) {
				w.Make(w.account("mine"))
				w.deployment("mine", func(t *corev1.PodTemplateSpec) { t.Labels["intent"] = "mine" })
				w.further(w.account("mine"))
			},
			spec: `{"namespaceMembers":["a>"],"restartLabels":{"intent":"mine"}}`,
			want: []string{"Role further: list pods", "further: Role further to ops/mine"},
		},
		"empty restartLabels mean the default, and never everything": {
			given: func(w *world) {
				w.Make(w.account("plain"))
				w.deployment("plain", func(t *corev1.PodTemplateSpec) { t.Labels["intent"] = "other" })
				w.further(w.account("plain"))
			},
			spec: `{"namespaceMembers":["a>"],"restartLabels":{}}`, want: one,
		},
		"serviceAccountMembers adds an account": {
			given: func(w *world) { w.Make(w.account("extra")); w.further(w.account("extra")) },
			spec:  `{"namespaceMembers":["a>"],"serviceAccountMembers":["extra"]}`,
			want:  with("Role further: list pods", "further: Role further to ops/extra"), accounts: "True AllFound",
		},
		"a missing account is named, and the others are served": {
			given: func(w *world) { w.further(w.account("extra")) },
			spec:  `{"namespaceMembers":["a>"],"serviceAccountMembers":["extra"]}`, want: one, accounts: "False Missing",
		},
		"a binding whose Role is missing is named, and the others are served": {
			given: func(w *world) { w.Make(w.binding(ops, "dangling", "Role", "gone", w.account("op"))) },
			want:  one, roles: "False Missing",
		},
		"a workload that is scaled to zero keeps what it has": {
			given: func(w *world) {
				w.Make(w.account("idle"))
				d := w.deployment("idle")
				w.Change(d, func() { d.Spec.Replicas = new(int32(0)) })
				w.further(w.account("idle"))
			},
			want: with("Role further: list pods", "further: Role further to ops/idle"),
		},
		"a user that is the account": {
			given: func(w *world) { w.further(toUser(scope.AccountUser(w.ns(ops), "op"))) }, want: further,
		},
		"a user that is an account of another namespace is somebody else": {
			given: func(w *world) { w.further(toUser(scope.AccountUser(w.ns("a"), "op"))) }, want: one,
		},
		"the group of some people does not": {given: func(w *world) { w.further(toGroup("developers")) }, want: one},
		"an account that a binding names twice is one subject": {
			given: func(w *world) {
				w.further(w.account("op"), w.account("op"), toUser(scope.AccountUser(w.ns(ops), "op")))
			},
			want: further,
		},
		"a Role without rules": {
			given: func(w *world) { w.grant(ops, "none", "op") }, want: with("Role none: ", "none: Role none to ops/op"),
		},
		"a workload without an account runs as default": {
			given: func(w *world) {
				w.Make(w.account("default"))
				w.deployment("plain", func(t *corev1.PodTemplateSpec) { t.Spec.ServiceAccountName = "" })
				w.further(w.account("default"))
			},
			want: with("Role further: list pods", "further: Role further to ops/default"),
		},
		"labels of a workload itself say nothing of its pods": {
			given: func(w *world) {
				w.Make(w.account("plain"))

				d := w.deployment("plain", func(t *corev1.PodTemplateSpec) { delete(t.Labels, "intent") })
				w.Change(d, func() { d.Labels = map[string]string{"intent": "projected"} })
				w.further(w.account("plain"))
			},
			want: one,
		},
		"all of restartLabels are needed": {
			given: func(w *world) {
				for account, labels := range map[string]map[string]string{"all": {"x": "1", "y": ""}, "some": {"x": "1"}} {
					w.Make(w.account(account))
					w.deployment(account, func(t *corev1.PodTemplateSpec) { maps.Copy(t.Labels, labels) })
				}

				w.further(w.account("all"), w.account("some"))
			},
			spec: `{"namespaceMembers":["a>"],"restartLabels":{"x":"1","y":""}}`,
			want: []string{"Role further: list pods", "further: Role further to ops/all"},
		},
		"the account of a ReplicaSet that a Deployment controls counts only if the Deployment has it": {
			given: func(w *world) {
				w.Make(w.account("runner"))
				r := w.workload("ReplicaSet", "runner")
				r.SetOwnerReferences([]metav1.OwnerReference{
					{APIVersion: "apps/v1", Kind: "Deployment", Name: "op", UID: "1", Controller: new(true)},
				})

				// The store never knows it, so nothing waits until it does.
				if err := w.client.Create(w.Context(), r); err != nil {
					w.Fatal(err)
				}

				w.further(w.account("runner"))
			},
			want: one,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.common()

			if tc.given != nil {
				tc.given(w)
			}

			if tc.spec == "" {
				tc.spec = `{"namespaceMembers":["a>"]}`
			}

			w.scope(tc.spec)
			w.settle()
			w.sees(seen{
				list: "a,ops", ready: reconciled, failed: []string{}, copies: map[string][]string{"a": tc.want, "ops": {}, "b": {}},
			})

			w.mirrors("a")
			w.finds(tc.accounts, tc.roles)
		})
	}
}

// mirrors fails the case where a copied Role differs from its source in any rule.
func (w *world) mirrors(short string) {
	w.Helper()

	for _, obj := range w.copiesOf(short, &rbacv1.RoleList{}) {
		copied, _ := obj.(*rbacv1.Role)
		source := testbed.Role(w.ns(ops), sourceOf(copied))

		if err := w.client.Get(w.Context(), client.ObjectKeyFromObject(source), source); err != nil {
			w.Fatal(err)
		}

		if !equality.Semantic.DeepEqual(copied.Rules, source.Rules) {
			w.Errorf("the copy of Role %s has the rules %v, and not %v", source.Name, copied.Rules, source.Rules)
		}
	}
}

// finds compares conditions, where a case is about them.
func (w *world) finds(accounts, roles string) {
	w.Helper()

	if accounts != "" {
		is(w, "AccountsFound", w.condition("scope", "AccountsFound"), accounts)
	}

	if roles != "" {
		is(w, "RolesFound", w.condition("scope", "RolesFound"), roles)
	}
}

// rest settles, also after what was put off for a moment: a Role that is replaced goes after the API server's own authorizer
// knows the new one.
func (w *world) rest() {
	w.Helper()

	for last, _ := w.settle(); last.again > 0 && last.again < restartInterval/2; last, _ = w.settle() {
		select {
		case <-w.Context().Done():
			w.Fatal(w.Context().Err())
		case <-time.After(min(last.again, 100*time.Millisecond)):
		}
	}
}

// copy is the one copy of a kind in a namespace.
func (w *world) copy(short string, list client.ObjectList) client.Object {
	w.Helper()

	all := w.copiesOf(short, list)
	if len(all) != 1 {
		w.Fatalf("there is not one copy: %v", list)
	}

	return all[0]
}

// copiesOf are the copies of a kind in a namespace.
func (w *world) copiesOf(short string, list client.ObjectList) []client.Object {
	w.Helper()

	ours := []client.ListOption{client.InNamespace(w.ns(short)), client.HasLabels{scope.LabelScope}}
	if err := w.client.List(w.Context(), list, ours...); err != nil {
		w.Fatal(err)
	}

	items, err := meta.ExtractList(list)
	if err != nil {
		w.Fatal(err)
	}

	out := make([]client.Object, 0, len(items))

	for _, item := range items {
		if obj, ok := item.(client.Object); ok {
			out = append(out, obj)
		}
	}

	return out
}

// widen gives the copied Role other rules.
func (w *world) widen(rules ...string) {
	w.Helper()

	if r, ok := w.copy("a", &rbacv1.RoleList{}).(*rbacv1.Role); ok {
		w.Change(r, func() { r.Rules = testbed.Role("", "", rules...).Rules })
	}
}
