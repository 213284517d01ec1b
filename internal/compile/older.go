package compile

import (
	older "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// OlderNamespaceScope compiles a NamespaceScope of the older group. It means the same as one of operator.ibm.com, but for
// the accounts: those that it lists, or all of its namespace, whatever the labels of their workloads.
func OlderNamespaceScope(nss *older.NamespaceScope) scope.Scope {
	s := NamespaceScope(&operatorv1.NamespaceScope{
		ObjectMeta: nss.ObjectMeta,
		Spec: operatorv1.NamespaceScopeSpec{
			NamespaceMembers: nss.Spec.NamespaceMembers,
			ConfigmapName:    nss.Spec.ConfigmapName,
			RestartLabels:    nss.Spec.RestartLabels,
			ManualManagement: nss.Spec.ManualManagement,
		},
		Status: nss.Status,
	})
	s.Owner = OwnerOfOlder(nss)
	s.Accounts = scope.Accounts{
		Named: distinct(nss.Spec.ProjectedServiceAccounts), All: len(nss.Spec.ProjectedServiceAccounts) == 0,
	}

	return s
}

// OwnerOfOlder names a NamespaceScope of the older group as the owner of what is projected for it.
func OwnerOfOlder(nss *older.NamespaceScope) scope.Owner {
	return scope.Owner{
		Group: older.GroupVersion.Group, Kind: "NamespaceScope", Namespace: nss.Namespace, Name: nss.Name,
	}
}
