package preflight

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/preflight"
)

// kindOfDefinitions is the kind of CustomResourceDefinitions, in any version.
var kindOfDefinitions = schema.GroupKind{ //nolint:gochecknoglobals // A struct can be no constant.
	Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition",
}

// kinds finds out what the API server calls the kinds of documents. One that the cluster does not know yet counts as the
// definition among the documents has it, because that is what it will be.
type kinds struct {
	view    *inquiry
	defined map[schema.GroupKind]*facts.Definition
	// unknown names the documents of which nobody knows the kind.
	unknown map[schema.GroupVersionKind][]string
}

func (v *inquiry) kindsOf(documents []files.Document) *kinds {
	k := &kinds{view: v, defined: map[schema.GroupKind]*facts.Definition{}, unknown: map[schema.GroupVersionKind][]string{}}

	for _, d := range documents {
		if d.GroupVersionKind() == kindOfDefinitions.WithVersion(apiextensionsv1.SchemeGroupVersion.Version) {
			one := facts.ReadDefinition(d.Unstructured)
			k.defined[one.Kind] = one
		}
	}

	return k
}

// objects are the documents of which the kind is known. The others are left out, and notes name them.
func (k *kinds) objects(documents []files.Document) ([]preflight.Object, error) {
	out := make([]preflight.Object, 0, len(documents))

	for _, d := range documents {
		resource, namespaced, err := k.find(d.GroupVersionKind())
		if meta.IsNoMatchError(err) {
			k.unknown[d.GroupVersionKind()] = append(k.unknown[d.GroupVersionKind()], placeOf(d))

			continue
		}

		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Source, err)
		}

		obj, err := files.Typed(k.view.Scheme(), d.Unstructured)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Source, err)
		}

		if obj == nil {
			obj = d.Unstructured
		}

		out = append(out, preflight.Object{Object: obj, Resource: resource, Namespaced: namespaced})
	}

	return out, nil
}

// find says what the API server calls a kind.
func (k *kinds) find(gvk schema.GroupVersionKind) (resource schema.GroupResource, namespaced bool, err error) {
	mapping, err := k.view.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
	if err == nil {
		return mapping.Resource.GroupResource(), mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
	}

	if one, is := k.defined[gvk.GroupKind()]; is && meta.IsNoMatchError(err) && slices.Contains(one.Served, gvk.Version) {
		return one.Resource, one.Namespaced, nil
	}

	return resource, false, err //nolint:wrapcheck // Whoever asks says which file the kind is in.
}

// notes say what was left out.
func (k *kinds) notes() []string {
	out := make([]string, 0, len(k.unknown))

	for gvk, names := range k.unknown {
		slices.Sort(names)
		out = append(out, fmt.Sprintf("the cluster does not know the kind %s of %s, and no CustomResourceDefinition of the files "+
			"makes it, so this was not asked about: %s", gvk.Kind, gvk.GroupVersion(), output.Some(names)))
	}

	slices.Sort(out)

	return out
}

// placeOf is the name of a document, with its namespace.
func placeOf(d files.Document) string {
	if d.GetNamespace() == "" {
		return d.GetName()
	}

	return d.GetNamespace() + "/" + d.GetName()
}
