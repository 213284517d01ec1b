package facts

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Definition is what a CustomResourceDefinition makes the API server serve.
type Definition struct {
	Kind       schema.GroupKind
	Resource   schema.GroupResource
	Namespaced bool
	// Versions are all that it names, and Served those that are served.
	Versions, Served []string
}

// ReadDefinition reads a definition, as far as it can be read. If one is invalid, the API server says so when it is applied.
func ReadDefinition(crd *unstructured.Unstructured) *Definition {
	text := func(path ...string) string {
		value, _, _ := unstructured.NestedString(crd.Object, append([]string{"spec"}, path...)...)

		return value
	}
	out := &Definition{
		Kind:       schema.GroupKind{Group: text("group"), Kind: text("names", "kind")},
		Resource:   schema.GroupResource{Group: text("group"), Resource: text("names", "plural")},
		Namespaced: text("scope") != string(apiextensionsv1.ClusterScoped),
	}
	// The schemas in it may be large.
	found, _, _ := unstructured.NestedFieldNoCopy(crd.Object, "spec", "versions")
	list, _ := found.([]any)

	for _, item := range list {
		version, _ := item.(map[string]any)

		name, is := version["name"].(string)
		if !is {
			continue
		}

		out.Versions = append(out.Versions, name)

		if version["served"] == true {
			out.Served = append(out.Served, name)
		}
	}

	return out
}
