package install

import (
	"fmt"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

const (
	// maxAdded bounds the bytes of memory that all Deployments of a CSV take for what each of them gets besides what it says itself:
	// the annotations of the CSV, and what a Subscription says, which each container gets, too. As large as objects can be, they
	// would take gigabytes together.
	maxAdded = 8 << 20
	// maxCompared bounds how often what a Subscription says is compared with what a container or a pod has.
	maxCompared = 500_000
)

// multiplies says why the Deployments of a CSV would take far more than what is written about them; empty when they do not.
func (w *Snapshot) multiplies(csv *olm.ClusterServiceVersion) string {
	const entry = 64

	config := w.Configs[csv.Name]
	if config == nil {
		config = &Config{}
	}

	added, compared := 0, 0
	says, specs := &config.Says, csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs

	for i := range specs {
		pod := &specs[i].Spec.Template.Spec
		added += entry*len(csv.Annotations) + config.size*(1+len(pod.Containers))
		compared += len(pod.Tolerations)*len(says.Tolerations) + len(pod.Volumes)*len(says.Volumes)

		for j := range pod.Containers {
			has := &pod.Containers[j]
			compared += len(has.Env)*len(says.Env) + len(has.EnvFrom)*len(says.EnvFrom) + len(has.VolumeMounts)*len(says.VolumeMounts)
		}
	}

	if added <= maxAdded && compared <= maxCompared {
		return ""
	}

	return fmt.Sprintf("its %d deployments are too many for its annotations, or for what a Subscription says about each of their "+
		"containers: with these they take %d MiB more, and the limit is %d, or take %d comparisons, and the limit is %d",
		len(specs), added>>20, maxAdded>>20, compared, maxCompared)
}
