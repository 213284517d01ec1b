package read

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
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

	for _, k := range s.kindsOf(obj) {
		note(k.version(key))
	}

	if c, watched := s.catalogs[key]; watched {
		note(c.rows.version(key))
	}

	if len(versions) == 0 {
		return 0
	}

	return slices.Min(versions)
}

func (t *table[R]) version(key types.NamespacedName) (uint64, bool) {
	r, known := t.rows[key]

	return r.version, known
}
