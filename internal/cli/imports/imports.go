// Package imports is "ambit import": it converts what declares scopes in other systems.
package imports

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

const importManager = client.FieldOwner("ambit-import")

// Options are the flags and arguments of "ambit import".
type Options struct {
	reading.Options

	// CSV names a ClusterServiceVersion of the namespace.
	CSV string
	// Files hold NamespaceScopes of the legacy group; "-" is the standard input.
	Files     []string
	Recursive bool
	// Apply writes what was converted; otherwise it is only printed.
	Apply bool
	// TakeOver takes a namespace over from IBM's operator; DryRun only shows the steps.
	TakeOver, DryRun bool
	// OutputGiven says that --output was given.
	OutputGiven bool
	Timeout     time.Duration
}

// Command returns "ambit import".
func Command() *cobra.Command {
	// The result is for kubectl, so YAML is the default.
	o := &Options{Options: reading.Options{Forms: []string{output.YAML, output.JSON, output.Table}}}
	c := &cobra.Command{
		Use:   "import (-f FILE | csv/NAME | --take-over) [-n NAMESPACE]",
		Short: "Import scopes that other systems declare",
		Long: `Import scopes that other systems declare.

With -f the command converts NamespaceScopes of the legacy group namespacescope.ibm.com into those of
operator.ibm.com. With csv/NAME it converts a ClusterServiceVersion of OLM, and the OperatorGroup
beside it, into a ScopeTemplate and a ScopeInstance of its name, or of NAMESPACE.NAME if the cluster
has one of that name which is for somebody else, too. It refuses an OperatorGroup whose selector
selects nothing. The command prints the result; --apply also creates it. It changes no existing
object.

With --take-over the command takes a namespace over from IBM's Namespace Scope Operator: it shows what
Ambit would adopt, create and remove, stops that operator by scaling its Deployment to zero, and
waits until Ambit is done. You need the right to list roles and rolebindings in all members. If
OLM runs that operator, remove it from OLM first. --dry-run only shows what would be done.`,
		Example: `  # Legacy NamespaceScopes: preview, then write
  ambit import -f scopes.yaml
  ambit import -f scopes.yaml --apply

  # An operator that OLM installed
  ambit import csv/etcdoperator.v0.9.4 -n operators

  # What would taking over do?
  ambit import --take-over -n ibm-common-services --dry-run`,
		RunE: command.InSteps(o),
	}

	o.Bind(c)

	f := c.Flags()
	files.Bind(f, &o.Files, &o.Recursive, "file, folder or URL with legacy NamespaceScopes")
	f.BoolVar(&o.Apply, "apply", false, "also create what was converted")
	f.BoolVar(&o.TakeOver, "take-over", false, "take the namespace over from IBM's operator")
	f.BoolVar(&o.DryRun, "dry-run", false, "with --take-over: only show what would be done")
	f.DurationVar(&o.Timeout, "timeout", time.Minute, "with --take-over: how long to wait until Ambit is done")

	return c
}

// Complete takes what is imported.
func (o *Options) Complete(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return command.Usagef("%s takes one resource, not %d; see %s --help", c.CommandPath(), len(args), c.CommandPath())
	}

	if len(args) == 1 {
		kind, name, _ := strings.Cut(args[0], "/")
		if kind != "csv" && kind != "clusterserviceversion" || name == "" {
			return command.Usagef("%q is nothing that can be imported; give csv/NAME", args[0])
		}

		o.CSV = name
	}

	o.OutputGiven = c.Flags().Changed("output")

	return o.Options.Complete(c, args)
}

// Validate says what is wrong with the options, before anything is read.
func (o *Options) Validate() error {
	ways := 0

	for _, given := range []bool{len(o.Files) > 0, o.CSV != "", o.TakeOver} {
		if given {
			ways++
		}
	}

	switch {
	case ways == 0:
		return errors.New("there is nothing to import; give -f FILE, csv/NAME or --take-over")
	case ways > 1:
		return errors.New("-f, csv/NAME and --take-over are three different things; give one of them")
	case o.DryRun && !o.TakeOver:
		return errors.New("--dry-run belongs to --take-over; without --apply the other imports write nothing anyway")
	case o.Apply && o.TakeOver:
		return errors.New("--apply does not go with --take-over, which writes unless --dry-run is given")
	case o.TakeOver && o.OutputGiven && (o.Output == output.YAML || o.Output == output.JSON):
		return errors.New("--take-over says what it does in words; leave out --output")
	case o.Timeout < 0:
		return fmt.Errorf("--timeout is %s; give 0 or more", o.Timeout)
	}

	if err := files.Validate(o.Files); err != nil {
		return err
	}

	return o.Options.Validate()
}

