package read

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// clusterTable holds what is known of every ClusterRole, or ClusterRoleBinding, whoever made it. Those that Ambit made are
// among the projected objects as well.
type clusterTable = table[clusterRecord]

type clusterRecord struct {
	version uint64
	// made says that the API server recorded Ambit as a writer of it.
	made bool
	// projected is set where the object bears a mark of Ambit. It is handed on, and not kept here.
	projected *projectedRecord
}

func convertCluster(obj client.Object) (clusterRecord, bool) {
	r := clusterRecord{version: scope.ParseVersion(obj.GetResourceVersion()), made: writtenByAmbit(obj.GetManagedFields())}
	if p, marked := convertProjected(obj); marked {
		r.projected = &p
	}

	return r, true
}

// clusterSink fills a table of cluster-scoped objects, and the projected objects among them into theirs.
func (s *Store) clusterSink(kind projected.Kind, t *clusterTable) sink[clusterRecord] {
	of := s.projected.sink(kind)

	return sink[clusterRecord]{
		convert: convertCluster,
		put: func(key types.NamespacedName, r clusterRecord, a arrival) {
			if r.projected != nil {
				of.put(key, *r.projected, a)
			} else {
				of.drop(key, a.version)
			}

			r.projected = nil
			t.put(key, r, a)
		},
		drop: func(key types.NamespacedName, version uint64) {
			of.drop(key, version)
			t.drop(key, version)
		},
		keys: t.keys,
	}
}
