package scope

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Labels of OLM: on what it made for a ClusterServiceVersion, that is the owner.
const (
	LabelOLMOwner          = "olm.owner"
	LabelOLMOwnerKind      = "olm.owner.kind"
	LabelOLMOwnerNamespace = "olm.owner.namespace"
)

var olmVersion = schema.GroupVersion{Group: "operators.coreos.com", Version: "v1alpha1"}

// NewOLM returns an empty object of a kind of OLM, and NewOLMList an empty list, without types: OLM's types refuse what its
// definitions accept.
func NewOLM(kind string) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(olmVersion.WithKind(kind))

	return obj
}

// NewOLMList returns an empty list of a kind of OLM.
func NewOLMList(kind string) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(olmVersion.WithKind(kind + "List"))

	return list
}
