package report

import (
	"strconv"
	"testing"
)

// TestIdleNamespacesAreForgotten holds that what a namespace has stays as long as something is in it, and that the rest takes no
// more room than some namespaces need.
func TestIdleNamespacesAreForgotten(t *testing.T) {
	t.Parallel()

	of := &byNamespace[*int]{begin: func() *int { return new(int) }, isIdle: func(n *int) bool { return *n == 0 }}

	busy := of.in("busy")
	*busy = 1

	for i := range 3 * maxNamespaces {
		if n := of.in(strconv.Itoa(i)); *n != 0 {
			t.Fatalf("namespace %d begins with %d", i, *n)
		}
	}

	if len(of.of) > maxNamespaces+1 || of.in("busy") != busy {
		t.Errorf("%d namespaces are remembered, among them the busy one: %t", len(of.of), of.in("busy") == busy)
	}
}
