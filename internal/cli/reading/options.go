package reading

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// DefaultAmbitNamespace is where every profile installs Ambit.
const DefaultAmbitNamespace = "ambit-system"

// Options are the options of all commands that plan or explain from what they read.
type Options struct {
	output.Streams

	// Cluster says which cluster, and as which account.
	Cluster genericclioptions.RESTClientGetter
	// Namespace is the one that -n names, or the current one; NamespaceGiven says which of the two.
	Namespace      string
	NamespaceGiven bool
	// AmbitNamespace is where Ambit runs.
	AmbitNamespace string
	// Output is one of forms.
	Output string

	// Forms are those that --output takes; without any, those of every command.
	Forms []string
	// Programs says what the forms for programs are; without it, those of every command.
	Programs string
}

// Bind adds the flags, with those by which kubectl finds a cluster.
func (o *Options) Bind(c *cobra.Command) {
	o.Cluster = command.ClusterFlags(c)

	if o.Forms == nil {
		o.Forms = output.Forms()
	}

	f := c.Flags()

	// A command with one form needs no flag for it.
	if o.Output = o.Forms[0]; len(o.Forms) > 1 {
		output.Bind(c, &o.Output, o.Forms, cmp.Or(o.Programs, "the forms for programs are complete, and fold nothing"))
	}

	f.StringVar(&o.AmbitNamespace, "ambit-namespace", DefaultAmbitNamespace, "namespace that Ambit runs in")
	command.CompleteFlag(c, "namespace", o.Names(namespaces))
	command.CompleteFlag(c, "ambit-namespace", o.Names(namespaces))
}

// Complete fills in what is no flag, from the command line and the kubeconfig.
func (o *Options) Complete(c *cobra.Command, _ []string) error {
	o.Streams, o.NamespaceGiven = output.StreamsOf(c), c.Flags().Changed("namespace")

	var err error
	o.Namespace, err = command.Namespace(o.Cluster)

	return err
}

// Validate says what is wrong with the options, before anything is read.
func (o *Options) Validate() error {
	if err := output.Valid(o.Output, o.Forms); err != nil {
		return err
	}

	if o.NamespaceGiven {
		if err := command.ValidName("--namespace", o.Namespace); err != nil {
			return err
		}
	}

	return command.ValidName("--ambit-namespace", o.AmbitNamespace)
}

// Place puts an object of a file that names no namespace into the current one. As with kubectl, one of another namespace than -n
// names is refused.
func (o *Options) Place(obj client.Object) error {
	if in := obj.GetNamespace(); o.NamespaceGiven && in != "" && in != o.Namespace {
		return fmt.Errorf("%s is not in namespace %s, which -n names; leave out -n, or give -n %s",
			output.Title(obj, obj.GetObjectKind().GroupVersionKind().Kind), o.Namespace, printable.Name(in))
	}

	obj.SetNamespace(cmp.Or(obj.GetNamespace(), o.Namespace))

	return nil
}

// PrintNotes prints, beside the output, what users should know.
func (o *Options) PrintNotes(v *Cluster) error {
	return output.Notes(o.ErrOut, slices.Concat(v.Notes, v.NotRead()))
}

// PrintData prints for programs.
func (o *Options) PrintData(data any) error { return output.Data(o.Out, o.Output, data) }

// FindManager finds out how the manager runs.
func (o *Options) FindManager(ctx context.Context, v *Cluster) error {
	m, note, err := v.Manager(ctx, o.AmbitNamespace)
	if err != nil {
		return err
	}

	v.Settings = m
	if note != "" {
		v.Notes = append(v.Notes, note)
	}

	return nil
}
