package scope

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Labels of OLM: on what it made for a ClusterServiceVersion, that is the owner.
const (
	LabelOLMOwner          = "olm.owner"
	LabelOLMOwnerKind      = "olm.owner.kind"
	LabelOLMOwnerNamespace = "olm.owner.namespace"
)

// PackagePrefix begins the label by which OLM marks the ClusterServiceVersions of a package.
const PackagePrefix = "operators.coreos.com/"

// PackageLabel is the label of the ClusterServiceVersions of a package in a namespace, by which OLM and its users find them
// (ComponentLabelKey in operator-lifecycle-manager, pkg/controller/operators/decorators/operator.go).
func PackageLabel(pkg, namespace string) string { return PackagePrefix + LabelValue(pkg+"."+namespace) }

// LabelValue is as much of a name as the value of a label can hold, or the name in its key.
func LabelValue(name string) string {
	return strings.TrimRight(name[:min(len(name), validation.LabelValueMaxLength)], "-_.")
}

var olmVersion = schema.GroupVersion{Group: "operators.coreos.com", Version: "v1alpha1"}

// NewOLM returns an empty object of a kind of OLM, and NewOLMList an empty list, without types: OLM's types refuse what its
// definitions accept, such as a version that is none, and a watch with types ends at the first one that it cannot read. Then
// nobody's ClusterServiceVersion would be served, because of one that somebody wrote somewhere.
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
