// Package plan is "ambit plan": it says what a change would do, before it is made.
package plan

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// Options are the flags and arguments of "ambit plan".
type Options struct {
	reading.Options

	// Files hold what would be applied; "-" is the standard input.
	Files     []string
	Recursive bool
	// Delete plans for the deletion of what the files name.
	Delete bool
	// Diff shows the fields of each object that would change.
	Diff bool
}

// Command returns "ambit plan".
func Command() *cobra.Command {
	o := &Options{}
	c := &cobra.Command{
		Use:   "plan -f FILE",
		Short: "Preview what a change would do",
		Long: `Preview what a change would do: which namespaces would join and leave, which Roles
and RoleBindings would be written, what the watch list would be, which operators would
restart and why, and which permissions are missing, with the YAML that grants them.

The files may hold NamespaceScopes of both groups, ScopeTemplates and ScopeInstances; OperatorGroups,
ClusterServiceVersions, Subscriptions, InstallPlans and CatalogSources; and the objects that these
depend on: Namespaces, ServiceAccounts, ConfigMaps, Roles and bindings, CustomResourceDefinitions,
workloads and pods. The plan assumes that "kubectl apply" wrote all of them at once, or with --delete
that "kubectl delete" deleted them; a dry run asks the API server whether it would allow that. Accounts
may then do what the Roles and bindings of the files let them. The command leaves out everything else,
and names it.

The plan runs the manager's own code against a cluster in memory until nothing is left to do: its
reconcilers for scopes, and those for OLM's kinds, where every Deployment becomes ready. Nothing in
the cluster changes. The command reads with your rights, and names what you may not read. It assumes
that a member which you may not read stays as it is, and that no admission policy or webhook refuses
what Ambit writes: the status of a scope names what one did refuse.

If the scopes of a namespace that the files are about cannot be planned, because you may not read that
namespace or because it fails, the command names it and why, and plans the rest; the plan is not complete
then. Scopes of other namespaces that you may not read are left out, with a note.

Exit code: 0 nothing would be refused, 3 something would be refused or fail, 1 failed or not complete, 2 wrong usage.
For files with Namespaces alone, only what would be refused there counts, or to operators that are served there.`,
		Example: `  # What would adding cloudpak1 to the scope do?
  ambit plan -f test/demo/3-scope.yaml

  # A change of a Role in the operators' namespace; with every field that changes
  ambit plan -f test/demo/5-role.yaml --diff

  # Everything that kustomize makes, from the standard input
  kustomize build config/cluster | ambit plan -f -

  # What would an operator get, and which permissions would its account lack?
  ambit plan -f operatorgroup.yaml -f csv.yaml

  # What would deleting the scope do?
  ambit plan --delete -f test/demo/3-scope.yaml`,
		Args: command.NoArguments,
		RunE: command.InSteps(o),
	}

	o.Bind(c)

	f := c.Flags()
	files.Bind(f, &o.Files, &o.Recursive, "file, folder or URL with what would be applied")
	f.BoolVar(&o.Delete, "delete", false, "plan what deleting the objects of the files would do")
	f.BoolVar(&o.Diff, "diff", false, "show each field that would change")

	return c
}

// Validate says what is wrong with the options, before anything is read.
func (o *Options) Validate() error {
	if len(o.Files) == 0 {
		return errors.New("-f is missing; name the files that you would apply")
	}

	if o.Diff && o.Output != output.Table {
		return errors.New("--diff is for people; leave out --output")
	}

	if err := files.Validate(o.Files); err != nil {
		return err
	}

	return o.Options.Validate()
}

// Run plans. ErrMissing is the answer that something would be refused, and ErrUnknown that the plan is not complete.
func (o *Options) Run(ctx context.Context) error {
	v, result, err := reading.Once(ctx, &o.Options, o.plan)
	if err != nil {
		return err
	}

	if err := o.show(v, result); err != nil {
		return err
	}

	switch {
	case len(result.unknown()) > 0:
		return command.ErrUnknown
	case result.refused():
		return command.ErrMissing
	default:
		return nil
	}
}

