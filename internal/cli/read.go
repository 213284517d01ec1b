package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/connect"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// defaultAmbitNamespace is where every profile installs Ambit.
const defaultAmbitNamespace = "ambit-system"

// ReadOptions are what the commands have in common that only look.
type ReadOptions struct {
	output.Streams

	// Cluster says which cluster, and as whom.
	Cluster genericclioptions.RESTClientGetter
	// Namespace is that of -n, or the current one; NamespaceGiven says which of the two.
	Namespace      string
	NamespaceGiven bool
	// AmbitNamespace is where Ambit runs.
	AmbitNamespace string
	// Output is one of forms.
	Output string

	forms []string
}

// bind adds the flags, with those by which kubectl finds a cluster.
func (o *ReadOptions) bind(c *cobra.Command) {
	o.Cluster = connect.Flags(c)

	if o.forms == nil {
		o.forms = output.Forms()
	}

	f := c.Flags()

	// What has one form is not asked for it.
	if o.Output = o.forms[0]; len(o.forms) > 1 {
		output.Bind(c, &o.Output, o.forms, "what is for programs is complete, and nothing is folded")
	}

	f.StringVar(&o.AmbitNamespace, "ambit-namespace", defaultAmbitNamespace, "namespace that Ambit runs in")
	o.completions(c)
}

// Complete fills in what the command line and the kubeconfig say besides flags.
func (o *ReadOptions) Complete(c *cobra.Command, _ []string) error {
	o.Streams = output.StreamsOf(c)

	namespace, _, err := o.Cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return connect.NoCluster(err)
	}

	o.Namespace, o.NamespaceGiven = namespace, c.Flags().Changed("namespace")

	return nil
}

// Validate says what is wrong with the options, before anything is read.
func (o *ReadOptions) Validate() error {
	if err := output.Valid(o.Output, o.forms); err != nil {
		return err
	}

	if o.NamespaceGiven {
		if err := command.ValidName("--namespace", o.Namespace); err != nil {
			return err
		}
	}

	return command.ValidName("--ambit-namespace", o.AmbitNamespace)
}

// view is the cluster as a command sees it once.
type view struct {
	*snapshot.Reader

	config   *rest.Config
	progress *terminal.Progress
	manager  predict.Manager
	scopes   []predict.Scope
	snapshot *snapshot.Snapshot
	// known are the facts that were asked for, by operator namespace.
	known map[string]*facts.Facts
	// waiting is what was found in namespaces that would leave.
	waiting map[facts.WaitingKey]facts.Waiting
	// notes are what people should know although nothing is wrong.
	notes []string
}

// view connects.
func (o *ReadOptions) view() (*view, error) {
	c, config, err := connect.To(o.Cluster)
	if err != nil {
		return nil, err
	}

	return newView(c, config, o.ErrOut), nil
}

// newView is a view of what a client reads, whose progress is shown.
func newView(c client.Client, config *rest.Config, errOut *terminal.Writer) *view {
	v := &view{Reader: snapshot.New(c), config: config, progress: terminal.NewProgress(errOut)}
	v.Progress = v.progress.Show

	return v
}

// close ends the progress, and makes one line of an error, with the next step where there is one.
func (v *view) close(ctx context.Context, err error) error {
	v.progress.Clear()

	switch {
	case err == nil || errors.Is(err, command.ErrMissing):
		return err
	case ctx.Err() != nil:
		return errors.New("interrupted; nothing was changed")
	case utilnet.IsConnectionRefused(err):
		return connect.NoCluster(err)
	default:
		return command.OneLine(err)
	}
}

// read compiles resources as the manager does, and reads what plans are made from, with what is proposed and without what is
// gone.
func (v *view) read(ctx context.Context, resources, proposed []client.Object, gone ...client.Object) error {
	v.scopes, v.known = v.manager.Compile(resources), map[string]*facts.Facts{}

	var err error
	v.snapshot, err = v.Facts(ctx, plain(v.scopes), proposed, gone...)

	return err
}

func plain(scopes []predict.Scope) []scope.Scope {
	out := make([]scope.Scope, len(scopes))
	for i := range scopes {
		out[i] = scopes[i].Scope
	}

	return out
}

// operatorNamespaces are those of the scopes, sorted, with the scopes and the facts of each.
func (v *view) operatorNamespaces() []operatorNamespace {
	var out []operatorNamespace

	for i := range v.scopes {
		s := &v.scopes[i]

		at := slices.IndexFunc(out, func(h operatorNamespace) bool { return h.name == s.OperatorNamespace })
		if at < 0 {
			at = len(out)
			out = append(out, operatorNamespace{name: s.OperatorNamespace, facts: v.factsOf(s.OperatorNamespace)})
		}

		out[at].scopes = append(out[at].scopes, s.Scope)
	}

	slices.SortFunc(out, func(a, b operatorNamespace) int { return strings.Compare(a.name, b.name) })

	return out
}

type operatorNamespace struct {
	name   string
	scopes []scope.Scope
	facts  *facts.Facts
}

func (v *view) factsOf(name string) *facts.Facts {
	if f := v.known[name]; f != nil {
		return f
	}

	f := v.managersFacts(name)

	f.ClusterScoped = reach.BuiltInClusterScoped()
	if name == scope.Cluster {
		f.ClusterScoped = v.ClusterScoped(plain(v.scopes))
	}

	f.ClusterBindings = v.clusterBindings(name)
	v.known[name] = f

	return f
}

// factsLater are the facts of an operator namespace after something was written in memory. What only the caller can ask for stays
// as it was.
func (v *view) factsLater(name string, now time.Time) *facts.Facts {
	f, before := v.managersFacts(name), v.factsOf(name)
	f.Now, f.ClusterScoped, f.ClusterBindings = now, before.ClusterScoped, before.ClusterBindings

	return f
}

// managersFacts are what was read of an operator namespace, and how the manager is set up.
func (v *view) managersFacts(name string) *facts.Facts {
	f := v.snapshot.Facts(name)
	f.AmbitNamespace, f.RestartInterval = v.manager.Namespace, v.manager.RestartInterval
	f.AmbitAccount, f.FinishGrace = v.manager.AccountOf(name), v.manager.FinishGrace
	f.MayHold = len(v.manager.Namespaces) == 0 && !v.manager.NeedDelegate

	return f
}

// clusterBindings are those of the accounts of a reconcile key.
func (v *view) clusterBindings(key string) facts.ClusterBindings {
	return v.snapshot.ClusterBindings(key, plain(v.scopes), func(group, resource string) bool {
		return v.isClusterScoped(schema.GroupResource{Group: group, Resource: resource})
	})
}

// notRead are the words about what the caller may not read.
func (v *view) notRead() []string { return snapshot.Words(v.Denied()) }

// printNotes prints, beside the output, what people should know.
func (o *ReadOptions) printNotes(v *view) error {
	for _, note := range append(slices.Clone(v.notes), v.notRead()...) {
		if err := output.Say(o.ErrOut, "Note: %s", note); err != nil {
			return err
		}
	}

	return nil
}

// printData prints for programs.
func (o *ReadOptions) printData(data any) error {
	if o.Output == output.YAML {
		text, err := terminal.YAML(data)
		if err != nil {
			return fmt.Errorf("printing: %w", err)
		}

		return output.Print(o.Out, text)
	}

	text, err := terminal.JSON(data)
	if err != nil {
		return fmt.Errorf("printing: %w", err)
	}

	return output.Say(o.Out, "%s", text)
}
