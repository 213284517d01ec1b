package compile

import (
	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// LegacyNamespaceScope compiles a NamespaceScope of the legacy group. It means the same as one of operator.ibm.com, but for
// the accounts: those that it lists, or all of its namespace, whatever the labels of their workloads.
func LegacyNamespaceScope(nss *namespacescopev1alpha1.NamespaceScope) scope.Scope {
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
	s.Owner = LegacyOwner(nss)
	s.Accounts = scope.Accounts{
		Named: distinct(nss.Spec.ProjectedServiceAccounts), All: len(nss.Spec.ProjectedServiceAccounts) == 0,
	}

	return s
}

// AnyNamespaceScope compiles a NamespaceScope of either group; any other object is none.
func AnyNamespaceScope(obj scope.Object) (s scope.Scope, is bool) {
	switch nss := obj.(type) {
	case *operatorv1.NamespaceScope:
		return NamespaceScope(nss), true
	case *namespacescopev1alpha1.NamespaceScope:
		return LegacyNamespaceScope(nss), true
	default:
		return s, false
	}
}

// LegacyOwner names a NamespaceScope of the legacy group as the owner of what is projected for it.
func LegacyOwner(nss *namespacescopev1alpha1.NamespaceScope) scope.Owner {
	return scope.Owner{
		Group: namespacescopev1alpha1.GroupVersion.Group, Kind: "NamespaceScope", Namespace: nss.Namespace, Name: nss.Name,
	}
}
