package testbed

import (
	"fmt"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Large is an object that takes about as much memory as one can: a Role, a RoleBinding or a ConfigMap, by its number. No two are
// alike.
func Large(namespace string, number int) client.Object {
	described := metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("large-%d", number)}

	switch number % 3 {
	case 0:
		role := &rbacv1.Role{ObjectMeta: described}
		for i := range 7_000 {
			role.Rules = append(role.Rules, rbacv1.PolicyRule{
				Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"secrets"},
				ResourceNames: []string{fmt.Sprintf("secret-%d-%d", number, i)},
			})
		}

		return role
	case 1:
		binding := &rbacv1.RoleBinding{
			ObjectMeta: described, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		}
		for i := range 10_000 {
			binding.Subjects = append(binding.Subjects, rbacv1.Subject{
				Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: fmt.Sprintf("account-%d-%d", number, i),
			})
		}

		return binding
	default:
		// It looks like a watch list of Ambit's.
		described.Annotations = map[string]string{"ambit.dev/list-hash": strconv.Itoa(number)}

		return &corev1.ConfigMap{
			ObjectMeta: described, Data: map[string]string{"namespaces": fmt.Sprint(number, ",") + strings.Repeat("x", 1_000_000)},
		}
	}
}
