package reconcile_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// configMap is one of the operator namespace.
func (w *world) configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: name}, Data: data}
}

// data is that of a ConfigMap, as it is now; "-" when there is none, and "deleted" with it when only finalizers keep it.
func (w *world) data(name string) string {
	w.Helper()

	cm := &corev1.ConfigMap{}

	err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: name}, cm)
	if apierrors.IsNotFound(err) {
		return "-"
	}

	if err != nil {
		w.Fatal(err)
	}

	var out []string

	for _, key := range []string{"namespaces", "other"} {
		if v, is := cm.Data[key]; is {
			out = append(out, key+"="+w.called(v))
		}
	}

	data := strings.Join(out, " ")
	if cm.DeletionTimestamp != nil {
		data = "deleted " + data
	}

	return data
}

// kept has a ConfigMap stay when it is deleted.
func (w *world) kept(name string) {
	w.Helper()

	cm := w.configMap(name, nil)
	w.Change(cm, func() { cm.Finalizers = []string{"example.com/keeps"} })
}

func (w *world) removeScope(name string) {
	w.Helper()
	w.Remove(&operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: name}})
}

// TestWatchList: one key of a ConfigMap, shared as a union.
func TestWatchList(t *testing.T) {
	t.Parallel()

	const list = "namespace-scope"

	for name, tc := range map[string]struct {
		// steps are done one after the other, each followed by Reconcile until it rests.
		steps []func(w *world)
		// want is the data of ConfigMaps, ready the conditions Ready of scopes.
		want, ready map[string]string
		// gone are scopes that are there no more.
		gone []string
	}{
		"scopes that share a ConfigMap write their union": {
			steps: []func(w *world){func(w *world) {
				w.scopeCalled("x", `{"namespaceMembers":["c>","a>"]}`)
				w.scopeCalled("y", `{"namespaceMembers":["b>","a>"]}`)
			}},
			want: map[string]string{list: "namespaces=a,b,c,ops"}, ready: map[string]string{"x": reconciled, "y": reconciled},
		},
		"scopes with ConfigMaps of their own do not": {
			steps: []func(w *world){func(w *world) {
				w.scopeCalled("x", `{"namespaceMembers":["a>"]}`)
				w.scopeCalled("y", `{"namespaceMembers":["b>"],"configmapName":"mine"}`)
			}},
			want: map[string]string{list: "namespaces=a,ops", "mine": "namespaces=b,ops"},
		},
		"other keys survive": {
			steps: []func(w *world){func(w *world) {
				w.Make(w.configMap(list, map[string]string{"other": "kept"}))
				w.scopeCalled("x", `{"namespaceMembers":["a>"]}`)
			}},
			want: map[string]string{list: "namespaces=a,ops other=kept"},
		},
		"a key that was there before is taken over": {
			steps: []func(w *world){func(w *world) {
				w.Make(w.configMap(list, map[string]string{"namespaces": "nonsense", "other": "kept"}))
				w.scopeCalled("x", `{"namespaceMembers":["a>"]}`)
			}},
			want: map[string]string{list: "namespaces=a,ops other=kept"}, ready: map[string]string{"x": reconciled},
		},
		"an immutable ConfigMap is a conflict": {
			steps: []func(w *world){func(w *world) { w.immutable(list); w.scopeCalled("x", `{"namespaceMembers":["a>"]}`) }},
			want:  map[string]string{list: "other=kept"}, ready: map[string]string{"x": "False ConfigMapConflict"},
		},
		"one that somebody makes immutable is a conflict, and goes with the scope": {
			steps: []func(w *world){
				func(w *world) { w.scope(`{"namespaceMembers":["a>"]}`) },
				func(w *world) {
					cm := w.configMap(list, nil)
					w.Change(cm, func() { cm.Immutable = new(true) })
					w.respec(`{"namespaceMembers":["b>"]}`)
				},
				func(w *world) {
					is(w, "Ready", w.condition("scope", "Ready"), "False ConfigMapConflict")
					is(w, "validated members", w.short(w.status("scope").ValidatedMembers), []string{"ops"})
					w.removeScope("scope")
				},
			},
			want: map[string]string{list: "-"},
		},
		"an immutable one that goes makes way": {
			steps: []func(w *world){
				func(w *world) { w.immutable(list); w.scopeCalled("x", `{"namespaceMembers":["a>"]}`) },
				func(w *world) { w.Remove(w.configMap(list, nil)) },
			},
			want: map[string]string{list: "namespaces=a,ops"}, ready: map[string]string{"x": reconciled},
		},
		"a scope with an immutable one can go": {
			steps: []func(w *world){
				func(w *world) { w.immutable(list); w.scopeCalled("x", `{"namespaceMembers":["a>"]}`) },
				func(w *world) { w.removeScope("x") },
			},
			want: map[string]string{list: "other=kept"}, gone: []string{"x"},
		},
		"one that says the same already is none": {
			steps: []func(w *world){func(w *world) {
				cm := w.configMap(list, map[string]string{"namespaces": w.ns("a") + "," + w.ns(ops)})
				w.Make(cm)
				w.scopeCalled("x", `{"namespaceMembers":["a>"]}`)
			}},
			want: map[string]string{list: "namespaces=a,ops"}, ready: map[string]string{"x": reconciled},
		},
		"drift is undone": {
			steps: []func(w *world){
				func(w *world) { w.scopeCalled("x", `{"namespaceMembers":["a>"]}`) },
				func(w *world) {
					cm := w.configMap(list, nil)
					w.Change(cm, func() { cm.Data["namespaces"], cm.Data["other"] = "", "kept" })
				},
			},
			want: map[string]string{list: "namespaces=a,ops other=kept"},
		},
		"a ConfigMap that somebody deletes is made anew": {
			steps: []func(w *world){
				func(w *world) { w.scopeCalled("x", `{"namespaceMembers":["a>"]}`) },
				func(w *world) { w.Remove(w.configMap(list, nil)) },
			},
			want: map[string]string{list: "namespaces=a,ops"},
		},
		"one that somebody's finalizer keeps goes without the list": {
			steps: []func(w *world){
				func(w *world) { w.scopeCalled("x", `{"namespaceMembers":["a>"]}`) },
				func(w *world) { w.kept(list) },
				func(w *world) { w.removeScope("x") },
			},
			want: map[string]string{list: "deleted "}, gone: []string{"x"},
		},
		"one that was deleted before, and that a finalizer keeps, as well": {
			steps: []func(w *world){
				func(w *world) { w.scopeCalled("x", `{"namespaceMembers":["a>"]}`) },
				func(w *world) { w.kept(list); w.Remove(w.configMap(list, nil)) },
				func(w *world) {
					is(w, "ConfigMap of the living scope", w.data(list), "deleted namespaces=a,ops")
					w.removeScope("x")
				},
			},
			want: map[string]string{list: "deleted "}, gone: []string{"x"},
		},
		"one that a finalizer keeps and nobody can write is no reason to keep the scope": {
			steps: []func(w *world){
				func(w *world) { w.scopeCalled("x", `{"namespaceMembers":["a>"]}`) },
				func(w *world) { w.kept(list) },
				func(w *world) { cm := w.configMap(list, nil); w.Change(cm, func() { cm.Immutable = new(true) }) },
				func(w *world) { w.removeScope("x") },
			},
			want: map[string]string{list: "deleted namespaces=a,ops"}, gone: []string{"x"},
		},
		"a list that a finalizer keeps is written again for a new scope": {
			steps: []func(w *world){
				func(w *world) {
					w.scopeCalled("other", `{"configmapName":"mine"}`)
					w.scopeCalled("x", `{"namespaceMembers":["a>"]}`)
				},
				func(w *world) { w.kept(list) },
				func(w *world) { w.removeScope("x") },
				func(w *world) { w.scopeCalled("y", `{"namespaceMembers":["b>"]}`) },
			},
			want: map[string]string{list: "deleted namespaces=b,ops"}, ready: map[string]string{"y": reconciled},
		},
		"a scope that goes leaves what others want": {
			steps: []func(w *world){
				func(w *world) {
					w.scopeCalled("x", `{"namespaceMembers":["a>","b>"]}`)
					w.scopeCalled("y", `{"namespaceMembers":["b>"]}`)
				},
				func(w *world) { w.removeScope("x") },
			},
			want: map[string]string{list: "namespaces=b,ops"}, ready: map[string]string{"y": reconciled},
		},
		"the last scope takes the ConfigMap that Ambit made": {
			steps: []func(w *world){
				func(w *world) { w.scopeCalled("x", `{"namespaceMembers":["a>"]}`) },
				func(w *world) { w.removeScope("x") },
			},
			want: map[string]string{list: "-"},
		},
		"the last scope leaves the other keys of one that was there": {
			steps: []func(w *world){
				func(w *world) {
					w.Make(w.configMap(list, map[string]string{"other": "kept"}))
					w.scopeCalled("x", `{"namespaceMembers":["a>"]}`)
				},
				func(w *world) { w.removeScope("x") },
			},
			want: map[string]string{list: "other=kept"},
		},
		"keys that somebody adds to the one that Ambit made stay": {
			steps: []func(w *world){
				func(w *world) { w.scopeCalled("x", `{"namespaceMembers":["a>"]}`) },
				func(w *world) {
					cm := w.configMap(list, nil)
					w.Change(cm, func() { cm.Data["other"] = "added" })
				},
				func(w *world) { w.removeScope("x") },
			},
			want: map[string]string{list: "other=added"}, gone: []string{"x"},
		},
		"a copy that somebody made of it is theirs": {
			steps: []func(w *world){
				func(w *world) { w.scopeCalled("x", `{"namespaceMembers":["a>"]}`) },
				func(w *world) { w.copied(list, "backup") },
				func(w *world) { w.removeScope("x") },
			},
			want: map[string]string{list: "-", "backup": "namespaces=a,ops"}, gone: []string{"x"},
		},
		"one of which nobody knows any more who wrote what stays without the list": {
			steps: []func(w *world){
				func(w *world) {
					w.Make(w.configMap(list, map[string]string{"other": "kept"}))
					w.scopeCalled("x", `{"namespaceMembers":["a>"]}`)
				},
				func(w *world) { w.removeScope("x"); w.forgotten(list) },
			},
			want: map[string]string{list: "other=kept"}, gone: []string{"x"},
		},
		"one whose marks somebody else wrote, too, stays without them": {
			steps: []func(w *world){
				func(w *world) {
					w.Make(w.configMap(list, map[string]string{"other": "kept"}))
					w.scopeCalled("x", `{"namespaceMembers":["a>"]}`)
				},
				func(w *world) { w.marked(list); w.removeScope("x") },
			},
			want: map[string]string{list: "other=kept"}, gone: []string{"x"},
		},
		"one that was there without a key stays": {
			steps: []func(w *world){
				func(w *world) { w.Make(w.configMap(list, nil)); w.scopeCalled("x", `{}`) },
				func(w *world) { w.removeScope("x") },
			},
			want: map[string]string{list: ""}, gone: []string{"x"},
		},
		"another configmapName takes the key from the one before": {
			steps: []func(w *world){
				func(w *world) {
					w.Make(w.configMap(list, map[string]string{"other": "kept"}))
					w.scope(`{"namespaceMembers":["a>"]}`)
				},
				func(w *world) { w.respec(`{"namespaceMembers":["a>"],"configmapName":"mine"}`) },
			},
			want: map[string]string{list: "other=kept", "mine": "namespaces=a,ops"},
		},
		"another configmapName moves the list": {
			steps: []func(w *world){
				func(w *world) { w.scope(`{"namespaceMembers":["a>"]}`) },
				func(w *world) { w.respec(`{"namespaceMembers":["a>"],"configmapName":"mine"}`) },
			},
			want: map[string]string{list: "-", "mine": "namespaces=a,ops"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.common()

			for _, step := range tc.steps {
				w.asks(step)
				w.settle()
			}

			for name, want := range tc.want {
				is(w, "ConfigMap "+name, w.data(name), want)
			}

			for name, want := range tc.ready {
				is(w, "Ready of "+name, w.condition(name, "Ready"), want)
				w.speaksOfNow(name)
			}

			for _, name := range tc.gone {
				key := client.ObjectKey{Namespace: w.ns(ops), Name: name}
				if err := w.client.Get(t.Context(), key, &operatorv1.NamespaceScope{}); !apierrors.IsNotFound(err) {
					t.Errorf("scope %s is there still (%v)", name, err)
				}
			}
		})
	}
}

