package snapshot

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/simulation"
)

// Simulation is a cluster in memory of what was read, in which a manager serves scopes. From then on, facts are those of that
// cluster.
func (s *Snapshot) Simulation(
	scheme *runtime.Scheme, mapper meta.RESTMapper, m *predict.Manager, holds simulation.Asker,
) (*simulation.Scopes, error) {
	out := simulation.NewScopes(scheme, mapper, s.once, s.taken)
	out.Self = m.Self()
	out.Holds(holds)
	out.Live = func(namespace string, key facts.ProjectedKey) client.Object {
		return s.Live[facts.ClusterKey{Namespace: namespace, ProjectedKey: key}]
	}

	for _, obj := range slices.Concat(s.beside, s.proposed) {
		if _, is := obj.(*corev1.Namespace); is {
			continue
		}

		if err := out.Add(obj); err != nil {
			return nil, fmt.Errorf("reading %s: %w", obj.GetName(), err)
		}
	}

	return out, nil
}
