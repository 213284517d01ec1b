package catalog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Origin is where a ClusterServiceVersion comes from, and where it goes.
type Origin struct {
	Source, SourceNamespace string
	Package                 string
	// Namespace is that of the Subscription.
	Namespace string
	// Replaces is the version that is installed; empty at the first install.
	Replaces string
}

// Steps are the objects that an InstallPlan writes, in their order: first the definitions that a ClusterServiceVersion owns, so
// that it need not wait for them, and then the ClusterServiceVersion itself.
type Steps struct {
	Origin

	Version *Version
	// CSV is what the version holds, as types; the objects are as the catalog has them, because the types do not know every field.
	CSV *olmv1alpha1.ClusterServiceVersion
	// Objects are what is written.
	Objects []*unstructured.Unstructured
	// Notes are what is not written although somebody may expect it.
	Notes []string
}

// Steps returns the steps of the install of a version.
func (c *Catalog) Steps(v *Version, from Origin) *Steps {
	csv, err := readCSV(v.text)
	if err != nil {
		csv = &olmv1alpha1.ClusterServiceVersion{} // It was one when it was written.
	}

	s := &Steps{Origin: from, Version: v, CSV: csv}
	owned := csv.Spec.CustomResourceDefinitions.Owned
	written := sets.Set[string]{}

	for i := range owned {
		name := owned[i].Name
		if written.Has(name) || name == "" {
			continue // A definition is listed once for each of its versions.
		}

		written.Insert(name)

		if crd := c.definition(name, owned[i].Version); crd != nil {
			s.Objects = append(s.Objects, crd)

			continue
		}

		s.Notes = append(s.Notes, c.missing(name, owned[i].Version))
	}

	slices.SortFunc(s.Objects, func(a, b *unstructured.Unstructured) int { return cmp.Compare(a.GetName(), b.GetName()) })

	required := csv.Spec.CustomResourceDefinitions.Required
	for i := range required {
		if !written.Has(required[i].Name) {
			s.Notes = append(s.Notes, c.required(required[i].Name, required[i].Version))
		}
	}

	s.Notes = slices.Compact(slices.Sorted(slices.Values(s.Notes)))
	s.Objects = append(s.Objects, v.in(from))

	return s
}

func (c *Catalog) missing(name, version string) string {
	words := fmt.Sprintf("%s %s (%s) is owned, and the catalog does not hold it: somebody has to create it",
		definitionKind, name, orNothing(version))
	if why := c.unusable[name]; why != "" {
		words += "; what it holds cannot be used: " + why
	}

	return words
}

// required says who creates a definition that a version requires. Ambit does not: nobody subscribed to the operator that it
// belongs to, and a definition without its operator is of no use.
func (c *Catalog) required(name, version string) string {
	if pkg, owned := c.owners[name]; owned {
		return fmt.Sprintf("%s %s (%s) is required, and belongs to package %s: subscribe to that, too",
			definitionKind, name, orNothing(version), pkg)
	}

	return fmt.Sprintf("%s %s (%s) is required: it has to come from elsewhere", definitionKind, name, orNothing(version))
}

// Definitions are the CustomResourceDefinitions among the objects.
func (s *Steps) Definitions() []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(s.Objects), func(obj *unstructured.Unstructured) bool {
		return obj.GetKind() != definitionKind
	})
}

// clean reduces an object of a catalog to what is written: its name, labels, annotations and content, without what only the API
// server or a controller may say.
func clean(obj *unstructured.Unstructured) *unstructured.Unstructured {
	name, labels, annotations := obj.GetName(), obj.GetLabels(), obj.GetAnnotations()

	unstructured.RemoveNestedField(obj.Object, "status")
	unstructured.RemoveNestedField(obj.Object, "metadata")
	obj.SetName(name)

	if len(labels) > 0 {
		obj.SetLabels(labels)
	}

	if len(annotations) > 0 {
		obj.SetAnnotations(annotations)
	}

	return obj
}

// isStatusKey says whether OLM, Ambit or kubectl puts a label or annotation on a ClusterServiceVersion that exists. A catalog
// must not.
func isStatusKey(key string) bool {
	return slices.Contains([]string{
		"olm.copiedFrom", "olm.operatorGroup", "olm.operatorNamespace", "olm.targetNamespaces", "olm.owner", "olm.owner.kind",
		"olm.owner.namespace", "kubectl.kubernetes.io/last-applied-configuration",
	}, key) || strings.HasPrefix(key, "ambit.dev/")
}

