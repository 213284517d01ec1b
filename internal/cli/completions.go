package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/connect"
)

// completionTime is how long the shell may have to wait for names.
const completionTime = 2 * time.Second

// completions make the shell know namespaces.
func (o *ReadOptions) completions(c *cobra.Command) {
	command.CompleteFlag(c, "namespace", o.names(namespaces))
	command.CompleteFlag(c, "ambit-namespace", o.names(namespaces))
}

// names completes with names of the cluster, as far as the caller may list them.
func (o *ReadOptions) names(list func(context.Context, client.Reader, *ReadOptions) []string) command.Completion {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), completionTime)
		defer cancel()

		reader, _, err := connect.To(o.Cluster)
		if err != nil || o.Complete(c, args) != nil {
			return nil, cobra.ShellCompDirectiveError
		}

		found := list(ctx, reader, o)
		slices.Sort(found)

		return slices.Compact(found), cobra.ShellCompDirectiveNoFileComp
	}
}

func namespaces(ctx context.Context, c client.Reader, _ *ReadOptions) []string {
	return namesIn(ctx, c, &corev1.NamespaceList{}, "", func(obj client.Object) string { return obj.GetName() })
}

// accounts are service accounts as NAMESPACE/NAME, of the namespaces that have scopes.
func accounts(ctx context.Context, c client.Reader, _ *ReadOptions) []string {
	operatorNamespaces := namesIn(ctx, c, &operatorv1.NamespaceScopeList{}, "", client.Object.GetNamespace)
	operatorNamespaces = append(operatorNamespaces, namesIn(ctx, c, &namespacescopev1alpha1.NamespaceScopeList{}, "",
		client.Object.GetNamespace)...)

	slices.Sort(operatorNamespaces)

	out := make([]string, 0, len(operatorNamespaces))

	for _, namespace := range slices.Compact(operatorNamespaces) {
		out = append(out, namesIn(ctx, c, &corev1.ServiceAccountList{}, namespace, func(obj client.Object) string {
			return namespace + "/" + obj.GetName()
		})...)
	}

	return out
}

// scopesToShow are scopes as tree takes them.
func scopesToShow(ctx context.Context, c client.Reader, o *ReadOptions) []string {
	namespace, short := "", func(obj client.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }
	if o.NamespaceGiven {
		namespace, short = o.Namespace, client.Object.GetName
	}

	out := namesIn(ctx, c, &operatorv1.NamespaceScopeList{}, namespace, short)
	out = append(out, namesIn(ctx, c, &namespacescopev1alpha1.NamespaceScopeList{}, namespace, short)...)

	if !o.NamespaceGiven {
		out = append(out, namesIn(ctx, c, &operatorsv1alpha1.ScopeInstanceList{}, "", client.Object.GetName)...)
	}

	return out
}

func namesIn(
	ctx context.Context, c client.Reader, list client.ObjectList, namespace string, name func(client.Object) string,
) []string {
	// What cannot be listed is not offered.
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil
	}

	var out []string

	visit(list, func(obj client.Object) { out = append(out, name(obj)) })

	return out
}

// visit calls f for each item of a list.
func visit(list client.ObjectList, f func(client.Object)) {
	// It cannot fail for the lists of client-go and of Ambit.
	_ = meta.EachListItem(list, func(item runtime.Object) error {
		if obj, is := item.(client.Object); is {
			f(obj)
		}

		return nil
	})
}
