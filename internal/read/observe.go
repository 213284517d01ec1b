package read

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
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
	key, a := client.ObjectKeyFromObject(obj), arrivalOf(obj)

	if kind, is := projected.KindOf(obj); is {
		s.wroteProjected(projectedKeyOf(kind, key), obj, a)

		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	switch obj.(type) {
	case *admissionv1.MutatingWebhookConfiguration, *admissionv1.ValidatingWebhookConfiguration:
		if r, ok := convertWebhooks(obj); ok {
			s.webhooks[r.Kind].put(key, r, a)
		}
	default:
		if in := s.records(scope.Installs.In(key.Namespace)); in != nil && in.kind(obj) != nil {
			in.kind(obj).wrote(s, in.allowances, obj, a)
		}

		if h, watched := s.operatorNamespaces[key.Namespace]; watched {
			h.wrote(obj, a)
		}
	}
}

// wroteProjected records a projected object. Half of the time the watch is faster than the answer, and has read this very version
// already. Nobody waits for the store while an object is read: most of those who could are about to do the same.
func (s *Store) wroteProjected(key projectedKey, obj client.Object, a arrival) {
	s.mu.RLock()
	known := s.projected.has(key, a.version)
	s.mu.RUnlock()

	if known {
		return
	}

	r, ok := s.projected.convert(obj)
	if !ok {
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	s.projected.quietly(func() { s.projected.insert(key.shared(), r, a) })
}

// wrote records what a write into the operator namespace returned.
func (h *operatorNamespace) wrote(obj client.Object, a arrival) {
	_, isConfigMap := obj.(*corev1.ConfigMap)
	_, isCSV := obj.(*unstructured.Unstructured)

	if isConfigMap || isCSV && h.olm.listed || facts.TypeOfWorkload(obj) != nil {
		h.kind(obj).takeIn(obj, a)
	}
}

// Deleted records that Ambit deleted a projected object.
func (s *Store) Deleted(namespace string, key facts.ProjectedKey) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.projected.quietly(func() { s.projected.dropOwn(projectedKey{namespace, key}) })
}

// DeletedConfigMap records that Ambit deleted a ConfigMap.
func (s *Store) DeletedConfigMap(namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	if h, watched := s.operatorNamespaces[namespace]; watched {
		h.maps.dropOwn(types.NamespacedName{Namespace: namespace, Name: name})
	}
}

// quietly changes the table without notifying anybody: what Ambit wrote itself is no news.
func (t *projectedTable) quietly(change func()) {
	changed := t.changed
	t.changed = func(bucket) {}

	for _, other := range t.others() {
		inner := change
		change = func() { other.quietly(inner) }
	}

	change()

	t.changed = changed
}

func projectedKeyOf(kind projected.Kind, key types.NamespacedName) projectedKey {
	return projectedKey{key.Namespace, facts.ProjectedKey{Kind: kind, Name: key.Name}}
}

// shared is the same key with the strings that all records use, for a key that is kept. What is only looked up needs none.
func (k projectedKey) shared() projectedKey {
	return projectedKey{shared(k.namespace), facts.ProjectedKey{Kind: k.Kind, Name: shared(k.Name)}}
}
