package narrow

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/reach"
)

// TestWorkGrowsWithTheInput holds that four times as many operators in one input take about four times the work. It counts what
// is allocated: times depend on the machine.
//
//nolint:paralleltest // What other tests allocate would count, too.
func TestWorkGrowsWithTheInput(t *testing.T) {
	const few, times = 50, 4

	work := func(n int) float64 {
		var b strings.Builder
		for i := range n {
			account := fmt.Sprintf("{kind: ServiceAccount, name: op%d, namespace: ops}", i)
			b.WriteString(toWhom(fmt.Sprintf("role-%d", i), "secrets", account))
		}

		return testing.AllocsPerRun(1, func() {
			o := &Options{Kinds: reach.NewKinds(), As: AsScope, Members: []string{"a"}}
			if _, err := Narrow(stream(t, b.String()), o); err != nil {
				t.Error(err)
			}
		})
	}

	if small, large := work(few), work(few*times); large > small*(times+1) {
		t.Errorf("%d operators take %.0f allocations, and %d take %.0f", few, small, few*times, large)
	}
}

// TestHoweverManyRights holds that rules are refused which stand for more rights than are compared, also where there are so many
// that their number fits into no integer: four lists of 65,536 words stand for 2^64.
func TestHoweverManyRights(t *testing.T) {
	t.Parallel()

	words := make([]string, 1<<16)
	for i := range words {
		words[i] = fmt.Sprintf("w%d", i)
	}

	list := "[" + strings.Join(words, ",") + "]"
	role := "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\nrules: [{apiGroups: " + list +
		", resources: " + list + ", verbs: " + list + ", resourceNames: " + list + "}]\n"

	if _, err := gather(stream(t, role), "", reach.NewKinds()); !errors.Is(err, errTooManyRights) {
		t.Errorf("it says %v", err)
	}
}
