package cli

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// completionTime is how long the shell may have to wait for names.
const completionTime = 2 * time.Second

type completion = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective)

// completions make the shell know namespaces, and the values of --output.
func (o *LookOptions) completions(c *cobra.Command) {
	register(c, "namespace", o.names(namespaces))
	register(c, "ambit-namespace", o.names(namespaces))
	register(c, "output", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return o.forms, cobra.ShellCompDirectiveNoFileComp
	})
}

// register cannot fail: the flag is there, and this is its only completion.
func register(c *cobra.Command, flag string, f completion) {
	if err := c.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(err)
	}
}

// names completes with names of the cluster, as far as the caller may list them.
func (o *LookOptions) names(list func(context.Context, client.Reader, *LookOptions) []string) completion {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(c.Context(), completionTime)
		defer cancel()

		w, _, err := connect(o.Cluster)
		if err != nil || o.complete(c, args) != nil {
			return nil, cobra.ShellCompDirectiveError
		}

		found := list(ctx, w.Client, o)
		slices.Sort(found)

		return slices.Compact(found), cobra.ShellCompDirectiveNoFileComp
	}
}

func namespaces(ctx context.Context, c client.Reader, _ *LookOptions) []string {
	return namesIn(ctx, c, &corev1.NamespaceList{}, "", func(obj client.Object) string { return obj.GetName() })
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