// copied makes a ConfigMap of another name that says the same, marks and all.
func (w *world) copied(from, to string) {
	w.Helper()

	cm := w.configMap(from, nil)
	if err := w.client.Get(w.Context(), client.ObjectKeyFromObject(cm), cm); err != nil {
		w.Fatal(err)
	}

	again := w.configMap(to, cm.Data)
	again.Annotations = cm.Annotations
	w.Make(again)
}

// forgotten has the API server forget who wrote what in a ConfigMap.
func (w *world) forgotten(name string) {
	w.Helper()

	cm := w.configMap(name, nil)
	w.Change(cm, func() { cm.ManagedFields = []metav1.ManagedFieldsEntry{{}} })
}

// marked applies the marks that a ConfigMap has as somebody else.
func (w *world) marked(name string) {
	w.Helper()

	cm := w.configMap(name, nil)
	if err := w.client.Get(w.Context(), client.ObjectKeyFromObject(cm), cm); err != nil {
		w.Fatal(err)
	}

	too, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"annotations": cm.Annotations},
	})
	if err != nil {
		w.Fatal(err)
	}

	patch := client.RawPatch(types.ApplyPatchType, too)
	if err := w.client.Patch(w.Context(), cm, patch, client.FieldOwner("somebody")); err != nil {
		w.Fatal(err)
	}

	w.touch(cm)
}

