package reconcile_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// vandal does something to the copies of a Role and of its RoleBinding.
type vandal func(w *world, r *rbacv1.Role, b *rbacv1.RoleBinding)

// edits changes both objects in the same way.
func edits(edit func(obj client.Object)) vandal {
	return func(w *world, r *rbacv1.Role, b *rbacv1.RoleBinding) {
		w.Change(r, func() { edit(r) })
		w.Change(b, func() { edit(b) })
	}
}

func labelled(key, value string) vandal {
	return edits(func(obj client.Object) { obj.GetLabels()[key] = value })
}

func annotated(key, value string) vandal {
	return edits(func(obj client.Object) { obj.GetAnnotations()[key] = value })
}

// TestCopiesHeal: whatever somebody does to copies is undone, and every mark is as it was.
func TestCopiesHeal(t *testing.T) {
	t.Parallel()

	for name, do := range map[string]vandal{
		"both are deleted":        func(w *world, r *rbacv1.Role, b *rbacv1.RoleBinding) { w.Remove(r); w.Remove(b) },
		"the Role is deleted":     func(w *world, r *rbacv1.Role, _ *rbacv1.RoleBinding) { w.Remove(r) },
		"the binding is deleted":  func(w *world, _ *rbacv1.Role, b *rbacv1.RoleBinding) { w.Remove(b) },
		"the Role is given more":  func(w *world, _ *rbacv1.Role, _ *rbacv1.RoleBinding) { w.widen("* *") },
		"the Role loses its rule": func(w *world, _ *rbacv1.Role, _ *rbacv1.RoleBinding) { w.widen() },
		"somebody joins the binding": func(w *world, _ *rbacv1.Role, b *rbacv1.RoleBinding) {
			w.Change(b, func() { b.Subjects = append(b.Subjects, toUser("jane")) })
		},
		"the binding loses its subjects": func(w *world, _ *rbacv1.Role, b *rbacv1.RoleBinding) {
			w.Change(b, func() { b.Subjects = nil })
		},
		"the label that Ambit watches by goes": edits(func(obj client.Object) { delete(obj.GetLabels(), scope.LabelScope) }),
		"the label that people look for goes":  edits(func(obj client.Object) { delete(obj.GetLabels(), scope.LabelManagedBy) }),
		"all labels go":                        edits(func(obj client.Object) { obj.SetLabels(nil) }),
		"the label is that of another scope":   labelled(scope.LabelScope, "0123456789abcdef"),
		"the annotations go":                   edits(func(obj client.Object) { obj.SetAnnotations(nil) }),
		"the owner is another scope":           annotated(scope.AnnotationOwner, "NamespaceScope/default/other"),
		"the owner cannot be read":             annotated(scope.AnnotationOwner, "whatever"),
		"the source is another one":            annotated(scope.AnnotationSource, "Role/default/other"),
		"every mark goes":                      edits(func(obj client.Object) { obj.SetLabels(nil); obj.SetAnnotations(nil) }),
		"another binding is put in its place": func(w *world, _ *rbacv1.Role, b *rbacv1.RoleBinding) {
			other := &rbacv1.RoleBinding{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: b.Namespace, Name: b.Name, Labels: b.Labels, Annotations: b.Annotations,
				},
				RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
				Subjects: b.Subjects,
			}
			w.Remove(b)
			w.Make(other)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := served(t, `{"namespaceMembers":["a>"]}`)

			before := w.marks("a")
			is(w, "copies before", len(before), len(one))

			r, _ := w.copy("a", &rbacv1.RoleList{}).(*rbacv1.Role)
			b, _ := w.copy("a", &rbacv1.RoleBindingList{}).(*rbacv1.RoleBinding)

			w.asks(func(w *world) { do(w, r, b) })
			w.rest()

			is(w, "marks", w.marks("a"), before)
			w.sees(seen{list: "a,ops", ready: reconciled, failed: []string{}, copies: map[string][]string{"a": one}})
		})
	}
}

// marks are the labels and annotations of the copies in a namespace.
func (w *world) marks(short string) []map[string]string {
	w.Helper()

	var out []map[string]string

	for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
		for _, obj := range w.copiesOf(short, list) {
			both := map[string]string{}
			for _, part := range []map[string]string{obj.GetLabels(), obj.GetAnnotations()} {
				maps.Copy(both, part)
			}

			out = append(out, both)
		}
	}

	return out
}

// TestCopiesSayWhereTheyCameFrom: by labels and annotations, and by names that are short enough for a label.
func TestCopiesSayWhereTheyCameFrom(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.common()

	long := strings.Repeat("long.", 20) + "name"
	w.grant(ops, long, "op", "get pods")
	w.grant(ops, "system:with:colons", "op", "get services")
	w.scope(`{"namespaceMembers":["a>"]}`)
	w.settle()

	all := append(w.copiesOf("a", &rbacv1.RoleList{}), w.copiesOf("a", &rbacv1.RoleBindingList{})...)
	is(w, "copies", len(all), 6)

	for _, obj := range all {
		is(w, "label", obj.GetLabels(), map[string]string{
			scope.LabelManagedBy: scope.ManagedBy, scope.LabelScope: all[0].GetLabels()[scope.LabelScope],
		})
		is(w, "owner", w.called(obj.GetAnnotations()[scope.AnnotationOwner]), "NamespaceScope/ops/scope")

		stem := obj.GetName()[:len(obj.GetName())-17]
		if !strings.HasPrefix(sourceOf(obj), stem) {
			t.Errorf("%s is not named after its source %s", obj.GetName(), sourceOf(obj))
		}

		if len(obj.GetName()) > 63 {
			t.Errorf("%s is longer than 63 characters", obj.GetName())
		}
	}
}

