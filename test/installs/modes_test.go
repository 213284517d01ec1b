package installs_test

import (
	"slices"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
)

// TestInstallModes installs an operator for one namespace and for all, and looks at what it may do and its pods are told.
func TestInstallModes(t *testing.T) {
	beds.Together(t)

	for name, c := range map[string]struct {
		targets func(own, a, b string) []string
		served  func(own, a, b string) (served, not []string)
	}{
		"SingleNamespace": {
			func(_, a, _ string) []string { return []string{a} },
			func(own, a, b string) ([]string, []string) { return []string{own, a}, []string{b, ""} },
		},
		"AllNamespaces": {
			func(string, string, string) []string { return nil },
			func(own, a, b string) ([]string, []string) { return []string{own, a, b, ""}, nil },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, "cluster")
			own, a, b := w.Namespace("own"), w.Namespace("a"), w.Namespace("b")
			g := w.group(own, operatorsv1.OperatorGroupSpec{TargetNamespaces: c.targets(own, a, b)})
			op := csv(own, "op.v1", clusterPermissions("get nodes"))
			w.Make(op)
			w.succeeds(op)

			served, not := c.served(own, a, b)
			for _, namespace := range served {
				w.May(own, "op", namespace, "get secrets")
			}

			for _, namespace := range not {
				if w.Allowed(own, "op", namespace, "get secrets") {
					t.Errorf("served in %q", namespace)
				}
			}

			w.May(own, "op", "", "get nodes")

			if all := len(not) == 0; all != w.Allowed(own, "op", "", "watch namespaces") {
				t.Errorf("to see all namespaces goes with serving all of them, got %t", !all)
			}

			w.told(op, g)
		})
	}
}

// TestUnsupportedModes has an operator that supports one mode, in groups of the other three.
func TestUnsupportedModes(t *testing.T) {
	w := begin(t, "cluster")
	own, a, b := w.Namespace("own"), w.Namespace("a"), w.Namespace("b")
	g := w.group(own, targets(a, b))
	op := csv(own, "op.v1", modes(olm.InstallModeTypeOwnNamespace))
	w.Make(op)
	w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonUnsupportedOperatorGroup,
		"MultiNamespace InstallModeType not supported, cannot configure to watch 2 namespaces")

	w.Change(g, func() { g.Spec.TargetNamespaces = []string{a} })
	w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonUnsupportedOperatorGroup,
		"SingleNamespace InstallModeType not supported, cannot configure to watch one namespace")

	w.Change(g, func() { g.Spec.TargetNamespaces = nil })
	w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonUnsupportedOperatorGroup,
		"AllNamespaces InstallModeType not supported, cannot configure to watch all namespaces")

	if w.Allowed(own, "op", own, "get secrets") || w.Allowed(own, "op", a, "get secrets") {
		t.Error("an operator that cannot be installed got permissions")
	}

	w.Change(g, func() { g.Spec.TargetNamespaces = []string{own} })
	w.succeeds(op)

	w.Change(op, func() { op.Spec.InstallModes = append(op.Spec.InstallModes, op.Spec.InstallModes[0]) })
	w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonInvalidInstallModes, "duplicates")
	w.MayNot(own, "op", own, "get secrets")
	w.Change(op, func() { op.Spec.InstallModes = slices.Delete(op.Spec.InstallModes, 4, 5) })
	w.succeeds(op)
}
