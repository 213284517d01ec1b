package reading

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// completionTime is how long the shell may have to wait for names, unless the line has a --request-timeout.
const completionTime = 2 * time.Second

// Names completes with names of the cluster, as far as the caller may list them.
func (o *Options) Names(list func(context.Context, client.Reader, *Options) []string) command.Completion {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		reader, config, err := command.Connect(o.Cluster)
		if err != nil || o.Complete(c, args) != nil {
			return nil, cobra.ShellCompDirectiveError
		}

		ctx, cancel := context.WithTimeout(c.Context(), cmp.Or(config.Timeout, completionTime))
		defer cancel()

		return slices.Compact(slices.Sorted(slices.Values(list(ctx, reader, o)))), cobra.ShellCompDirectiveNoFileComp
	}
}

func namespaces(ctx context.Context, c client.Reader, _ *Options) []string {
	return NamesIn(ctx, c, &corev1.NamespaceList{}, "", client.Object.GetName)
}

// ScopeNames are the names of the NamespaceScopes of both groups, as far as the caller may list them.
func ScopeNames(ctx context.Context, c client.Reader, namespace string, name func(client.Object) string) []string {
	return append(NamesIn(ctx, c, &operatorv1.NamespaceScopeList{}, namespace, name),
		NamesIn(ctx, c, &namespacescopev1alpha1.NamespaceScopeList{}, namespace, name)...)
}

// NamesIn are the names of the objects of a list, as far as the caller may list them.
func NamesIn(
	ctx context.Context, c client.Reader, list client.ObjectList, namespace string, name func(client.Object) string,
) []string {
	// What cannot be listed is not offered.
	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil
	}

	return collect.Map(snapshot.Objects(list), name)
}
