package cli_test

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// onKettles is what an operator needs to finish its work on a kettle.
func (w *drawn) onKettles() map[string]any {
	return map[string]any{
		"apiGroups": []any{w.api()}, "resources": []any{"kettles"}, "verbs": list([]string{"get", "list", "update", "patch"}),
	}
}

// and adds rules to a Role.
func (m manifest) and(rules ...any) manifest {
	m["rules"] = append(m["rules"].([]any), rules...)

	return m
}

// drawKettle makes an object that waits for its operator when it is deleted, or deletes one. No plan is about that alone.
func (w *drawn) drawKettle() *move {
	namespace := one(w, append([]string{w.absent()}, w.members[:2]...)...)
	if !w.exists(namespace) {
		return nil
	}

	kettle := object(w.api()+"/v1", "Kettle", namespace, "kettle", nil)
	if w.there[idOf(kettle)] != nil {
		w.apply(&move{objects: []manifest{kettle}, delete: true})
		return nil
	}

	if u := w.kettleIn(namespace); u != nil {
		return nil // It waits.
	}

	kettle["metadata"].(map[string]any)["finalizers"] = list([]string{"example.com/clean-up"})

	w.apply(&move{objects: []manifest{kettle}})

	return nil
}

// kettleIn is the kettle of a namespace, if there is any.
func (w *drawn) kettleIn(namespace string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: object(w.api()+"/v1", "Kettle", namespace, "kettle", nil)}
	if w.Client.Get(w.Context(), client.ObjectKeyFromObject(u), u) != nil {
		return nil
	}

	return u
}

// finishes has the operators finish where a plan says that they may. Until then, what was there stays, and the status says so.
func (w *drawn) finishes(p *promise, before *state) {
	w.Helper()

	for i := range p.data.Scopes {
		s := &p.data.Scopes[i]
		parts := strings.SplitN(s.Scope, "/", 3)

		for _, f := range s.Finishes {
			if !w.has(parts[1], s.Scope) || !slices.Contains(w.namespaces(), f.Namespace) {
				continue
			}

			if is := before.objects[id{s.Group, parts[0], parts[1], parts[2]}]; is != nil && w.mustWait(f.Message) {
				w.Eventually(s.Scope+" waits for "+f.Namespace, func() error { return w.isFinishing(is.raw, f.Namespace) })
			}

			p.finishes = true

			w.release(f.Namespace)
		}
	}
}

// mustWait says whether a plan knows that something waits, and the manager sees it, too.
func (w *drawn) mustWait(message string) bool {
	return w.profile == "cluster" && strings.Contains(message, "kettle")
}

func (w *drawn) isFinishing(of *unstructured.Unstructured, namespace string) error {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(of.GroupVersionKind())

	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(of), u); err != nil {
		return err
	}

	nss := &operatorv1.NamespaceScope{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, nss); err != nil {
		return err
	}

	for _, m := range nss.Status.FinishingMembers {
		if m.Namespace == namespace {
			return nil
		}
	}

	return fmt.Errorf("it has %+v", nss.Status)
}

// release takes the finalizer off a kettle, as an operator does.
func (w *drawn) release(namespace string) {
	w.Helper()

	u := w.kettleIn(namespace)
	if u == nil {
		return
	}

	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))
	if err := client.IgnoreNotFound(w.Client.Patch(w.Context(), u, patch)); err != nil {
		w.Fatal(err)
	}
}
