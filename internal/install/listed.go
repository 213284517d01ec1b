package install

import (
	"slices"
	"strings"

	olmv1 "github.com/operator-framework/api/pkg/operators/v1"
	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// The annotations that tell an operator of its group (pkg/operators/v1 of operator-framework/api). OLM's documents call
// the second olm.operatorGroupNamespace, its code does not.
const (
	AnnotationGroup          = olmv1.OperatorGroupAnnotationKey
	AnnotationGroupNamespace = olmv1.OperatorGroupNamespaceAnnotationKey
	AnnotationTargets        = olmv1.OperatorGroupTargetsAnnotationKey
	// AnnotationProvided on an OperatorGroup lists the APIs of its members.
	AnnotationProvided = olmv1.OperatorGroupProvidedAPIsAnnotationKey
)

// Listed are the namespaces that a CSV's annotation tells its operator to watch; the empty name alone stands for all.
func Listed(csv *olm.ClusterServiceVersion) []string {
	value, found := csv.Annotations[AnnotationTargets]
	if !found {
		return nil
	}

	return strings.Split(value, ",")
}

// Membership are the annotations of a member of a group. ready are the targets that an operator may be told to watch; a
// target that it watches already stays. Without any, the list is left as it is: an empty one would mean all namespaces.
func Membership(csv *olm.ClusterServiceVersion, sphere *Sphere, ready func(namespace string) bool) map[string]string {
	want := map[string]string{
		AnnotationGroup: sphere.Group.Name, AnnotationGroupNamespace: sphere.Group.Namespace,
	}

	listed := Listed(csv)

	var targets []string

	for _, name := range sphere.Targets {
		if ready(name) || slices.Contains(listed, name) {
			targets = append(targets, name)
		}
	}

	if len(targets) > 0 {
		want[AnnotationTargets] = strings.Join(targets, ",")
	}

	return want
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
