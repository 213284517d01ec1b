package read

import (
	"cmp"
	"slices"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// maxForeign bounds the bindings of others that are remembered of a namespace. Who makes more is told of these.
const maxForeign = 100

// foreignTable holds the bindings of others that refer to copies. Whoever holds the rules of a copy may make such bindings, as
// many as there is room for.
type foreignTable struct {
	rows  map[projectedKey]foreignRow
	count map[string]int
	// changed is told the copy.
	changed func(role projectedKey)
}

type foreignRow struct {
	role    projectedKey
	version uint64
}

func (t *foreignTable) put(key, role projectedKey, a arrival) {
	before, known := t.rows[key]
	if known && a.version != 0 && a.version < before.version || !known && t.count[key.namespace] >= maxForeign {
		return
	}

	if t.rows == nil {
		t.rows, t.count = map[projectedKey]foreignRow{}, map[string]int{}
	}

	t.rows[key] = foreignRow{role, a.version}

	if !known {
		t.count[key.namespace]++
		t.changed(role)
	}
}

func (t *foreignTable) drop(key projectedKey, version uint64) {
	before, known := t.rows[key]
	if !known || version != 0 && version < before.version {
		return
	}

	t.remove(key)
	t.changed(before.role)
}

func (t *foreignTable) remove(key projectedKey) {
	delete(t.rows, key)

	if t.count[key.namespace]--; t.count[key.namespace] == 0 {
		delete(t.count, key.namespace)
	}
}

func (t *foreignTable) forget(namespace string) {
	for key := range t.rows {
		if key.namespace == namespace {
			t.remove(key)
		}
	}
}

// of returns the bindings that refer to copies of an operator namespace.
func (t *foreignTable) of(isOperatorNamespace func(role projectedKey) bool) map[string][]facts.ForeignBinding {
	out := map[string][]facts.ForeignBinding{}

	for key, row := range t.rows {
		if isOperatorNamespace(row.role) {
			out[key.namespace] = append(out[key.namespace], facts.ForeignBinding{
				Kind: key.Kind, Name: key.Name, Role: row.role.ProjectedKey,
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
