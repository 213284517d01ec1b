package install

import (
	"fmt"
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
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

	return slices.Compact(slices.Sorted(slices.Values(apis)))
}

// TooManyToList says why a group cannot list what its operators provide; empty when it can. The API server takes no more of all
// annotations of an object together, and would refuse each attempt.
func TooManyToList(annotations map[string]string, provided string) string {
	with := merged(annotations, map[string]string{operatorsv1.ProvidedAPIsAnnotation: provided})
	if validation.ValidateAnnotationsSize(with) == nil {
		return ""
	}

	return fmt.Sprintf("the list of provided APIs has %d KiB, and an object has room for %d KiB of annotations: %s stays as it is, "+
		"and everything else is served; install some of the operators in another namespace",
		(len(provided)+1<<10-1)>>10, validation.TotalAnnotationSizeLimitB>>10, operatorsv1.ProvidedAPIsAnnotation)
}

// MayChange says whether rules allow to change objects of an API group that one of these APIs is of: whoever may not does not act
// on them.
func MayChange(rules []rbacv1.PolicyRule, apis []string) bool {
	groups := sets.New(rbacv1.APIGroupAll)

	for _, api := range apis {
		_, version, _ := strings.Cut(api, ".")
		_, group, _ := strings.Cut(version, ".")
		groups.Insert(group)
	}

	verbs := sets.New(rbacv1.VerbAll, "patch", "update")

	return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
		return groups.HasAny(r.APIGroups...) && verbs.HasAny(r.Verbs...) && len(r.Resources) > 0
	})
}

// common are the elements of a that are in b, which is sorted.
func common(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(x string) bool {
		_, found := slices.BinarySearch(b, x)

		return !found
	})
}

// ProvidedBy is Provided for a CSV as the cache has it, without reading all of it.
func ProvidedBy(csv map[string]any) []string {
	var apis []string

	for _, owned := range []struct {
		where string
		api   func(map[string]any) string
	}{
		{"customresourcedefinitions", func(d map[string]any) string {
			_, group, _ := strings.Cut(text(d, "name"), ".")

			return text(d, "kind") + "." + text(d, "version") + "." + group
		}},
		{"apiservicedefinitions", func(d map[string]any) string {
			return text(d, "kind") + "." + text(d, "version") + "." + text(d, "group")
		}},
	} {
		list, _, _ := unstructured.NestedFieldNoCopy(csv, "spec", owned.where, "owned")
		items, _ := list.([]any)

		for _, item := range items {
			if d, ok := item.(map[string]any); ok {
				apis = append(apis, owned.api(d))
			}
		}
	}

	return slices.Compact(slices.Sorted(slices.Values(apis)))
}

// Definitions are the names of the CustomResourceDefinitions that a CSV, as the cache has it, owns or requires.
func Definitions(csv map[string]any) []string {
	names := append(definitions(csv, "owned"), definitions(csv, "required")...)

	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// Owns says whether a CSV, as the cache has it, owns a CustomResourceDefinition, in whatever version.
func Owns(csv map[string]any, definition string) bool {
	return slices.Contains(definitions(csv, "owned"), definition)
}

func definitions(csv map[string]any, which string) []string {
	var names []string

	list, _, _ := unstructured.NestedFieldNoCopy(csv, "spec", "customresourcedefinitions", which)
	items, _ := list.([]any)

	for _, item := range items {
		if d, ok := item.(map[string]any); ok {
			names = append(names, text(d, "name"))
		}
	}

	return names
}

func text(fields map[string]any, key string) string {
	s, _ := fields[key].(string)

	return s
}

// static says why a CSV may not bring its APIs to its own group: the group's list must not grow.
func (w *Snapshot) static(csv *olm.ClusterServiceVersion) string {
	if apis := Provided(csv); w.Group.Static && len(common(apis, w.Group.Provided)) < len(apis) {
		return "static provided apis of operatorgroup " + w.Group.Name + " do not name all of " + strings.Join(apis, ", ")
	}

	return ""
}