// immutable makes a ConfigMap with a key of somebody's that nobody can change.
func (w *world) immutable(name string) {
	w.Helper()

	cm := w.configMap(name, map[string]string{"other": "kept"})
	cm.Immutable = new(true)
	w.Make(cm)
}

// TestConfigMapOfOthersStaysAsItIs: but for the one key, as long as there is a scope.
func TestConfigMapOfOthersStaysAsItIs(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.common()

	cm := w.configMap("namespace-scope", map[string]string{"other": "kept"})
	cm.BinaryData, cm.Labels = map[string][]byte{"bits": {1, 2}}, map[string]string{"team": "x"}
	w.Make(cm)

	w.asks(func(w *world) { w.scope(`{"namespaceMembers":["a>"]}`) })
	w.settle()
	w.asks(func(w *world) { w.Change(cm, func() { cm.Data["size"] = "big" }) })
	w.asks(func(w *world) { w.removeScope("scope") })
	w.settle()

	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(cm), cm); err != nil {
		t.Fatal(err)
	}

	is(w, "data", cm.Data, map[string]string{"other": "kept", "size": "big"})
	is(w, "binaryData", cm.BinaryData, map[string][]byte{"bits": {1, 2}})
	is(w, "labels", cm.Labels, map[string]string{"team": "x"})
	is(w, "annotations", len(cm.Annotations), 0)
}