// TestSourcesWithLongNames: for the API server, names of Roles and of what binds them may be of any length.
func TestSourcesWithLongNames(t *testing.T) {
	t.Parallel()

	for _, length := range []int{254, 20_000} {
		t.Run(strconv.Itoa(length), func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.common()

			long := strings.Repeat("x", length)
			w.grant(ops, long, "op", "get pods")
			w.scope(`{"namespaceMembers":["a>"]}`)
			w.settle()
			is(w, "copies", len(w.copies("a")), 4)
			is(w, "Ready", w.condition("scope", "Ready"), reconciled)

			w.asks(func(w *world) {
				source := testbed.Role(w.ns(ops), long)
				w.Change(source, func() { source.Rules = source.Rules[:0] })
			})
			w.settle()
			is(w, "copies of what gives nothing", len(w.copiesOf("a", &rbacv1.RoleBindingList{})), 2)

			w.asks(func(w *world) { w.Remove(testbed.Role(w.ns(ops), long)) })
			w.settle()
			is(w, "copies of what is there", w.copies("a"), one)
		})
	}
}

// TestLabelsOfOthersStayOnCopies: also where Ambit takes a rule from the copy. One that gains rules is another object.
func TestLabelsOfOthersStayOnCopies(t *testing.T) {
	t.Parallel()

	w := served(t, `{"namespaceMembers":["a>"]}`)

	copied := w.copy("a", &rbacv1.RoleList{})
	w.Change(copied, func() { copied.GetLabels()["team"] = "x" })

	source := w.role()
	w.asks(func(w *world) {
		w.Change(source, func() { source.Rules = nil })
	})
	w.settle()

	is(w, "copies", w.copies("a"), []string{"Role op-role: ", "op-role: Role op-role to ops/op"})
	is(w, "the label", w.copy("a", &rbacv1.RoleList{}).GetLabels()["team"], "x")
}

// TestForeignObjectsStay: nobody knows what a copy will be called, so what has the name of another is left alone and keeps nobody
// from being served; nor is what bears the marks of a copy under another name one.
func TestForeignObjectsStay(t *testing.T) {
	t.Parallel()

	w := served(t, `{"namespaceMembers":["a>"]}`)

	copied := w.copy("a", &rbacv1.RoleList{})
	foreign := testbed.Role(w.ns("b"), copied.GetName(), "list pods")
	mine := testbed.Role(w.ns("a"), "mine", "list pods")
	mine.Labels, mine.Annotations = copied.GetLabels(), copied.GetAnnotations()
	w.Make(foreign, mine)

	w.asks(func(w *world) { w.respec(`{"namespaceMembers":["a>","b>"]}`) })
	w.settle()
	w.sees(seen{list: "a,b,ops", ready: reconciled, failed: []string{}, copies: map[string][]string{"b": one}})

	w.asks(func(w *world) { w.removeScope("scope") })
	w.settle()

	for _, obj := range []*rbacv1.Role{foreign, mine} {
		now := &rbacv1.Role{}
		if err := w.client.Get(w.Context(), client.ObjectKeyFromObject(obj), now); err != nil {
			t.Fatal(err)
		}

		is(w, "the Role of somebody else", now.ResourceVersion, obj.ResourceVersion)
	}
}

// TestNothingIsWrittenThatStays: what changes nothing of what there shall be is looked at, and nothing is written, no status and
// no restart.
func TestNothingIsWrittenThatStays(t *testing.T) {
	t.Parallel()

	for name, change := range map[string]func(w *world){
		"a workload beside another of its account": func(w *world) { w.Make(w.workload("StatefulSet", "op")) },
		"a workload that is scaled to zero": func(w *world) {
			d := w.operatorDeployment()
			w.Change(d, func() { d.Spec.Replicas = new(int32(0)) })
		},
		"a Role that nobody is bound to": func(w *world) { w.Make(testbed.Role(w.ns(ops), "of-nobody", "get pods")) },
		"pods of a workload that go": func(w *world) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "reader-1-x"}}
			if err := w.Client.Delete(w.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
				w.Fatal(err)
			}
		},
		"the same members in other words": func(w *world) { w.respec(`{"namespaceMembers":["a>","ops>","a>"]}`) },
		"a key of the ConfigMap that is somebody's": func(w *world) {
			cm := w.configMap("namespace-scope", nil)
			w.Change(cm, func() { cm.Data["other"] = "x" })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.common()
			w.scope(`{"namespaceMembers":["a>"]}`)
			w.reads(nil, byVariable)
			w.settle()

			w.asks(change)

			_, wrote := w.settle()
			// A new generation is one more that status speaks of.
			is(w, "writes", without(wrote, "patch namespacescopes ops/scope/status"), []string{})

			if name != "the same members in other words" {
				is(w, "all writes", wrote, []string(nil))
			}
		})
	}
}

func without(words []string, word string) []string {
	out := []string{}

	for _, w := range words {
		if w != word {
			out = append(out, w)
		}
	}

	return out
}