// in is the ClusterServiceVersion as it is written into a namespace.
func (v *Version) in(from Origin) *unstructured.Unstructured {
	csv := read(v.text)
	csv.SetNamespace(from.Namespace)

	// A version that skips others replaces the installed one, and has to say so: by this the older one knows that it is being
	// replaced. OLM does the same (NewStepResourceFromBundle in pkg/controller/registry/resolver).
	if from.Replaces != "" {
		_ = unstructured.SetNestedField(csv.Object, from.Replaces, "spec", "replaces") // What came as a spec is one.
	}

	labels, annotations := csv.GetLabels(), csv.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}

	for _, marks := range []map[string]string{labels, annotations} {
		maps.DeleteFunc(marks, func(key, _ string) bool { return isStatusKey(key) })
	}

	labels[scope.PackageLabel(from.Package, from.Namespace)] = ""
	csv.SetLabels(labels)

	if len(annotations) > 0 {
		csv.SetAnnotations(annotations)
	} else {
		unstructured.RemoveNestedField(csv.Object, "metadata", "annotations")
	}

	return csv
}

// IsLabelled says whether labels say that a ClusterServiceVersion is of a package, or that it is of another one of its namespace.
// OLM and Ambit set the label on what they install. A name as long as a label's may be has been cut, and may be of any namespace.
func IsLabelled(labels map[string]string, pkg, namespace string) (is, otherwise bool) {
	if _, is = labels[scope.PackageLabel(pkg, namespace)]; is {
		return true, false
	}

	for label := range labels {
		name, marks := strings.CutPrefix(label, scope.PackagePrefix)
		otherwise = otherwise || marks && (strings.HasSuffix(name, "."+namespace) || len(name) == validation.LabelValueMaxLength)
	}

	return false, otherwise
}

// Digest is the same for the same steps, and for no others.
func (s *Steps) Digest() string {
	parts := append(make([]string, 0, 5+len(s.Objects)), s.Source, s.SourceNamespace, s.Package, s.Namespace, s.Version.Name)
	for _, obj := range s.Objects {
		parts = append(parts, manifestOf(obj))
	}

	return scope.Digest(32, parts...)
}

// manifestOf is an object in JSON, the same for the same object.
func manifestOf(obj *unstructured.Unstructured) string {
	text, err := json.Marshal(obj.Object)
	if err != nil {
		return "" // What came out of JSON goes into it.
	}

	return string(text)
}

// States are what is known of the steps before their objects are looked at again: what an InstallPlan has created stays created.
func States(s *Steps, was *olmv1alpha1.InstallPlanStatus) []olmv1alpha1.StepStatus {
	type object struct{ kind, name string }

	created := map[object]struct{}{}

	for _, step := range was.Plan {
		if step != nil && step.Status == olmv1alpha1.StepStatusCreated {
			created[object{step.Resource.Kind, step.Resource.Name}] = struct{}{}
		}
	}

	states := make([]olmv1alpha1.StepStatus, len(s.Objects))

	for i, obj := range s.Objects {
		states[i] = olmv1alpha1.StepStatusUnknown
		if _, is := created[object{obj.GetKind(), obj.GetName()}]; is {
			states[i] = olmv1alpha1.StepStatusCreated
		}
	}

	return states
}

// maxManifests is how many bytes of manifests an InstallPlan may hold: etcd takes requests of 1.5 MiB, in which they are escaped.
const maxManifests = 900 << 10

// Plan are the steps as an InstallPlan's status has them. states are those of the objects, in their order. If the manifests are
// too large together, those of the definitions are left out; they are in the catalog.
func (s *Steps) Plan(states []olmv1alpha1.StepStatus) []*olmv1alpha1.Step {
	plan := make([]*olmv1alpha1.Step, 0, len(s.Objects))
	size := 0

	for i, obj := range s.Objects {
		gvk := obj.GroupVersionKind()
		plan = append(plan, &olmv1alpha1.Step{
			Resolving: s.Version.Name,
			Status:    states[i],
			Resource: olmv1alpha1.StepResource{
				CatalogSource: s.Source, CatalogSourceNamespace: s.SourceNamespace,
				Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind, Name: obj.GetName(),
				Manifest: manifestOf(obj),
			},
		})
		size += len(plan[i].Resource.Manifest)
	}

	for _, step := range plan {
		if size > maxManifests && step.Resource.Kind == definitionKind {
			step.Resource.Manifest = ""
		}
	}

	return plan
}

// resourceOf is the resource of an object that an InstallPlan may write. There are two: the ConfigMap of a catalog has no place
// for others.
func resourceOf(obj *unstructured.Unstructured) string {
	if obj.GetKind() == definitionKind {
		return "customresourcedefinitions"
	}

	return "clusterserviceversions"
}

// Needs are the rights to write objects. An object with a UID exists and is patched, by its name. The request that creates one
// does not name it, so the right to create is for all names.
func Needs(objects []*unstructured.Unstructured) []authority.Place {
	out := make([]authority.Place, 0, len(objects))

	for _, obj := range objects {
		rule := rbacv1.PolicyRule{
			APIGroups: []string{obj.GroupVersionKind().Group}, Resources: []string{resourceOf(obj)}, Verbs: []string{"create"},
		}
		if obj.GetUID() != "" {
			rule.Verbs, rule.ResourceNames = []string{"patch"}, []string{obj.GetName()}
		}

		out = append(out, authority.Place{Namespace: obj.GetNamespace(), Rules: []rbacv1.PolicyRule{rule}})
	}

	return out
}
