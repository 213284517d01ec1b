package read

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Labels of IBM's operator (github.com/IBM/ibm-namespace-scope-operator, controllers/namespacescope_controller.go,
// generateRBACToNamespace).
const (
	ibmMark     = "namespace-scope-configmap"
	ibmManager  = "ibm-namespace-scope-operator"
	ibmInstance = "namespace-scope"
)

// isLegacy says whether an object bears the marks by which IBM's operator knows its own.
func isLegacy(obj client.Object) bool {
	labels := obj.GetLabels()

	return labels[ibmMark] != "" && labels[scope.LabelManagedBy] == ibmManager
}

func convertLegacy(obj client.Object) *facts.Legacy {
	if obj.GetLabels()[ibmMark] == "" {
		return nil
	}

	labels := obj.GetLabels()
	i := &facts.Legacy{
		Mark:     shared(labels[ibmMark]),
		Labelled: isLegacy(obj) && labels["app.kubernetes.io/instance"] == ibmInstance,
		List:     shared(labels["app.kubernetes.io/name"]),
	}

	switch o := obj.(type) {
	case *rbacv1.Role:
	case *rbacv1.RoleBinding:
		if s := soleAccount(o); len(s.Name) <= maxName && len(s.Namespace) <= maxName {
			i.Account, i.AccountNamespace = shared(s.Name), shared(s.Namespace)
		}
	default:
		return nil
	}

	return i
}

// soleAccount is the subject of a binding, if that is a service account and the only one, and the binding refers to the Role of
// its own name, as those of IBM's operator do.
func soleAccount(b *rbacv1.RoleBinding) rbacv1.Subject {
	if len(b.Subjects) == 1 && b.RoleRef == (rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: b.Name}) {
		if s := b.Subjects[0]; s.Kind == rbacv1.ServiceAccountKind && s.APIGroup == "" {
			return s
		}
	}

	return rbacv1.Subject{}
}

// legacyOf returns what bears one of some marks, by namespace.
func (t *projectedTable) legacyOf(marks []string) map[string]map[facts.ProjectedKey]facts.Legacy {
	out := map[string]map[facts.ProjectedKey]facts.Legacy{}

	for _, mark := range marks {
		for key := range t.legacy.about[mark] {
			if out[key.namespace] == nil {
				out[key.namespace] = map[facts.ProjectedKey]facts.Legacy{}
			}

			row := t.legacy.rows[key]
			row.record.Version = row.version
			out[key.namespace][key.ProjectedKey] = row.record
		}
	}

	return out
}

func (s *Store) newLegacy() {
	s.projected.legacy.changed = func(mark string) {
		for name, h := range s.operatorNamespaces {
			if slices.Contains(h.keepsLegacy, mark) {
				s.listener.KeyChanged(scope.NamespaceScopes.In(name))
			}
		}
	}
}

// legacy returns what IBM's operator may have projected for the lists of an operator namespace. From now on the operator
// namespace is planned again when something with these marks changes, and with no other marks: anybody can write them.
func (s *Store) legacy(operatorNamespace string, lists []string) map[string]map[facts.ProjectedKey]facts.Legacy {
	marks := make([]string, 0, len(lists))
	for _, list := range lists {
		marks = append(marks, facts.LegacyMark(list, operatorNamespace))
	}

	marks = slices.Compact(slices.Sorted(slices.Values(marks)))

	if h, watched := s.operatorNamespaces[operatorNamespace]; watched {
		h.keepsLegacy = marks
	}

	return s.projected.legacyOf(marks)
}

// insert puts an object into the table where it belongs, and out of the others.
func (t *projectedTable) insert(key projectedKey, r projectedRecord, a arrival) {
	if r.legacy == nil {
		t.legacy.drop(key, a.version)
	}

	if r.foreign == nil {
		t.foreign.drop(key, a.version)
	}

	if r.authorization == nil {
		t.authorizations.drop(key, a.version)
	}

	if r.authorizationRole == nil {
		t.authorizationRoles.drop(key, a.version)
	}

	switch {
	case r.authorizationRole != nil:
		t.drop(key, a.version)
		t.authorizationRoles.put(key, *r.authorizationRole, a)
	case r.authorization != nil:
		t.drop(key, a.version)
		t.authorizations.put(key, *r.authorization, a)
	case r.legacy != nil:
		t.drop(key, a.version)
		t.legacy.put(key, *r.legacy, a)
	case r.foreign != nil:
		t.drop(key, a.version)
		t.foreign.put(key, *r.foreign, a)
	default:
		t.put(key, r, a)
	}
}

func (t *projectedTable) dropEverywhere(key projectedKey, version uint64) {
	t.drop(key, version)
	t.legacy.drop(key, version)
	t.foreign.drop(key, version)
	t.authorizations.drop(key, version)
	t.authorizationRoles.drop(key, version)
}

// versions lists what all tables hold of a kind.
func (t *projectedTable) versions(kind projected.Kind) map[projectedKey]uint64 {
	out := map[projectedKey]uint64{}

	for _, held := range t.buckets {
		for namespace, h := range held {
			for key, r := range h.objects {
				if key.Kind == kind {
					out[projectedKey{namespace, key}] = r.Version
				}
			}
		}
	}

	t.legacy.addVersions(out, kind)
	t.foreign.addVersions(out, kind)
	t.authorizations.addVersions(out, kind)
	t.authorizationRoles.addVersions(out, kind)

	return out
}