// Planned is everything that "plan" found out.
type Planned struct {
	proposals []*proposal
	// left are the objects of the files that do not matter to Ambit.
	left []*proposal
	// Predictions are what would become of the scopes of each operator namespace.
	Predictions []*predict.Prediction
	authorizer  *snapshot.Authorizer
	// Installs is the result of OLM's kinds; empty where nothing is about them.
	Installs *Installs
	// brought are ClusterServiceVersions that catalogs would bring.
	brought []*unstructured.Unstructured
	// unserved says that this Ambit serves nothing of what some of the files are about.
	unserved bool
	// unplayed is why something could not be played forward, other than what Predictions say.
	unplayed map[scope.Key]error
}

func (o *Options) plan(ctx context.Context, v *reading.Cluster) (*Planned, error) {
	documents, err := files.Read(o.Files, o.Recursive)
	if err != nil {
		return nil, err
	}

	return o.For(ctx, v, documents)
}

// For plans for the objects of files; it changes these objects.
func (o *Options) For(ctx context.Context, v *reading.Cluster, documents []files.Document) (*Planned, error) {
	result := &Planned{Installs: &Installs{}}
	if err := o.proposals(ctx, v, documents, result); err != nil {
		return nil, err
	}

	if !slices.ContainsFunc(result.proposals, func(p *proposal) bool { return p.object != nil }) {
		result.authorizer = &snapshot.Authorizer{} // There is nothing to delete, and so nothing to decide.

		return result, nil
	}

	if err := o.FindManager(ctx, v); err != nil {
		return nil, err
	}

	resources, err := o.connect(ctx, v, result.proposals)
	if err != nil {
		return nil, err
	}

	notes := slices.Concat(v.Notes, goesAlong(result.proposals))

	for {
		v.Notes = slices.Clone(notes)
		if err := v.Read(ctx, resources, proposedNamespaces(result.proposals)...); err != nil {
			return nil, err
		}

		result.leaveUnread(v)

		if counts, err := o.simulate(ctx, v, result); err != nil || counts {
			return result, err
		}
	}
}

// namespacesOf are the namespaces of some of the proposals, sorted.
func namespacesOf(proposals []*proposal, which func(*proposal) bool) []string {
	some := collect.Filter(proposals, which)

	return sets.List(sets.New(collect.Map(some, func(p *proposal) string { return p.GetNamespace() })...))
}

func proposedNamespaces(proposals []*proposal) []*corev1.Namespace {
	var out []*corev1.Namespace

	for _, p := range proposals {
		if ns, is := p.object.(*corev1.Namespace); is {
			out = append(out, ns)
		}
	}

	return out
}

// proposals asks the API server about each object of the files.
func (o *Options) proposals(ctx context.Context, v *reading.Cluster, documents []files.Document, result *Planned) error {
	p := &proposer{Cluster: v, place: o.Place, delete: o.Delete, fresh: freshNamespaces(documents)}
	all := make([]*proposal, len(documents))

	err := v.Each(ctx, "asking the API server about the files", len(documents), func(i int) error {
		var err error
		all[i], err = p.propose(ctx, documents[i])

		return err
	})
	if err != nil {
		return err
	}

	for _, found := range all {
		if found.result == "" {
			result.left = append(result.left, found)
		} else {
			result.proposals = append(result.proposals, found)
		}
	}

	if len(result.proposals) == 0 {
		return errors.New("there is nothing in the files that matters to Ambit; name files with NamespaceScopes, ScopeTemplates, " +
			"ScopeInstances, OperatorGroups, ClusterServiceVersions, Subscriptions, or what these are made from")
	}

	return nil
}

// connect returns the cluster's scopes as they would be.
func (o *Options) connect(ctx context.Context, v *reading.Cluster, proposals []*proposal) ([]client.Object, error) {
	resources, err := resourcesOf(ctx, v, proposals)
	if err != nil {
		return nil, err
	}

	for _, p := range proposals {
		if p.object == nil || !isScope(p.object) {
			continue
		}

		at := slices.IndexFunc(resources, func(r client.Object) bool { return isSame(r, p.object) })
		if at < 0 {
			resources = append(resources, p.object)
		} else {
			resources[at] = p.object
		}
	}

	endScopes(resources, proposals)

	return resources, nil
}
