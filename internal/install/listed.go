package install

import (
	"maps"
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/sets"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/compile"
)

// Listed are the namespaces that a CSV's annotation names for its operator to watch; the empty name alone stands for all.
func Listed(csv *olm.ClusterServiceVersion) []string {
	value, found := csv.Annotations[operatorsv1.TargetsAnnotation]
	if !found {
		return nil
	}

	return strings.Split(value, ",")
}

// Readiness is what a target has of an operator's permissions.
type Readiness int

const (
	// Ready is a target in which all of them are.
	Ready Readiness = iota
	// Late is a target in which some are missing, for a reason that may pass by itself.
	Late
	// Refused is a target in which some were refused.
	Refused
	// Missing is a target that does not exist.
	Missing
)

// Membership are the annotations of a member of a group. The annotation names the targets that are ready; a target that it names
// already stays while it exists. While there are none of either, it names those that are closest to ready: an empty list would
// mean all namespaces, as a missing annotation on the Deployment would, and the list as it was would keep what was taken from the
// group.
func Membership(
	csv *olm.ClusterServiceVersion, targeted *TargetedGroup, readiness func(namespace string) Readiness,
) map[string]string {
	want := map[string]string{
		operatorsv1.GroupAnnotation: targeted.Name, operatorsv1.GroupNamespaceAnnotation: targeted.Namespace,
	}

	before := sets.New(Listed(csv)...)
	byReadiness := map[Readiness][]string{}

	for _, name := range targeted.Targets {
		is := readiness(name)
		if before.Has(name) && is != Missing {
			is = Ready
		}

		byReadiness[is] = append(byReadiness[is], name)
	}

	nearest := slices.Min(append(slices.Collect(maps.Keys(byReadiness)), Missing))
	if compile.IsEverywhere(targeted.Targets) {
		nearest = Ready // The empty name is all namespaces, on purpose.
	}

	targets := byReadiness[nearest]
	stays := slices.DeleteFunc(slices.Clone(targets), func(name string) bool { return !before.Has(name) })

	if nearest == Missing && len(stays) > 0 {
		targets = stays // No pod begins anew because the last one is gone.
	}

	if len(targets) > 0 {
		want[operatorsv1.TargetsAnnotation] = strings.Join(targets, ",")
	}

	return want
}

// IsAnnotatedWithMore says whether a CSV's annotation names a namespace that its group does not have.
func IsAnnotatedWithMore(csv *olm.ClusterServiceVersion, targeted *TargetedGroup) bool {
	if compile.IsEverywhere(targeted.Targets) {
		return false
	}

	has := sets.New(targeted.Targets...)

	return slices.ContainsFunc(Listed(csv), func(name string) bool { return !has.Has(name) })
}

// Differing are the annotations that an object lacks.
func Differing(have, want map[string]string) map[string]string {
	out := map[string]string{}

	for key, value := range want {
		if now, found := have[key]; !found || now != value {
			out[key] = value
		}
	}

	return out
}
