package scope

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Object is any object of a cluster. It is what controller-runtime calls client.Object, for packages that have no client.
type Object interface {
	metav1.Object
	runtime.Object
}

// ObjectList is a list of objects of one kind, as controller-runtime's client.ObjectList.
type ObjectList interface {
	metav1.ListInterface
	runtime.Object
}
