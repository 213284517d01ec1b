package read

import (
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Once is a store that is filled by hand, from what was listed once: for a command that looks, answers and ends. It makes the
// same facts of the same objects as the watches do. It is not for several goroutines at once.
type Once struct {
	// Store is what is filled, for the manager's own reconcilers.
	Store *Store
}

// silent is a listener that needs no news.
type silent struct{}

// KeyChanged does nothing, like the others.
func (silent) KeyChanged(scope.Key) {}

// KeyUnblocked does nothing.
func (silent) KeyUnblocked(scope.Key) {}

// NamespaceChanged does nothing.
func (silent) NamespaceChanged(string, *facts.Namespace, *facts.Namespace) {}

// PermissionsChanged does nothing.
func (silent) PermissionsChanged(string) {}

// ClusterPermissionsChanged does nothing.
func (silent) ClusterPermissionsChanged(facts.ClusterPermissions) {}

// ClusterChanged does nothing.
func (silent) ClusterChanged([]scope.Key, bool) {}

// EverythingChanged does nothing.
func (silent) EverythingChanged() {}

// NewOnce returns a store that knows nothing, of these operator namespaces.
func NewOnce(operatorNamespaces []string) *Once {
	s := NewStore(silent{})
	for _, name := range operatorNamespaces {
		s.operatorNamespaces[name] = newOperatorNamespace(func() {})
	}

	return &Once{Store: s}
}

// Later is later than any resource version of a cluster. What is written in memory, from the lists on, begins there.
const Later = 1 << 62

// Settle decides what can only be known by watching: whether a reader that came into being within the second of its list, or of
// the deletion of a scope, came before it. The manager restarted those that did, so what is there now came after. deleted are the
// times at which scopes that are still there were deleted, by namespace.
func (o *Once) Settle(deleted map[string][]time.Time) {
	for name, h := range o.Store.operatorNamespaces {
		settle := func(b *facts.Birth, reads []string) {
			if slices.ContainsFunc(deleted[name], b.InDoubt) || slices.ContainsFunc(reads, func(list string) bool {
				cm, exists := h.maps.rows[types.NamespacedName{Namespace: name, Name: list}]

				return exists && cm.record.Ours() && b.InDoubt(cm.record.ChangedAt())
			}) {
				b.BornAt = Later - 1
			}
		}

		settleRows(&h.pods, func(p *facts.Pod) { settle(&p.Birth, p.Reads) })

		for _, t := range h.workloads {
			settleRows(t, func(w *facts.Workload) { settle(&w.Birth, w.Template.Reads) })
		}
	}
}

func settleRows[R any](t *table[R], settle func(*R)) {
	for key, r := range t.rows {
		settle(&r.record)
		t.rows[key] = r
	}
}

// End takes out an object that is gone, as the watches do. version is that of its deletion; 0 where Ambit itself deleted it, so
// that nothing is lost.
func (o *Once) End(obj client.Object, version uint64) {
	switch obj.(type) {
	case *rbacv1.Role, *rbacv1.RoleBinding:
	default:
		version = 0 // No copy of anything else is ever missed.
	}

	for _, h := range o.Store.holdersOf(obj) {
		h.drop(client.ObjectKeyFromObject(obj), version)
	}
}

// Add stores an object of any kind that the watches would look at.
func (o *Once) Add(obj client.Object) {
	for _, h := range o.Store.holdersOf(obj) {
		h.takeIn(obj, arrivalOf(obj))
	}
}

// Install says that something is installed in a namespace, of which everything that is added counts from now on. It returns
// whether that is new.
func (o *Once) Install(namespace string) bool {
	if _, watched := o.Store.installs[namespace]; watched {
		return false
	}

	o.Store.installs[namespace] = newInstalls(func() {})

	return true
}

// Catalog says that a ConfigMap holds a catalog, before it is added, and returns whether that is new.
func (o *Once) Catalog(namespace, name string) bool {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	if _, watched := o.Store.catalogs[key]; watched {
		return false
	}

	o.Store.catalogs[key] = &catalogWatch{listed: listed[Catalog]{isListed: true}, stop: func() {}}

	return true
}

// CSVs says that the ClusterServiceVersions of an operator namespace were asked for, and whether they could be listed.
func (o *Once) CSVs(operatorNamespace string, listed bool) {
	if h, isOperatorNamespace := o.Store.operatorNamespaces[operatorNamespace]; isOperatorNamespace {
		h.olm.decided, h.olm.listed, h.olm.stop = true, listed, func() {}
	}
}

// Abandoned returns the facts of each namespace that projected objects point to and that is none of the operator namespaces, or
// in which something was installed: a plan without scopes names what is left of them.
func (o *Once) Abandoned(now time.Time) []*facts.Facts {
	var out []*facts.Facts

	for in := range o.Store.projected.buckets {
		_, has := o.Store.operatorNamespaces[in.key.Namespace]
		if in.key.Family != scope.Installs && (has || in.key.Family != scope.NamespaceScopes) {
			continue
		}

		if f, listed := o.Store.Leftovers(in.key, now); listed {
			out = append(out, f)
		}
	}

	slices.SortFunc(out, func(a, b *facts.Facts) int { return a.Key.Compare(b.Key) })

	return out
}

func arrivalOf(obj client.Object) arrival {
	return arrival{version: scope.ParseVersion(obj.GetResourceVersion())}
}
