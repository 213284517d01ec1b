package install

import (
	"cmp"
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
)

// Provided are the APIs that a CSV brings, as kind.version.group, sorted.
func Provided(csv *olm.ClusterServiceVersion) []string {
	owned, served := csv.Spec.CustomResourceDefinitions.Owned, csv.Spec.APIServiceDefinitions.Owned
	apis := make([]string, 0, len(owned)+len(served))

	for _, crd := range owned {
		_, group, _ := strings.Cut(crd.Name, ".")
		apis = append(apis, crd.Kind+"."+crd.Version+"."+group)
	}

	for _, api := range served {
		apis = append(apis, api.Kind+"."+api.Version+"."+api.Group)
	}

	slices.Sort(apis)

	return slices.Compact(apis)
}

// conflict says why a CSV may not bring its APIs to a group: another group that has a namespace in common brings one of them
// already, or the group's own list must not grow. Of two groups that came to list the same API at the same time, the older
// keeps it.
func conflict(csv *olm.ClusterServiceVersion, own *Sphere, others []Sphere) (olm.ConditionReason, string) {
	apis := Provided(csv)
	if len(apis) == 0 {
		return "", ""
	}

	for i := range others {
		other := &others[i]
		if other.Group.UID == own.Group.UID || !overlaps(own, other) || !haveCommon(apis, other.Group.Provided) {
			continue
		}

		if !isSubset(apis, own.Group.Provided) || !isOlder(own.Group, other.Group) {
			return olm.CSVReasonInterOperatorGroupOwnerConflict, "intersecting operatorgroups provide the same apis: " +
				strings.Join(common(apis, other.Group.Provided), ", ") + " by operatorgroup " +
				other.Group.Namespace + "/" + other.Group.Name
		}
	}

	if own.Group.Static && !isSubset(apis, own.Group.Provided) {
		return olm.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs,
			"static provided apis of operatorgroup " + own.Group.Name + " do not name all of " + strings.Join(apis, ", ")
	}

	return "", ""
}

func common(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(x string) bool { return !slices.Contains(b, x) })
}

func haveCommon(a, b []string) bool { return len(common(a, b)) > 0 }

func isSubset(a, b []string) bool { return len(common(a, b)) == len(a) }

func isOlder(a, b *Group) bool {
	return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.UID, b.UID)) < 0
}