// TestStatusOfSomebodyElseIsWrittenOver: what somebody wrote into it means nothing.
func TestStatusOfSomebodyElseIsWrittenOver(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.common()
	nss := w.scope(`{"namespaceMembers":["a>"]}`)
	w.settle()

	w.asks(func(w *world) {
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(nss), nss); err != nil {
			t.Fatal(err)
		}

		nss.Status = operatorv1.NamespaceScopeStatus{ValidatedMembers: []string{"kube-system"}}
		if err := w.client.Status().Update(t.Context(), nss); err != nil {
			t.Fatal(err)
		}

		w.touch(nss)
	})
	w.settle()

	is(w, "validated members", w.short(w.status("scope").ValidatedMembers), []string{"a", "ops"})
	w.sees(seen{list: "a,ops", ready: reconciled, failed: []string{}, copies: map[string][]string{"a": one}})
}

// TestListIsRestoredWithoutRestarts: a reader that began with the list reads on, whatever somebody writes into it in between; nor
// is anything else written, also where a member fails.
func TestListIsRestoredWithoutRestarts(t *testing.T) {
	t.Parallel()

	const name = "namespace-scope"

	edited := func(edit func(cm *corev1.ConfigMap)) func(w *world) {
		return func(w *world) { cm := w.configMap(name, nil); w.Change(cm, func() { edit(cm) }) }
	}

	for what, change := range map[string]func(w *world){
		"a value that somebody wrote":  edited(func(cm *corev1.ConfigMap) { cm.Data[scope.ListKey] = "wrong" }),
		"a key that somebody took out": edited(func(cm *corev1.ConfigMap) { cm.Data = map[string]string{"other": "key"} }),
		"marks that somebody took off": edited(func(cm *corev1.ConfigMap) {
			cm.Annotations, cm.Data[scope.ListKey] = nil, "wrong"
		}),
		"a ConfigMap that somebody deleted": func(w *world) { w.Remove(w.configMap(name, nil)) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.common()
			w.reads(nil, byVariable)
			w.scope(`{"namespaceMembers":["a>","gone>"]}`)
			w.settle()

			w.asks(change)

			_, wrote := w.settle()
			is(w, "writes", slices.Compact(wrote), []string{"patch configmaps ops/" + name})
			is(w, "watch list", w.list(), "a,ops")
			is(w, "Ready", w.condition("scope", "Ready"), "False MembersFailed")
		})
	}
}

