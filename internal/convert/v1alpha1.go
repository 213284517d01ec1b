// Package convert turns declarations of legacy groups and of other systems into Ambit's. It is pure, and says what a conversion
// cannot carry over.
package convert

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1 "k8s.io/api/core/v1"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// FromNamespaceScopeV1alpha1 returns the NamespaceScope of operator.ibm.com that means the same as one of the legacy group, as
// far as possible. accounts are the service accounts of its namespace; nil where they are not known.
func FromNamespaceScopeV1alpha1(from *namespacescopev1alpha1.NamespaceScope, accounts []string) (to *operatorv1.NamespaceScope,
	notes []string) {
	to = &operatorv1.NamespaceScope{
		TypeMeta: metav1.TypeMeta{APIVersion: operatorv1.GroupVersion.String(), Kind: "NamespaceScope"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: from.Namespace, Name: from.Name, Labels: maps.Clone(from.Labels), Annotations: maps.Clone(from.Annotations),
		},
		Spec: operatorv1.NamespaceScopeSpec{
			NamespaceMembers:      slices.Clone(from.Spec.NamespaceMembers),
			ServiceAccountMembers: slices.Clone(from.Spec.ProjectedServiceAccounts),
			ConfigmapName:         from.Spec.ConfigmapName,
			RestartLabels:         maps.Clone(from.Spec.RestartLabels),
			ManualManagement:      from.Spec.ManualManagement,
		},
	}
	// That annotation says what kubectl applied to the other group.
	delete(to.Annotations, corev1.LastAppliedConfigAnnotation)

	title := fmt.Sprintf("NamespaceScope %s/%s", from.Namespace, from.Name)

	notes = append(notes, title+": besides serviceAccountMembers, operator.ibm.com projects the service accounts of all workloads "+
		"that carry restartLabels")

	if len(from.Spec.ProjectedServiceAccounts) > 0 {
		return to, notes
	}

	what := "list those that take part in serviceAccountMembers"
	if accounts != nil {
		to.Spec.ServiceAccountMembers = slices.Sorted(slices.Values(accounts))
		what = "serviceAccountMembers has those that are there now, and later ones have to be added"
	}

	return to, append(notes, title+": the older group projects every service account of the namespace where it lists none; "+what)
}