// Run imports.
func (o *Options) Run(ctx context.Context) error {
	v, err := o.Connect()
	if err != nil {
		return err
	}

	if o.TakeOver {
		return o.takeOver(ctx, v)
	}

	from := o.fromFiles
	if o.CSV != "" {
		from = o.fromCSV
	}

	objects, notes, err := from(ctx, v)
	if err := v.Close(ctx, err); err != nil {
		return err
	}

	if err := o.printConverted(objects); err != nil {
		return err
	}

	if !o.Apply {
		notes = append(notes, replaced(ctx, v, objects)...)
	}

	if err := output.Notes(o.ErrOut, slices.Concat(notes, v.NotRead())); err != nil {
		return err
	}

	if o.Apply {
		return o.createAll(ctx, v, objects)
	}

	return nil
}

// replaced says what the output would take the place of, once applied.
func replaced(ctx context.Context, v *reading.Cluster, objects []scope.Object) []string {
	var out []string

	for _, obj := range objects {
		live, _ := obj.DeepCopyObject().(client.Object) // A copy has the type of its original.
		if v.Get(ctx, client.ObjectKeyFromObject(obj), live) == nil && !isThere(ctx, v, obj) {
			out = append(out, output.Title(obj, obj.GetObjectKind().GroupVersionKind().Kind)+
				" exists already; compare it with what was printed, which would replace it")
		}
	}

	return out
}

// printConverted prints the result: as objects for kubectl, or only their names for users.
func (o *Options) printConverted(objects []scope.Object) error {
	if o.Output != output.Table {
		return output.Objects(o.Out, o.Output, objects)
	}

	t := terminal.Table{}
	t.Row("KIND", "NAMESPACE", "NAME")

	for _, obj := range objects {
		t.Row(obj.GetObjectKind().GroupVersionKind().Kind, obj.GetNamespace(), obj.GetName())
	}

	return output.Print(o.Out, t.Text())
}

// createAll creates what was converted. A dry run tries everything first, so that a refusal leaves nothing half done. What is
// there already and is the same, as after a command that lost the API server, keeps nothing else from being created.
func (o *Options) createAll(ctx context.Context, v *reading.Cluster, objects []scope.Object) error {
	var missing []scope.Object

	for _, obj := range objects {
		_, err := create(ctx, v, obj, client.DryRunAll)

		switch {
		case apierrors.IsAlreadyExists(err) && isThere(ctx, v, obj):
			if err := o.sayOf(obj, "is there already"); err != nil {
				return err
			}
		case err != nil:
			return fmt.Errorf("%w; nothing was created", notCreated(ctx, obj, err))
		default:
			missing = append(missing, obj)
		}
	}

	for i, obj := range missing {
		_, err := create(ctx, v, obj)
		if command.Unanswered(err) {
			err = fmt.Errorf("%w; run this again to create the rest", err)
		}

		if err != nil {
			return fmt.Errorf("%d of %d objects were created, and nothing else was done: %w", i, len(missing), notCreated(ctx, obj, err))
		}

		if err := o.sayOf(obj, "created"); err != nil {
			return err
		}
	}

	return nil
}

func (o *Options) sayOf(obj client.Object, what string) error {
	return output.Say(o.ErrOut, "%s %s", output.Title(obj, obj.GetObjectKind().GroupVersionKind().Kind), what)
}

// notCreated says why an object was not created.
func notCreated(ctx context.Context, obj client.Object, err error) error {
	title := output.Title(obj, obj.GetObjectKind().GroupVersionKind().Kind)

	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted")
	case apierrors.IsAlreadyExists(err):
		return fmt.Errorf("%s exists already; compare it with what was printed", title)
	default:
		return fmt.Errorf("creating %s: %w", title, command.OneLine(err))
	}
}

// create creates an object, and returns it with what the API server adds.
func create(
	ctx context.Context, v *reading.Cluster, obj client.Object, options ...client.CreateOption,
) (client.Object, error) {
	fresh, _ := obj.DeepCopyObject().(client.Object) // A copy has the type of its original.

	return fresh, v.Create(ctx, fresh, append(options, importManager)...) //nolint:wrapcheck // The caller says to whom it happened.
}

// isThere says whether an object has the specification that it would be created with. A dry run under a name that nobody has
// tells what the API server adds to it.
func isThere(ctx context.Context, v *reading.Cluster, obj client.Object) bool {
	live, _ := obj.DeepCopyObject().(client.Object)
	if v.Get(ctx, client.ObjectKeyFromObject(obj), live) != nil {
		return false
	}

	other, _ := obj.DeepCopyObject().(client.Object)
	other.SetName("")
	other.SetGenerateName("import-")

	fresh, err := create(ctx, v, other, client.DryRunAll)
	if err != nil {
		return false
	}

	is, failed := output.Content(live)
	would, err := output.Content(fresh)

	same := equality.Semantic.DeepEqual(is["spec"], would["spec"])

	return same && live.GetDeletionTimestamp() == nil && errors.Join(failed, err) == nil
}
