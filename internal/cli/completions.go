package cli

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
)

// accounts are service accounts as NAMESPACE/NAME, of the namespaces that have scopes.
func accounts(ctx context.Context, c client.Reader, _ *reading.Options) []string {
	operatorNamespaces := reading.NamesIn(ctx, c, &operatorv1.NamespaceScopeList{}, "", client.Object.GetNamespace)
	operatorNamespaces = append(operatorNamespaces, reading.NamesIn(ctx, c, &namespacescopev1alpha1.NamespaceScopeList{}, "",
		client.Object.GetNamespace)...)

	slices.Sort(operatorNamespaces)

	out := make([]string, 0, len(operatorNamespaces))

	for _, namespace := range slices.Compact(operatorNamespaces) {
		out = append(out, reading.NamesIn(ctx, c, &corev1.ServiceAccountList{}, namespace, func(obj client.Object) string {
			return namespace + "/" + obj.GetName()
		})...)
	}

	return out
}
