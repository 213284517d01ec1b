// Package reading is how commands read a cluster: once, with the caller's rights, into what the manager plans from.
package reading

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/discovered"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// Cluster is what a command reads of the cluster, once.
type Cluster struct {
	*snapshot.Reader

	// Config is how the cluster is reached.
	Config   *rest.Config
	progress *terminal.Progress
	// Settings are the manager's, once FindManager found it.
	Settings predict.Manager
	// Scopes are those that Read compiled, and Snapshot is what it read for them.
	Scopes   []predict.Scope
	Snapshot *snapshot.Snapshot
	// templates says that there are ScopeTemplates or ScopeInstances, or were until the change that is planned.
	templates bool
	// known are the facts that were asked for.
	known           map[scope.Key]*facts.Facts
	isClusterScoped func(group, resource string) bool
	// Waiting is what was found in namespaces that would leave.
	Waiting map[facts.WaitingKey]facts.Waiting
	// Notes are what users should know although nothing is wrong.
	Notes []string
}

// Connect connects.
func (o *Options) Connect() (*Cluster, error) {
	c, config, err := command.Connect(o.Cluster)
	if err != nil {
		return nil, err
	}

	return New(c, config, o.ErrOut), nil
}

// Once connects, lets a command read what it wants, and ends the progress that was shown meanwhile.
func Once[T any](ctx context.Context, o *Options, read func(context.Context, *Cluster) (T, error)) (*Cluster, T, error) {
	v, err := o.Connect()
	if err != nil {
		var none T

		return nil, none, err
	}

	found, err := read(ctx, v)

	return v, found, v.Close(ctx, err)
}

// New returns a Cluster that a client reads, with its progress shown.
func New(c client.Client, config *rest.Config, errOut *terminal.Writer) *Cluster {
	v := &Cluster{Reader: snapshot.New(c), Config: config, progress: terminal.NewProgress(errOut)}
	v.Progress = v.progress.Show

	return v
}

// Close ends the progress, and reduces an error to one line, with the next step if there is one.
func (v *Cluster) Close(ctx context.Context, err error) error {
	v.progress.Clear()

	switch {
	case err == nil || errors.Is(err, command.ErrMissing):
		return err
	case ctx.Err() != nil:
		return errors.New("interrupted; nothing was changed")
	default:
		return command.OneLine(err)
	}
}

// Read compiles resources as the manager does, and reads what plans are made from. What has to be read may depend on namespaces
// that are proposed.
func (v *Cluster) Read(ctx context.Context, resources []client.Object, proposed ...*corev1.Namespace) error {
	v.Scopes, v.known = v.Settings.Compile(resources), map[scope.Key]*facts.Facts{}
	v.templates = slices.ContainsFunc(resources, isOfTemplates)

	var err error
	v.Snapshot, err = v.Facts(ctx, Plain(v.Scopes), proposed...)

	return err
}

// ReadIn reads what plans for scopes are made from, as far as it has to do with one namespace.
func (v *Cluster) ReadIn(ctx context.Context, scopes []predict.Scope, namespace string) error {
	v.Scopes, v.known = scopes, map[scope.Key]*facts.Facts{}

	var err error
	v.Snapshot, err = v.FactsIn(ctx, Plain(v.Scopes), namespace)

	return err
}

// Plain are scopes without the resources that declare them.
func Plain(scopes []predict.Scope) []scope.Scope {
	return collect.Map(scopes, func(s predict.Scope) scope.Scope { return s.Scope })
}

// OperatorNamespaces returns the operator namespaces of the scopes, sorted, with the scopes and the facts of each.
func (v *Cluster) OperatorNamespaces() []OperatorNamespace {
	var out []OperatorNamespace

	for i := range v.Scopes {
		s := &v.Scopes[i]

		at := slices.IndexFunc(out, func(h OperatorNamespace) bool { return h.Key == s.Key })
		if at < 0 {
			at = len(out)
			out = append(out, OperatorNamespace{Key: s.Key, Facts: v.FactsOf(s.Key)})
		}

		out[at].Scopes = append(out[at].Scopes, s.Scope)
	}

	slices.SortFunc(out, func(a, b OperatorNamespace) int { return a.Key.Compare(b.Key) })

	return out
}

// predicted are the operator namespaces for which the manager has something to do. Templates and instances that are deleted
// compile to no scope, and what was made for the last of them goes.
func (v *Cluster) predicted() []OperatorNamespace {
	out, key := v.OperatorNamespaces(), scope.TemplatesKey()
	if !v.templates || slices.ContainsFunc(out, func(h OperatorNamespace) bool { return h.Key == key }) {
		return out
	}

	return append(out, OperatorNamespace{Key: key, Facts: v.FactsOf(key)})
}

// OperatorNamespace is an operator namespace, with what was read of it. For templates, the key's namespace is scope.Cluster.
type OperatorNamespace struct {
	Key    scope.Key
	Scopes []scope.Scope
	Facts  *facts.Facts
}

// FactsOf returns the facts for a reconcile key, including those that only this caller can find out.
func (v *Cluster) FactsOf(key scope.Key) *facts.Facts {
	if f := v.known[key]; f != nil {
		return f
	}

	f := v.Snapshot.Facts(key)
	f.AmbitNamespace = v.Settings.Namespace
	v.Settings.Complete(f)

	if key.Family == scope.Templates {
		f.ClusterScoped = plan.ClusterScoped(Plain(v.Scopes), v.IsClusterScoped)
	}

	f.ClusterBindings = v.ClusterBindings(key)
	v.known[key] = f

	return f
}

// ClusterBindings returns the ClusterRoleBindings of the accounts of a reconcile key.
func (v *Cluster) ClusterBindings(key scope.Key) facts.ClusterBindings {
	return v.Snapshot.ClusterBindings(key, Plain(v.Scopes), v.IsClusterScoped)
}

// NotRead says in words what the caller may not read.
func (v *Cluster) NotRead() []string { return snapshot.Words(v.Denied()) }

// IsClusterScoped says whether a resource is known to be in no namespace.
func (v *Cluster) IsClusterScoped(group, resource string) bool {
	if v.isClusterScoped == nil {
		v.isClusterScoped = discovered.ByMapper(v.RESTMapper())
	}

	return v.isClusterScoped(group, resource)
}
