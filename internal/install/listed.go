package install

import (
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"

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

// Membership are the annotations of a member of a group. ready are the targets that the annotation may name; a target that it
// names already stays. While there is none of either, the annotation names all of them, as with OLM: an empty list would mean
// all namespaces, to the Deployment that lacks it as well, and the list of before would keep what was taken from the group.
func Membership(csv *olm.ClusterServiceVersion, targeted *TargetedGroup, ready func(namespace string) bool) map[string]string {
	want := map[string]string{
		operatorsv1.GroupAnnotation: targeted.Name, operatorsv1.GroupNamespaceAnnotation: targeted.Namespace,
	}

	listed := map[string]struct{}{}
	for _, name := range Listed(csv) {
		listed[name] = struct{}{}
	}

	var targets []string

	for _, name := range targeted.Targets {
		if _, is := listed[name]; is || ready(name) {
			targets = append(targets, name)
		}
	}

	if len(targets) == 0 && !compile.IsEverywhere(targeted.Targets) {
		targets = targeted.Targets
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

	has := make(map[string]struct{}, len(targeted.Targets))
	for _, name := range targeted.Targets {
		has[name] = struct{}{}
	}

	return slices.ContainsFunc(Listed(csv), func(name string) bool {
		_, is := has[name]

		return !is
	})
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
