package authorize

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// The values of --dry-run.
const (
	dryRunNone   = "none"
	dryRunClient = "client"
	dryRunServer = "server"
)

// GrantOptions are what "ambit authorize" and "ambit revoke" have in common.
type GrantOptions struct {
	output.Streams

	// Cluster says which cluster, and as which account, by the flags that kubectl has for it.
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
	o.Cluster = command.ClusterFlags(c)

	f := c.Flags()
	f.StringVar(&o.To, "to", "", "namespace of the operators (required)")
	f.StringVar(&o.Scope, "scope", "",
		"NamespaceScope in that namespace, as NAME or GROUP/NAME; by default namespacescope, else the only one")
	f.BoolVar(&o.GrantOnly, "grant-only", false, "leave scopes alone; grant or take back in NAMESPACE only")
	f.StringVar(&o.DryRun, "dry-run", dryRunNone,
		"none; client: only show; server: also ask the API server whether it would accept the change")
	f.Lookup("dry-run").NoOptDefVal = dryRunClient
}

// Complete fills in what the command line says besides flags, and the current namespace of the kubeconfig.
func (o *GrantOptions) Complete(c *cobra.Command, args []string) error {
	o.Streams = output.StreamsOf(c)
	flag := c.Flags().Lookup("namespace")

	o.Output = cmp.Or(o.Output, output.Table) // Scripts leave it empty.

	switch {
	case len(args) > 1:
		return command.Usagef("%s takes one namespace, not %d; see %s --help", c.CommandPath(), len(args), c.CommandPath())
	case len(args) == 1 && flag.Changed && flag.Value.String() != args[0]:
		return command.Usagef("the namespace is %s and -n says %s; give one of them", args[0], flag.Value)
	case len(args) == 1:
		o.Namespace = args[0]

		return nil
	}

	var err error
	o.Namespace, err = command.Namespace(o.Cluster)

	return err
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

	if err := output.Valid(o.Output, output.Forms()); err != nil {
		return err
	}

	if o.Scope != "" {
		wanted, err := grant.ParseWanted(o.Scope)
		if err != nil {
			return fmt.Errorf("--scope: %w", err)
		}

		if err := command.ValidName("--scope", wanted.Name); err != nil {
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

// byFlag is how these commands are told which scope is meant.
func byFlag() reading.Naming {
	return reading.Naming{Before: "--scope ", WithoutOne: "give --grant-only with authorize --all or with revoke"}
}

// carryOut makes a change after the API server accepted a dry run of it, so that a refusal changes nothing. --dry-run ends it
// before.
func (o *GrantOptions) carryOut(try, change func() error) error {
	if o.DryRun == dryRunClient {
		return o.say("Nothing was changed: this was a dry run by the client.")
	}

	if err := try(); err != nil {
		return err
	}

	if o.DryRun == dryRunServer {
		return o.say("Nothing was changed: this was a dry run by the server, which would accept it.")
	}

	err := change()
	if command.Unanswered(err) {
		return fmt.Errorf("%w; what was written before that stays: run this again to complete it", err)
	}

	return err
}

// words takes what is for users: it is the output, or beside it when that holds objects for a program.
func (o *GrantOptions) words() *terminal.Writer {
	if o.Output != output.Table {
		return o.ErrOut
	}

	return o.Out
}

func (o *GrantOptions) notes(notes []string) error { return output.Notes(o.words(), notes) }

func (o *GrantOptions) say(format string, values ...any) error {
	return output.Say(o.words(), format, values...)
}
