package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/client-go/tools/clientcmd"
)

// IOStreams are where a command writes.
type IOStreams struct {
	Out, ErrOut io.Writer
}

// The values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// ConsentOptions are what "ambit authorize" and "ambit revoke" have in common.
type ConsentOptions struct {
	IOStreams

	// Config says which cluster, and as whom.
	Config clientcmd.ClientConfig
	// Namespace is the one that consents; To is the one whose operators may come.
	Namespace, To string
	// Scope names the scope in To; empty means the one called namespacescope, else the only one.
	Scope string
	// GrantOnly leaves scopes alone.
	GrantOnly bool
	// DryRun is "none", "client" or "server".
	DryRun string

	loading   *clientcmd.ClientConfigLoadingRules
	overrides *clientcmd.ConfigOverrides
}

// bind adds the flags, with those by which kubectl finds a cluster.
func (o *ConsentOptions) bind(c *cobra.Command) {
	o.loading, o.overrides = clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{}

	f := c.Flags()
	f.StringVar(&o.To, "to", "", "namespace whose operators are meant (required)")
	f.StringVar(&o.Scope, "scope", "", "NamespaceScope in that namespace; by default namespacescope, else the only one")
	f.BoolVar(&o.GrantOnly, "grant-only", false, "leave scopes alone")
	f.StringVar(&o.DryRun, "dry-run", dryRunNone,
		"none; client: only show; server: also ask the API server whether it would be accepted")
	f.Lookup("dry-run").NoOptDefVal = dryRunClient
	f.StringVar(&o.loading.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "", "path of the kubeconfig")
	clientcmd.BindOverrideFlags(o.overrides, f, clientcmd.RecommendedConfigOverrideFlags(""))
}

// complete fills in what the command line says besides flags, and the current namespace of the kubeconfig.
func (o *ConsentOptions) complete(c *cobra.Command, args []string) error {
	o.IOStreams = IOStreams{Out: c.OutOrStdout(), ErrOut: c.ErrOrStderr()}
	o.Config = clientcmd.NewNonInteractiveDeferredLoadingClientConfig(o.loading, o.overrides)
	flag := c.Flags().Lookup(clientcmd.FlagNamespace)

	switch {
	case len(args) > 1:
		return usageError{fmt.Errorf("%s takes one namespace, not %d; see %s --help", c.CommandPath(), len(args), c.CommandPath())}
	case len(args) == 1 && flag.Changed && flag.Value.String() != args[0]:
		return usageError{fmt.Errorf("the namespace is %s and -n says %s; give one of them", args[0], flag.Value)}
	case len(args) == 1:
		o.Namespace = args[0]

		return nil
	}

	namespace, _, err := o.Config.Namespace()
	if err != nil {
		return noCluster(err)
	}

	o.Namespace = namespace

	return nil
}

// Validate says what is wrong with the options, before anything is read.
func (o *ConsentOptions) Validate() error {
	if o.To == "" {
		return errors.New("--to is missing; name the namespace whose operators are meant")
	}

	for what, name := range map[string]string{"the namespace": o.Namespace, "--to": o.To} {
		if problems := validation.ValidateNamespaceName(name, false); len(problems) > 0 {
			return fmt.Errorf("%s is %q, which is no name of a namespace: %s", what, name, problems[0])
		}
	}

	if o.Scope != "" {
		if err := validName("--scope", o.Scope); err != nil {
			return err
		}
	}

	switch {
	case o.Namespace == o.To:
		return fmt.Errorf("the namespace and --to are both %s; a namespace needs no consent for its own operators", o.To)
	case o.DryRun != dryRunNone && o.DryRun != dryRunClient && o.DryRun != dryRunServer:
		return fmt.Errorf("--dry-run is %q; give none, client or server", o.DryRun)
	default:
		return nil
	}
}

func validName(flag, name string) error {
	if problems := validation.NameIsDNSSubdomain(name, false); len(problems) > 0 {
		return fmt.Errorf("%s is %q, which is no valid name: %s", flag, name, problems[0])
	}

	return nil
}

func noCluster(err error) error {
	return fmt.Errorf("finding the cluster (give --kubeconfig, or set KUBECONFIG): %w", oneLineError{err})
}

// oneLineError is an error whose message has no line breaks; the API server lists refused rules on lines of their own.
type oneLineError struct{ error }

// Error returns the message in one line.
func (e oneLineError) Error() string {
	lines := strings.FieldsFunc(e.error.Error(), func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}

	return strings.Join(lines, " ")
}

// Unwrap returns the error as it was.
func (e oneLineError) Unwrap() error { return e.error }
