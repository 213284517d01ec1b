package install

import (
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Snapshot is what is known when the installs of a namespace are decided.
type Snapshot struct {
	Namespace string
	// Groups are those of the namespace. Group is the one that its CSVs are members of, when there is just one.
	Groups []*Group
	Group  *TargetedGroup
	// Problem says why Group has no targets.
	Problem string
	// Others are operators of other namespaces that run and bring APIs that CSVs of this one bring, too.
	Others []Operator
	// Holding are the namespaces in which each CSV, by name, holds permissions; the empty name stands for the whole cluster.
	Holding map[string]map[string]struct{}
	// CSVs are those of the namespace, without copies that OLM left, and without those that are being deleted.
	CSVs []*olm.ClusterServiceVersion

	// CRDs are all that exist, by name, and Serves says whether the API server knows a kind.
	CRDs   map[string]CRD
	Serves func(group, version, kind string) bool
	// IsClusterScoped says whether a resource is known to be in no namespace; nil where nothing is known.
	IsClusterScoped func(group, resource string) bool
	// Kubernetes is the version of the API server.
	Kubernetes string
	// AmbitNamespace is where Ambit runs.
	AmbitNamespace string
	// Configs are what Subscriptions say about the Deployments of a CSV, by its name.
	Configs map[string]*Config
	// Certificates are hashes of the newest authorities, by the Deployment that answers for webhooks with a certificate of it.
	Certificates map[string]string
	// Confined is what else is known where Ambit has rights in single namespaces only; nil elsewhere.
	Confined *Confined
	// Installed is what the namespace holds.
	facts.Installed

	chains *lineage
	// runners says of each CSV, by name, whether its operator runs.
	runners map[string]bool
	// keepers are the CSVs that keep a definition, by its name, and having those that have one of parts.
	keepers, having map[string]*olm.ClusterServiceVersion
}

// IsCopy says whether OLM copied a CSV from another namespace. Such a copy is nobody's to install.
func IsCopy(csv metav1.Object) bool {
	_, copied := csv.GetLabels()[olm.CopiedLabelKey]

	return copied
}

// lineage is which CSVs replace which.
func (w *Snapshot) lineage() *lineage {
	if w.chains == nil {
		w.chains = newLineage(w.CSVs, w.hasSucceeded)
	}

	return w.chains
}

// hasSucceeded says whether a CSV has succeeded, and its Deployments are ready: somebody else may have written the status, and
// what it replaces is deleted.
func (w *Snapshot) hasSucceeded(csv *olm.ClusterServiceVersion) bool {
	return csv.Status.Phase == olm.CSVPhaseSucceeded && !slices.ContainsFunc(csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs,
		func(s olm.StrategyDeploymentSpec) bool {
			d := w.Deployments[s.Name]

			return d == nil || !IsOwnedBy(d, csv) || waitsFor(d) != ""
		})
}

// IsInstalled says whether something of a CSV is there already: an install that has begun continues.
func (w *Snapshot) IsInstalled(csv *olm.ClusterServiceVersion) bool {
	if len(csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs) == 0 {
		return csv.Status.Phase == olm.CSVPhaseSucceeded
	}

	for _, d := range w.Deployments {
		if d != nil && d.Labels[scope.LabelOLMOwner] == ownerLabel(csv) && IsOwnedBy(d, csv) {
			return true
		}
	}

	// What is left out may run as well: its permissions are there.
	return w.leftOut(csv) != "" && len(w.Holding[csv.Name]) > 0
}

// leftOut is the name of a Deployment of a CSV that may exist, and that there was no room to remember; empty when there is none.
func (w *Snapshot) leftOut(csv *olm.ClusterServiceVersion) string {
	for _, spec := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		if _, known := w.Deployments[spec.Name]; !known && w.LeftOut.MayHave(spec.Name) {
			return spec.Name
		}
	}

	return ""
}

// keeps says whether a CSV that is being replaced keeps what it has, because pods of it may still run: its Deployments are there,
// or a later one has taken them over and rolls them out. One that never had anything gets nothing any more.
func (w *Snapshot) keeps(csv *olm.ClusterServiceVersion) bool {
	return w.IsInstalled(csv) || w.HasBegun(csv) &&
		slices.ContainsFunc(csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs, func(s olm.StrategyDeploymentSpec) bool {
			d := w.Deployments[s.Name]

			return d != nil && slices.ContainsFunc(w.CSVs, func(newer *olm.ClusterServiceVersion) bool {
				return IsOwnedBy(d, newer) && w.lineage().replaces(newer, csv)
			})
		})
}

// HasBegun says whether something was written for a CSV before its Deployments: permissions, or webhooks.
func (w *Snapshot) HasBegun(csv *olm.ClusterServiceVersion) bool {
	of := compile.CSVOwner(csv.Namespace, csv.Name).Hash()

	for _, live := range w.Webhooks {
		if live.Owner == of {
			return true
		}
	}

	return len(w.Holding[csv.Name]) > 0
}

// runs says whether an operator is there, in the version of a CSV or in one that this replaces. What is there is looked at once,
// before anything is written.
func (w *Snapshot) runs(csv *olm.ClusterServiceVersion) bool {
	if w.runners == nil {
		w.runners = w.lineage().spread(w.IsInstalled)
	}

	return w.runners[csv.Name]
}

// held are the namespaces in which an operator holds permissions, in the version of a CSV or in one that this replaces.
func (w *Snapshot) held(csv *olm.ClusterServiceVersion) map[string]struct{} {
	out := w.Holding[csv.Name]

	for _, other := range w.CSVs {
		if held := w.Holding[other.Name]; len(held) > 0 && w.lineage().replaces(csv, other) {
			out = merged(out, held)
		}
	}

	return out
}
