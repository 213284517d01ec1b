package files

import (
	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// The kinds of OLM that commands treat differently from others, in any version.
//
//nolint:gochecknoglobals // A struct can be no constant.
var (
	OperatorGroups         = schema.GroupKind{Group: operatorsv1.GroupVersion.Group, Kind: operatorsv1.OperatorGroupKind}
	ClusterServiceVersions = schema.GroupKind{Group: olm.GroupName, Kind: scope.KindCSV}
)

// IsNamespace says whether an object is a Namespace.
func IsNamespace(obj *unstructured.Unstructured) bool {
	return obj.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Namespace")
}
