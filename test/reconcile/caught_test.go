package reconcile_test

import (
	"context"
	"fmt"
	"time"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// catchUp waits until the store holds all that the case wrote, and the cache these kinds as they are in a namespace: also what
// Reconcile wrote of them itself.
func (w *world) catchUp(reader client.Reader, namespace string, kinds ...client.ObjectList) {
	w.Helper()

	w.mu.Lock()
	pending := w.touched
	w.touched = map[touchedKey]touched{}
	w.mu.Unlock()

	for _, what := range pending {
		if err := until(w.Context(), func() bool { return w.holds(what) }); err != nil {
			w.Fatalf("the store does not know %T %s (gone: %t)", what.obj, client.ObjectKeyFromObject(what.obj), what.gone)
		}
	}

	for _, kind := range kinds {
		live, cached := w.versions(w.client, kind, namespace), map[string]string(nil)

		var unread error

		// A kind that the cache has not read yet is one that it does not hold.
		if err := until(w.Context(), func() bool {
			cached, unread = versionsOf(w.Context(), reader, kind, namespace)

			return unread == nil && equal(live, cached)
		}); err != nil {
			w.Fatalf("the cache holds %T as %v, which are %v (%v)", kind, cached, live, unread)
		}
	}
}

func equal(a, b map[string]string) bool {
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}

	return len(a) == len(b)
}

// versions are the resource versions of what there is of a kind in a namespace.
func (w *world) versions(c client.Reader, kind client.ObjectList, namespace string) map[string]string {
	w.Helper()

	out, err := versionsOf(w.Context(), c, kind, namespace)
	if err != nil {
		w.Fatal(err)
	}

	return out
}

func versionsOf(ctx context.Context, c client.Reader, kind client.ObjectList, namespace string) (map[string]string, error) {
	list, _ := kind.DeepCopyObject().(client.ObjectList)
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing %T: %w", kind, err)
	}

	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}

	out := map[string]string{}

	for _, item := range items {
		if obj, ok := item.(client.Object); ok {
			out[obj.GetNamespace()+"/"+obj.GetName()] = obj.GetResourceVersion()
		}
	}

	return out, nil
}

// holds says whether the store holds an object as it was written. One that no watch is about is not waited for.
func (w *world) holds(what touched) bool {
	store, namespace := w.scopes.Store, what.obj.GetNamespace()
	known, version := store.Version(what.obj), scope.ParseVersion(what.obj.GetResourceVersion())

	switch what.obj.(type) {
	case *rbacv1.Role, *rbacv1.RoleBinding:
		// Of what is not Ambit's, and is nobody's source, the store only knows when it changed.
		heard := !store.PermissionsChangedAt(namespace, w.sources).Before(what.at)
		marked := what.obj.GetLabels()[scope.LabelScope] != ""

		switch {
		case what.gone:
			return known == 0 && (heard || marked)
		case namespace == w.sources && read.IsSource(what.obj):
			return known >= version && heard
		default:
			return known >= version || known == 0 && heard
		}
	case *operatorv1.NamespaceScope, *namespacescopev1alpha1.NamespaceScope, *operatorsv1alpha1.ScopeTemplate,
		*operatorsv1alpha1.ScopeInstance, *operatorsv1.OperatorGroup, *olmv1alpha1.ClusterServiceVersion, *unstructured.Unstructured,
		*olmv1alpha1.Subscription, *apiextensionsv1.CustomResourceDefinition, *corev1.Secret:
		return true // They are in the cache, or read when they are needed.
	}

	switch {
	case what.gone, isUnmarkedWebhook(what.obj):
		return known == 0
	case namespace != "" && !w.isWatched(namespace):
		return true
	default:
		return known >= version
	}
}

// isUnmarkedWebhook says whether an object is a webhook configuration that says of no operator that it is its: those are nobody's
// business.
func isUnmarkedWebhook(obj client.Object) bool {
	_, is := obj.(*admissionv1.ValidatingWebhookConfiguration)

	return is && obj.GetLabels()["olm.owner"] == ""
}

// isWatched says whether a namespace is watched as an operator namespace.
func (w *world) isWatched(namespace string) bool { return w.watched == namespace }

// watch begins to watch an operator namespace before anything is made in it, and waits until it is listed.
func (w *world) watch(namespace string) {
	w.Helper()

	w.scopes.Watches.Watch(scope.NamespaceScopes.In(namespace))
	w.Cleanup(func() { w.scopes.Watches.Release(scope.NamespaceScopes.In(namespace)) })

	if err := until(w.Context(), func() bool {
		_, listed := w.scopes.Store.Facts(scope.NamespaceScopes.In(namespace), time.Now())

		return listed
	}); err != nil {
		w.Fatalf("namespace %s is not listed: %v", namespace, err)
	}

	w.watched, w.sources = namespace, namespace
}

// scopeKinds are what the reconciler of NamespaceScopes reads from the cache.
func scopeKinds() []client.ObjectList {
	return []client.ObjectList{&operatorv1.NamespaceScopeList{}, &namespacescopev1alpha1.NamespaceScopeList{}}
}
