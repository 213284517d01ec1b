package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/controllers"
)

// ClusterFlags adds the flags by which kubectl finds a cluster.
func ClusterFlags(c *cobra.Command) genericclioptions.RESTClientGetter {
	return BindCluster(c, genericclioptions.NewConfigFlags(true))
}

// BindCluster adds some of these flags, and says how their cluster is asked.
func BindCluster(c *cobra.Command, cluster *genericclioptions.ConfigFlags) genericclioptions.RESTClientGetter {
	cluster.CacheDir = nil // Nothing is cached on disk.
	cluster.AddFlags(c.Flags())

	return cluster.WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		// The API server warns about the finalizer's name at every write of a scope; the name is IBM's.
		config.WarningHandler = rest.NoWarnings{}
		config.UserAgent = "ambit/" + c.Root().Version
		config.QPS = -1 // The API server's own fairness is the limit.

		return config
	})
}

// ClusterArguments are the flags by which a command was told which cluster to reach, and as whom, for another command that is to
// do the same. A token is for nobody to see.
func ClusterArguments(c *cobra.Command) []string {
	known := pflag.NewFlagSet("", pflag.ContinueOnError)
	genericclioptions.NewConfigFlags(true).AddFlags(known)

	var out []string

	c.Flags().Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}

		switch list, isList := f.Value.(pflag.SliceValue); {
		case known.Lookup(f.Name) == nil || f.Name == "namespace":
			return
		case f.Name == "token":
			values = []string{"TOKEN"}
		case isList:
			values = list.GetSlice()
		}

		for _, value := range values {
			out = append(out, "--"+f.Name+"="+value)
		}
	})

	return out
}

// Namespace is the one that -n names, or else the current one of the kubeconfig.
func Namespace(cluster genericclioptions.RESTClientGetter) (string, error) {
	namespace, _, err := cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return "", NoCluster(err)
	}

	return namespace, nil
}

// Connect reaches the cluster with the caller's rights.
func Connect(cluster genericclioptions.RESTClientGetter) (client.Client, *rest.Config, error) {
	config, err := cluster.ToRESTConfig()
	if err != nil {
		return nil, nil, NoCluster(err)
	}

	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, nil, fmt.Errorf("starting: %w", err)
	}

	mapper, err := newMapper(config)
	if err != nil {
		return nil, nil, fmt.Errorf("reaching the cluster: %w", OneLine(err))
	}

	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return nil, nil, fmt.Errorf("reaching the cluster: %w", OneLine(err))
	}

	return c, config, nil
}

// NoCluster is the error where no cluster can be found, or none answers.
func NoCluster(err error) error {
	return fmt.Errorf("finding the cluster (give --kubeconfig, or set KUBECONFIG): %w", OneLine(err))
}

// UserName asks the API server who it takes the client for.
func UserName(ctx context.Context, c client.Client) (string, error) {
	review := &authenticationv1.SelfSubjectReview{}
	err := c.Create(ctx, review)

	return review.Status.UserInfo.Username, err //nolint:wrapcheck // Callers say who is asked about.
}
