package scope

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// CompareAge orders objects by when they were made, and those of one second by their names.
func CompareAge(a, b metav1.Object) int {
	created, other := a.GetCreationTimestamp(), b.GetCreationTimestamp()

	return cmp.Or(created.Compare(other.Time), cmp.Compare(a.GetName(), b.GetName()))
}
