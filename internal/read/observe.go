package read

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Wrote records what a write of Ambit's own returned, so that the next plan knows of it before the watch reports. The watch's
// own word replaces it as soon as it is newer.
func (s *Store) Wrote(obj client.Object) {
	key := client.ObjectKeyFromObject(obj)
	a := arrival{version: scope.ParseVersion(obj.GetResourceVersion())}

	s.mu.Lock()
	defer s.mu.Unlock()

	switch obj.(type) {
	case *rbacv1.Role, *rbacv1.RoleBinding, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding:
		if r, ok := s.projected.convert(obj); ok {
			s.projected.quietly(func() { s.projected.insert(projectedKeyOf(obj), r, a) })
		}
	case *admissionv1.MutatingWebhookConfiguration, *admissionv1.ValidatingWebhookConfiguration:
		if r, ok := convertWebhooks(obj); ok {
			s.webhooks[r.Kind].put(key, r, a)
		}
	default:
		s.wroteInstalled(key, obj, a)

		if h, watched := s.operatorNamespaces[key.Namespace]; watched {
			h.wrote(key, obj, a)
		}
	}
}

// wrote records what a write into the operator namespace returned.
func (h *operatorNamespace) wrote(key types.NamespacedName, obj client.Object, a arrival) {
	switch obj.(type) {
	case *unstructured.Unstructured:
		if r, ok := convertCSV(obj); ok && h.olm.listed {
			h.olm.csvs.put(key, r, a)
		}
	case *corev1.ConfigMap:
		h.kind(obj).takeIn(obj, a)
	default:
		if facts.TypeOfWorkload(obj) != nil {
			h.kind(obj).takeIn(obj, a)
		}
	}
}

// Deleted records that Ambit deleted a projected object.
func (s *Store) Deleted(namespace string, key facts.ProjectedKey) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.projected.quietly(func() { s.projected.dropEverywhere(projectedKey{namespace, key}, 0) })
}

// DeletedConfigMap records that Ambit deleted a ConfigMap.
func (s *Store) DeletedConfigMap(namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if h, watched := s.operatorNamespaces[namespace]; watched {
		h.maps.drop(types.NamespacedName{Namespace: namespace, Name: name}, 0)
	}
}

// quietly changes the table without notifying anybody: what Ambit wrote itself is no news.
func (t *projectedTable) quietly(change func()) {
	changed, legacy, foreign, authorizations := t.changed, t.legacy.changed, t.foreign.changed, t.authorizations.changed
	t.changed, t.legacy.changed, t.foreign.changed = func(bucket) {}, func(string) {}, func(projectedKey) {}
	t.authorizations.changed = func(string) {}

	change()

	t.changed, t.legacy.changed, t.foreign.changed, t.authorizations.changed = changed, legacy, foreign, authorizations
}

func projectedKeyOf(obj client.Object) projectedKey {
	o, _ := projected.From(obj)

	return projectedKey{shared(obj.GetNamespace()), facts.ProjectedKey{Kind: o.Kind, Name: shared(obj.GetName())}}
}
