package read

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
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

// IsMarkedFor says whether an object bears the mark of a scope, or that of IBM's operator for the scope's list, whoever put it
// there.
func IsMarkedFor(obj client.Object, s *scope.Scope) bool {
	labels := obj.GetLabels()

	return labels[scope.LabelScope] == s.Owner.Hash() ||
		s.WatchList != "" && labels[ibmMark] == facts.LegacyMark(s.WatchList, s.Key.Namespace)
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
	marks := collect.Map(lists, func(list string) string { return facts.LegacyMark(list, operatorNamespace) })
	marks = slices.Compact(slices.Sorted(slices.Values(marks)))

	if h, watched := s.operatorNamespaces[operatorNamespace]; watched {
		h.keepsLegacy = marks
	}

	return s.projected.legacyOf(marks)
}
