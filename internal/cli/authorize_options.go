package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/ambit-k8s/ambit/internal/grant"
)

// The values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// GrantOptions are what "ambit authorize" and "ambit revoke" have in common.
type GrantOptions struct {
	IOStreams

	// Cluster says which cluster, and as whom, by the flags that kubectl has for it.
	Cluster genericclioptions.RESTClientGetter
	// Namespace is the one whose owner authorizes; To is the one whose operators may come. They may be the same.
	Namespace, To string
	// Scope names the scope in To, as NAME or GROUP/NAME; empty means the one called namespacescope, else the only one.
	Scope string
	// GrantOnly leaves scopes alone.
	GrantOnly bool
	// DryRun is "none", "client" or "server".
	DryRun string
	// Output is "table", "json" or "yaml".
	Output string
}

// bind adds the flags, with those by which kubectl finds a cluster.
func (o *GrantOptions) bind(c *cobra.Command) {
	o.Cluster = clusterFlags(c)

	f := c.Flags()
	f.StringVar(&o.To, "to", "", "namespace whose operators are meant (required)")
	f.StringVar(&o.Scope, "scope", "",
		"NamespaceScope in that namespace, as NAME or GROUP/NAME; by default namespacescope, else the only one")
	f.BoolVar(&o.GrantOnly, "grant-only", false, "leave scopes alone; grant or take back in NAMESPACE only")
	f.StringVar(&o.DryRun, "dry-run", dryRunNone,
		"none; client: only show; server: also ask the API server whether it would be accepted")
	f.Lookup("dry-run").NoOptDefVal = dryRunClient
}

// complete fills in what the command line says besides flags, and the current namespace of the kubeconfig.
func (o *GrantOptions) complete(c *cobra.Command, args []string) error {
	o.IOStreams = streamsOf(c)
	flag := c.Flags().Lookup("namespace")

	// Scripts leave it empty.
	if o.Output == "" {
		o.Output = formTable
	}

	switch {
	case len(args) > 1:
		return usagef("%s takes one namespace, not %d; see %s --help", c.CommandPath(), len(args), c.CommandPath())
	case len(args) == 1 && flag.Changed && flag.Value.String() != args[0]:
		return usagef("the namespace is %s and -n says %s; give one of them", args[0], flag.Value)
	case len(args) == 1:
		o.Namespace = args[0]

		return nil
	}

	namespace, _, err := o.Cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return noCluster(err)
	}

	o.Namespace = namespace

	return nil
}

// Validate says what is wrong with the options, before anything is read.
func (o *GrantOptions) Validate() error {
	if o.To == "" {
		return errors.New("--to is missing; name the namespace whose operators are meant")
	}

	for what, name := range map[string]string{"the namespace": o.Namespace, "--to": o.To} {
		if problems := validation.ValidateNamespaceName(name, false); len(problems) > 0 {
			return fmt.Errorf("%s is %q, which is no name of a namespace: %s", what, name, problems[0])
		}
	}

	if err := validOutput(o.Output, usualForms()); err != nil {
		return err
	}

	if o.Scope != "" {
		wanted, err := grant.ParseWanted(o.Scope)
		if err != nil {
			return fmt.Errorf("--scope: %w", err)
		}

		if err := validName("--scope", wanted.Name); err != nil {
			return err
		}
	}

	if o.DryRun != dryRunNone && o.DryRun != dryRunClient && o.DryRun != dryRunServer {
		return fmt.Errorf("--dry-run is %q; give none, client or server", o.DryRun)
	}

	return nil
}

// wanted is what --scope says. Validate has read it before.
func (o *GrantOptions) wanted() grant.Wanted {
	wanted, err := grant.ParseWanted(o.Scope)
	if err != nil {
		return grant.Wanted{Name: o.Scope} // No scope has such a name.
	}

	return wanted
}

// validName says what is wrong with the name that a flag gives.
func validName(flag, name string) error {
	if problems := validation.NameIsDNSSubdomain(name, false); len(problems) > 0 {
		return fmt.Errorf("%s is %q, which is no valid name: %s", flag, name, problems[0])
	}

	return nil
}

// noCluster is the error where no cluster can be found, or none answers.
func noCluster(err error) error {
	return fmt.Errorf("finding the cluster (give --kubeconfig, or set KUBECONFIG): %w", oneLine(err))
}

// oneLineError is an error whose message has no line breaks; the API server lists refused rules on lines of their own.
type oneLineError struct{ error }

// oneLine makes one line of the message of an error.
func oneLine(err error) error { return oneLineError{err} }

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
