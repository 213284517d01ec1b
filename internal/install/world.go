package install

import (
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// World is what is known when the installs of a namespace are decided.
type World struct {
	Namespace string
	// Groups are those of the namespace. Sphere is the one that its CSVs are members of, when there is just one.
	Groups []*Group
	Sphere *Sphere
	// Problem says why Sphere has no targets.
	Problem string
	// Others are the groups of other namespaces with their targets.
	Others []Sphere
	// CSVs are those of the namespace, without copies that OLM left, and without those that are being deleted.
	CSVs []*olm.ClusterServiceVersion

	// CRDs are all that exist, by name, and Serves says whether the API server knows a kind.
	CRDs   map[string]CRD
	Serves func(group, version, kind string) bool
	// Kubernetes is the version of the API server.
	Kubernetes string
	// Installed is what the namespace holds.
	facts.Installed
}

// IsCopy says whether OLM copied a CSV from another namespace. Such a copy is nobody's to install.
func IsCopy(csv *olm.ClusterServiceVersion) bool {
	_, copied := csv.Labels[olm.CopiedLabelKey]

	return copied
}

// earlier are the CSVs that one replaces, in one step or in several, the nearest first. One that would replace itself, directly
// or by way of others, replaces nothing.
func (w *World) earlier(csv *olm.ClusterServiceVersion) []*olm.ClusterServiceVersion {
	var out []*olm.ClusterServiceVersion

	for at := csv; ; at = out[len(out)-1] {
		i := slices.IndexFunc(w.CSVs, func(other *olm.ClusterServiceVersion) bool { return other.Name == at.Spec.Replaces })

		switch {
		case i < 0 || slices.Contains(out, w.CSVs[i]):
			return out
		case w.CSVs[i].Name == csv.Name:
			return nil
		}

		out = append(out, w.CSVs[i])
	}
}

// later are the CSVs that replace one, in one step or in several.
func (w *World) later(csv *olm.ClusterServiceVersion) []*olm.ClusterServiceVersion {
	return slices.DeleteFunc(slices.Clone(w.CSVs), func(other *olm.ClusterServiceVersion) bool { return !w.replaces(other, csv) })
}

// replaces says whether one CSV replaces another, in one step or in several.
func (w *World) replaces(newer, older *olm.ClusterServiceVersion) bool {
	return slices.ContainsFunc(w.earlier(newer), func(c *olm.ClusterServiceVersion) bool { return c.Name == older.Name })
}

// IsInstalled says whether something of a CSV is there already: an install that has begun goes on.
func (w *World) IsInstalled(csv *olm.ClusterServiceVersion) bool {
	if len(csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs) == 0 {
		return csv.Status.Phase == olm.CSVPhaseSucceeded
	}

	for _, d := range w.Deployments {
		if d != nil && d.Labels[labelOwner] == ownerLabel(csv) && isOwnedBy(d, csv) {
			return true
		}
	}

	return false
}

// runsStill says whether pods of a CSV may run that is being replaced: its Deployments are there, or a later one has taken them
// over and rolls them out.
func (w *World) runsStill(csv *olm.ClusterServiceVersion, later []*olm.ClusterServiceVersion) bool {
	return w.IsInstalled(csv) ||
		slices.ContainsFunc(csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs, func(s olm.StrategyDeploymentSpec) bool {
			d := w.Deployments[s.Name]

			return d != nil && slices.ContainsFunc(later, func(newer *olm.ClusterServiceVersion) bool { return isOwnedBy(d, newer) })
		})
}

// isOwnedBy says whether a Deployment goes with a CSV. The label alone can be written by anybody who may write it.
func isOwnedBy(d *appsv1.Deployment, csv *olm.ClusterServiceVersion) bool {
	for _, r := range d.OwnerReferences {
		if r.UID == csv.UID {
			return true
		}
	}

	return false
}
