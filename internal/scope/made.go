package scope

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MadeDeployment is a field, as managed fields name it, that Ambit writes in a Deployment that it makes, and not in one of
// somebody else's that it restarts or annotates.
const MadeDeployment = "f:selector"

// WrittenByAmbit says whether the API server recorded Ambit as who wrote an object, and a field in it; empty for any. Anybody may
// write as this field manager.
func WrittenByAmbit(entries []metav1.ManagedFieldsEntry, field string) bool {
	return slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == FieldManager &&
			(field == "" || e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), `"`+field+`"`))
	})
}

// HasList says whether the API server recorded the list of a ConfigMap as written by a manager.
func HasList(e *metav1.ManagedFieldsEntry) bool {
	return e.FieldsV1 != nil && strings.Contains(e.FieldsV1.GetRawString(), `"f:`+ListKey+`"`)
}