// TestListThatCannotBeWritten: whoever administers the operator namespace can have the write of a watch list fail for as long as
// they like. Permissions in a namespace that left wait for the list to forget it, but not for long.
func TestListThatCannotBeWritten(t *testing.T) {
	t.Parallel()

	const most = 10 * time.Second

	for name, status := range map[string]int{"conflicts": http.StatusConflict, "errors": http.StatusInternalServerError} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := served(t, `{"namespaceMembers":["a>","b>"]}`)

			w.refuses = refusing("patch configmaps ops/namespace-scope", status)
			w.respec(`{"namespaceMembers":["b>"]}`)
			w.catchUp(w.scopes.Client, w.ns(ops), scopeKinds()...)

			began := time.Now()
			first := w.call(w.scopes, scope.NamespaceScopes.In(w.ns(ops)))

			is(w, "copies when the list could not be written once", w.copies("a"), one)

			if first.again <= 0 || first.again > most {
				t.Errorf("it is planned again after %s", first.again)
			}

			if err := until(t.Context(), func() bool {
				_ = w.tried()

				return len(w.copies("a")) == 0
			}); err != nil {
				t.Fatalf("copies stay: %q", w.copies("a"))
			}

			if took := time.Since(began); took < first.again {
				t.Errorf("it took %s, and was to be planned again after %s", took, first.again)
			}

			is(w, "copies of the member that stays", w.copies("b"), one)
			is(w, "watch list", w.list(), "a,b,ops")

			w.refuses = nil
			w.settle()
			is(w, "watch list", w.list(), "b,ops")
		})
	}
}

// TestWhatTheLastScopeMayNotTakeBack: a scope shares a list, and what is injected, with one that Ambit wrote both for, and
// outlives that. Its own account may touch neither. It can be deleted all the same, and both go with it, as they would after it.
func TestWhatTheLastScopeMayNotTakeBack(t *testing.T) {
	t.Parallel()

	w := served(t, `{"namespaceMembers":["a>"],"workloadInjector":{}}`)
	w.Make(w.account("weak"))

	weak := w.scopeCalled("weak", `{"namespaceMembers":["b>"],"serviceAccountName":"weak","workloadInjector":{}}`)
	w.settle()
	is(w, "Ready", w.condition("weak", "Ready"), "False AuthorizationRequired")
	is(w, "WATCH_NAMESPACE", w.variable(), "from namespace-scope")

	w.removeScope("scope")
	w.settle()
	is(w, "WATCH_NAMESPACE", w.variable(), "from namespace-scope")

	w.Remove(weak)
	w.settle()
	is(w, "the scope is there", w.isThere(weak), false)
	is(w, "watch list", w.list(), "-")
	is(w, "WATCH_NAMESPACE", w.variable(), "-")
}

// TestCopyOfAListIsNotTakenBackForOthers: somebody copied a list with all of its marks. A scope whose account may not write
// ConfigMaps names the copy, and is deleted. Ambit does not delete for it what belongs to somebody else.
func TestCopyOfAListIsNotTakenBackForOthers(t *testing.T) {
	t.Parallel()

	w := served(t, `{"namespaceMembers":["a>"]}`)

	list := w.configMap("namespace-scope", nil)
	if err := w.client.Get(w.Context(), client.ObjectKeyFromObject(list), list); err != nil {
		t.Fatal(err)
	}

	copied := w.configMap("copied", list.Data)
	copied.Annotations = list.Annotations
	w.Make(copied, w.account("weak"))

	weak := w.scopeCalled("weak", `{"configmapName":"copied","serviceAccountName":"weak"}`)
	w.settle()
	w.Remove(weak)
	w.settle()
	is(w, "the copy", w.data("copied"), "namespaces=a,ops")
}
