package read

import (
	"cmp"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
)

// operatorNamespace holds the records of one namespace that has a scope.
type operatorNamespace struct {
	records

	roles     table[[]rbacv1.PolicyRule]
	bindings  table[facts.Binding]
	accounts  table[struct{}]
	workloads map[facts.WorkloadKind]*table[facts.Workload]
	pods      table[facts.Pod]
	maps      table[facts.ConfigMap]
	followers table[follower]

	olm olm
	// keepsLegacy are the marks of IBM's operator that matter to the operator namespace, sorted.
	keepsLegacy []string
}

// allowanceOf is how many bytes of memory may be filled with what one kind has in one operator namespace. Thousands of Roles, and
// as many pods, fit.
const allowanceOf = 6 << 20

func newOperatorNamespace(changed func()) *operatorNamespace {
	h := &operatorNamespace{
		workloads: map[facts.WorkloadKind]*table[facts.Workload]{}, records: records{allowances: allowances{}, stop: func() {}},
	}
	h.followers.changed = func(types.NamespacedName, *follower, *follower) { changed() }
	h.roles.changed = func(types.NamespacedName, *[]rbacv1.PolicyRule, *[]rbacv1.PolicyRule) { changed() }
	h.bindings.changed = func(types.NamespacedName, *facts.Binding, *facts.Binding) { changed() }
	h.accounts.changed = func(types.NamespacedName, *struct{}, *struct{}) { changed() }
	h.olm.csvs.changed = func(types.NamespacedName, *facts.CSV, *facts.CSV) { changed() }
	h.pods.changed = func(types.NamespacedName, *facts.Pod, *facts.Pod) { changed() }
	h.pods.carryOver = births(func(p *facts.Pod) *facts.Birth { return &p.Birth })
	h.maps.carryOver = func(before *facts.ConfigMap, now facts.ConfigMap, _ arrival) facts.ConfigMap {
		now.ListVersion = now.Version
		if before != nil && before.ListHash == now.ListHash {
			now.ListVersion = before.ListVersion
		}

		return now
	}
	h.maps.changed = func(_ types.NamespacedName, before, after *facts.ConfigMap) {
		if concernsList(before) || concernsList(after) {
			changed()
		}
	}

	for i := range facts.WorkloadTypes {
		h.workloads[facts.WorkloadTypes[i].Kind] = &table[facts.Workload]{
			changed:   func(types.NamespacedName, *facts.Workload, *facts.Workload) { changed() },
			carryOver: births(func(w *facts.Workload) *facts.Birth { return &w.Birth }),
		}
	}

	h.kinds = h.allKinds()

	return h
}

// births carries over the version with which an object was created, as long as it is the same object.
func births[R any](of func(*R) *facts.Birth) func(before *R, now R, a arrival) R {
	return func(before *R, now R, a arrival) R {
		is := of(&now)

		switch {
		case before != nil && of(before).Created.Equal(is.Created):
			is.BornAt = of(before).BornAt
		case a.born:
			is.BornAt = a.version
		default:
			is.BornAt = 0
		}

		return now
	}
}

// concernsList says whether a ConfigMap can matter to a watch list: it holds one, or bears Ambit's marks, or stands in the
// way by being immutable.
func concernsList(cm *facts.ConfigMap) bool {
	return cm != nil && (cm.HasList || cm.Ours() || cm.Immutable)
}

// bindsClusterRole says whether a RoleBinding there refers to a ClusterRole.
func (h *operatorNamespace) bindsClusterRole(name string) bool {
	for _, r := range h.bindings.rows {
		if ref := &r.record.RoleRef; ref.Kind == string(projected.ClusterRole) && ref.Name == name {
			return true
		}
	}

	return false
}

func (h *operatorNamespace) facts() facts.OperatorNamespace {
	f := facts.OperatorNamespace{
		LeftOut:    h.allowances.leftOut(),
		Roles:      h.roles.byName(),
		Bindings:   h.bindings.byName(),
		Accounts:   h.accounts.byName(),
		ConfigMaps: h.maps.byName(),
	}

	for _, workloads := range h.workloads {
		for _, r := range workloads.rows {
			w := r.record
			w.Version = r.version
			f.Workloads = append(f.Workloads, w)
		}
	}

	slices.SortFunc(f.Workloads, func(a, b facts.Workload) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})

	f.Followers = h.factsOfFollowers()

	for _, r := range h.pods.rows {
		f.Pods = append(f.Pods, r.record)
	}

	slices.SortFunc(f.Pods, func(a, b facts.Pod) int { return cmp.Compare(a.Name, b.Name) })

	f.CSVsDecided, f.CSVsListed = h.olm.decided, h.olm.listed

	for _, r := range h.olm.csvs.rows {
		csv := r.record
		csv.Version = r.version
		f.CSVs = append(f.CSVs, csv)
	}

	slices.SortFunc(f.CSVs, func(a, b facts.CSV) int { return cmp.Compare(a.Name, b.Name) })

	return f
}
