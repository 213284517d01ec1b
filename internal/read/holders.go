package read

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
)

// holder is what objects are taken into as records, and out of.
type holder interface {
	takeIn(obj client.Object, a arrival)
	drop(key types.NamespacedName, version uint64)
	// keys lists what it holds, with versions.
	keys() map[types.NamespacedName]uint64
}

// sinkHolder is a holder that is filled through the sink of a watch.
type sinkHolder[R any] struct{ sink sink[R] }

func (h sinkHolder[R]) takeIn(obj client.Object, a arrival)           { h.sink.takeIn(obj, a) }
func (h sinkHolder[R]) drop(key types.NamespacedName, version uint64) { h.sink.drop(key, version) }
func (h sinkHolder[R]) keys() map[types.NamespacedName]uint64         { return h.sink.keys() }

// holdersOf are all those of an object, whichever watches bring it.
func (s *Store) holdersOf(obj client.Object) []holder {
	var out []holder

	switch obj := obj.(type) {
	case *corev1.Namespace:
		out = append(out, kindOf[facts.Namespace]{table: &s.namespaces, convert: convertNamespace})
	case *rbacv1.ClusterRole:
		out = append(out, sinkHolder[clusterRecord]{s.clusterSink(projected.ClusterRole, &s.clusterRoles)})
	case *rbacv1.ClusterRoleBinding:
		out = append(out, sinkHolder[clusterRecord]{s.clusterSink(projected.ClusterRoleBinding, &s.clusterBindings)})
	case *rbacv1.Role:
		out = append(out, sinkHolder[projectedRecord]{s.projected.sink(projected.Role)})
	case *rbacv1.RoleBinding:
		out = append(out, sinkHolder[projectedRecord]{s.projected.sink(projected.RoleBinding)})
	case *admissionv1.MutatingWebhookConfiguration:
		out = append(out, kindOf[webhookRecord]{table: s.webhooks[facts.MutatingWebhooks], convert: convertWebhooks})
	case *admissionv1.ValidatingWebhookConfiguration:
		out = append(out, kindOf[webhookRecord]{table: s.webhooks[facts.ValidatingWebhooks], convert: convertWebhooks})
	case *corev1.ConfigMap:
		if w, watched := s.catalogs[client.ObjectKeyFromObject(obj)]; watched {
			out = append(out, kindOf[Catalog]{table: &w.table, convert: convertCatalog})
		}
	}

	for _, k := range s.kindsOf(obj) {
		out = append(out, k)
	}

	return out
}

// Version returns the resource version in which an object is known, the oldest one where several tables hold it; zero when it
// is not known, or not of interest. By it, somebody who wrote an object knows when the watches have reported it.
func (s *Store) Version(obj client.Object) uint64 {
	s.mu.RLock()
	defer s.mu.RUnlock()

	var oldest uint64

	for _, h := range s.holdersOf(obj) {
		if version, known := h.keys()[client.ObjectKeyFromObject(obj)]; known && (oldest == 0 || version < oldest) {
			oldest = version
		}
	}

	return oldest
}
