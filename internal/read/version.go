package read

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Version returns the resource version in which an object is known, the oldest one where several tables hold it; zero when it
// is not known, or not of interest. By it, somebody who wrote an object knows when the watches have reported it.
func (s *Store) Version(obj client.Object) uint64 {
	key := client.ObjectKeyFromObject(obj)

	s.mu.RLock()
	defer s.mu.RUnlock()

	var versions []uint64

	note := func(version uint64, known bool) {
		if known {
			versions = append(versions, version)
		}
	}

	switch obj.(type) {
	case *corev1.Namespace:
		note(s.namespaces.version(key))
	case *rbacv1.ClusterRole:
		note(s.clusterRoles.version(key))
	case *rbacv1.ClusterRoleBinding:
		note(s.clusterBindings.version(key))
	case *rbacv1.Role, *rbacv1.RoleBinding:
		if r, _, known := s.projected.find(projectedKeyOf(obj)); known {
			note(r.Version, true)
		}

		note(s.projected.legacy.version(projectedKeyOf(obj)))
		note(s.projected.authorizations.version(projectedKeyOf(obj)))
		note(s.projected.authorizationRoles.version(projectedKeyOf(obj)))
	case *admissionv1.MutatingWebhookConfiguration, *admissionv1.ValidatingWebhookConfiguration:
		if r, ok := convertWebhooks(obj); ok {
			note(s.webhooks[r.Kind].version(key))
		}
	}

	if h, watched := s.operatorNamespaces[key.Namespace]; watched {
		note(h.version(key, obj))
	}

	if in, watched := s.installs[key.Namespace]; watched {
		note(in.version(key, obj))
	}

	if c, watched := s.catalogs[key]; watched {
		note(c.rows.version(key))
	}

	if len(versions) == 0 {
		return 0
	}

	return slices.Min(versions)
}

// version is that of an object of an operator namespace.
func (h *operatorNamespace) version(key types.NamespacedName, obj client.Object) (uint64, bool) {
	if _, is := obj.(*unstructured.Unstructured); is {
		return h.olm.csvs.version(key)
	}

	if k := h.kind(obj); k != nil {
		return k.version(key)
	}

	return 0, false
}

// version is that of an object of a namespace in which something is installed.
func (i *installs) version(key types.NamespacedName, obj client.Object) (uint64, bool) {
	switch obj.(type) {
	case *corev1.ServiceAccount:
		return i.accounts.version(key)
	case *appsv1.Deployment:
		return i.deployments.version(key)
	case *corev1.Service:
		return i.services.version(key)
	default:
		return 0, false
	}
}

func (t *table[R]) version(key types.NamespacedName) (uint64, bool) {
	r, known := t.rows[key]

	return r.version, known
}
