package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and version of every kind in this package. OLM's own kinds are in it, too.
var GroupVersion = schema.GroupVersion{Group: "operators.coreos.com", Version: "v1alpha1"}

// AddToScheme registers the kinds of this package with a scheme.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(GroupVersion, &ScopeTemplate{}, &ScopeTemplateList{}, &ScopeInstance{}, &ScopeInstanceList{})
	metav1.AddToGroupVersion(s, GroupVersion)

	return nil
}
