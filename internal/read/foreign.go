package read

import (
	"cmp"
	"slices"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// maxForeign bounds the bindings of others to copies that are remembered of a namespace. Whoever holds the rules of a copy may
// make such bindings, as many as there is room for. Those beyond the bound are not named in status.
const maxForeign = 100

// foreignOf returns the bindings of others that refer to copies for a reconcile key.
func (t *projectedTable) foreignOf(reconcileKey scope.Key) map[string][]facts.ForeignBinding {
	out := map[string][]facts.ForeignBinding{}

	for role, bindings := range t.foreign.about {
		if !t.isOf(role, reconcileKey) {
			continue
		}

		for key := range bindings {
			out[key.namespace] = append(out[key.namespace], facts.ForeignBinding{
				Kind: key.Kind, Name: key.Name, Role: role.ProjectedKey,
			})
		}
	}

	for _, bindings := range out {
		slices.SortFunc(bindings, func(a, b facts.ForeignBinding) int {
			return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
		})
	}

	return out
}
