package reconcile_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// configMap is one of the operator namespace.
func (w *world) configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: name}, Data: data}
}

// data is that of a ConfigMap, as it is now; "-" when there is none.
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

	return strings.Join(out, " ")
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
			steps: []func(w *world){func(w *world) {
				cm := w.configMap(list, map[string]string{"other": "kept"})
				cm.Immutable = new(true)
				w.Make(cm)
				w.scopeCalled("x", `{"namespaceMembers":["a>"]}`)
			}},
			want: map[string]string{list: "other=kept"}, ready: map[string]string{"x": "False ConfigMapConflict"},
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
				step(w)
				w.settle()
			}

			for name, want := range tc.want {
				is(w, "ConfigMap "+name, w.data(name), want)
			}

			for name, want := range tc.ready {
				is(w, "Ready of "+name, w.condition(name, "Ready"), want)
			}
		})
	}
}
