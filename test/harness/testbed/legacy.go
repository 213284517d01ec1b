package testbed

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LegacyCopies are what IBM's operator projects into a member for an account with a Role that may get Secrets: one Role and one
// RoleBinding of the same name (its controllers/namespacescope_controller.go).
func LegacyCopies(ops, role, account, member string) (*rbacv1.Role, *rbacv1.RoleBinding) {
	sum := sha256.Sum256([]byte(role + account + ops))
	head := func() metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: member, Name: strings.Split(role, ".")[0] + "-" + hex.EncodeToString(sum[:7]),
			Labels: map[string]string{
				"namespace-scope-configmap":    "namespace-scope-" + ops,
				"app.kubernetes.io/instance":   "namespace-scope",
				"app.kubernetes.io/managed-by": "ibm-namespace-scope-operator",
				"app.kubernetes.io/name":       "namespace-scope",
			},
		}
	}

	return &rbacv1.Role{ObjectMeta: head(), Rules: []rbacv1.PolicyRule{Rule("get secrets")}}, &rbacv1.RoleBinding{
		ObjectMeta: head(),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: head().Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ops, Name: account}},
	}
}
