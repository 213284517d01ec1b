package read

import (
	"strings"

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

// isInherited says whether an object bears the marks by which IBM's operator knows its own.
func isInherited(obj client.Object) bool {
	labels := obj.GetLabels()

	return labels[ibmMark] != "" && labels[scope.LabelManagedBy] == ibmManager
}

func convertInherited(obj client.Object) *facts.Inherited {
	if obj.GetLabels()[ibmMark] == "" {
		return nil
	}

	labels := obj.GetLabels()
	i := &facts.Inherited{
		Mark:     shared(labels[ibmMark]),
		Labelled: isInherited(obj) && labels["app.kubernetes.io/instance"] == ibmInstance,
		List:     shared(labels["app.kubernetes.io/name"]),
	}

	switch o := obj.(type) {
	case *rbacv1.Role:
	case *rbacv1.RoleBinding:
		i.RoleRef, i.Subjects = o.RoleRef, o.Subjects
	default:
		return nil
	}

	return i
}

// inheritedTable holds what IBM's operator left, for as long as it is there.
type inheritedTable struct {
	rows map[projectedKey]facts.Inherited
	// changed is told the mark.
	changed func(mark string)
}

func (t *inheritedTable) put(key projectedKey, i facts.Inherited, a arrival) {
	before, known := t.rows[key]
	if known && a.version != 0 && a.version < before.Version {
		return
	}

	if t.rows == nil {
		t.rows = map[projectedKey]facts.Inherited{}
	}

	i.Version = a.version
	t.rows[key] = i
	t.changed(i.Mark)
}

func (t *inheritedTable) drop(key projectedKey, version uint64) {
	before, known := t.rows[key]
	if !known || version != 0 && version < before.Version {
		return
	}

	delete(t.rows, key)
	t.changed(before.Mark)
}

func (t *inheritedTable) forget(namespace string) {
	for key := range t.rows {
		if key.namespace == namespace {
			delete(t.rows, key)
		}
	}
}

// of returns what may belong to a home, by namespace.
func (t *inheritedTable) of(homeName string) map[string]map[facts.ProjectedKey]facts.Inherited {
	out := map[string]map[facts.ProjectedKey]facts.Inherited{}

	for key, i := range t.rows {
		if !mayBelong(i.Mark, homeName) {
			continue
		}

		if out[key.namespace] == nil {
			out[key.namespace] = map[facts.ProjectedKey]facts.Inherited{}
		}

		out[key.namespace][key.ProjectedKey] = i
	}

	return out
}

// mayBelong says whether a mark, which is a ConfigMap and a namespace joined and cut to 63 characters, may be that of a home.
func mayBelong(mark, homeName string) bool {
	return len(mark) >= 63 || strings.HasSuffix(mark, "-"+homeName)
}

func (s *Store) newInherited() {
	s.projected.inherited.changed = func(mark string) {
		for name := range s.homes {
			if mayBelong(mark, name) {
				s.listener.HomeChanged(name)
			}
		}
	}
}

// takeIn puts an object into the table where it belongs, and out of the other.
func (t *projectedTable) takeIn(key projectedKey, r projectedRecord, a arrival) {
	if r.inherited != nil {
		t.drop(key, a.version)
		t.inherited.put(key, *r.inherited, a)
	} else {
		t.inherited.drop(key, a.version)
		t.put(key, r, a)
	}
}

func (t *projectedTable) takeOut(key projectedKey, version uint64) {
	t.drop(key, version)
	t.inherited.drop(key, version)
}

// versions lists what both tables hold of a kind.
func (t *projectedTable) versions(kind projected.Kind) map[projectedKey]uint64 {
	out := map[projectedKey]uint64{}

	for key := range t.homeOf {
		if key.Kind == kind {
			r, _, _ := t.find(key)
			out[key] = r.Version
		}
	}

	for key, i := range t.inherited.rows {
		if key.Kind == kind {
			out[key] = i.Version
		}
	}

	return out
}
