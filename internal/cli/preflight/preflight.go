// Package preflight is "ambit preflight": it says every permission that somebody lacks, before anything is written.
package preflight

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// Options are the flags and arguments of "ambit preflight".
type Options struct {
	reading.Options

	// Scope is the name of a scope in the cluster, as NAME or GROUP/NAME. Empty means the scope called namespacescope, else the only
	// one.
	Scope string
	// Files hold scopes that need not be in the cluster, or objects that somebody would write; "-" is the standard input.
	Files []string
	// User and Group are who would write objects, where that is no service account.
	User, Group string
	// In are namespaces for objects that name none; Selector selects more by label.
	In       []string
	Selector string
	// Account is who would write, as NAMESPACE/NAME or NAME; empty means whom the scope names.
	Account string
}

// Command returns "ambit preflight".
func Command() *cobra.Command {
	o := &Options{}
	c := &cobra.Command{
		Use:   "preflight [SCOPE | csv/NAME | installplan/NAME] [-f FILE] [--service-account NAME]",
		Short: "Show every permission that an account lacks to write what a scope or a manifest asks for",
		Long: `Show every permission that a service account lacks to write what a NamespaceScope asks for,
in all of its namespaces at once. SCOPE is NAME or GROUP/NAME; by default the scope called
namespacescope, else the only one in the namespace. With -f the scope need not be in the
cluster.

With -o yaml the command prints, for each namespace, the Role and RoleBinding that grant exactly what
is missing. "ambit revoke" takes back what was granted for a scope.

If the files hold no NamespaceScope, the command checks whether a subject could apply their objects:
a service account, --for-user or --for-group, or you if none is given. Beside NamespaceScopes the command
leaves out other objects, and names them. For a ScopeTemplate it checks the template, its
ClusterRoles, and their bindings. It counts what Ambit's own admission policies ask, too: the right
to use the account that a scope or an OperatorGroup names, or to escalate clusterroles. Objects that
name no namespace are checked in each namespace of --in and --namespace-selector, or in the current one.

For csv/NAME, installplan/NAME, or files with a ClusterServiceVersion (also a bundle folder) it checks
what installing the operator needs: its definitions, accounts, Deployments and permissions, in its
own namespace and in each target of the OperatorGroup there. If the namespace has no group yet,
a group in the files says who installs, and for which targets. The command checks the other objects
of the files for the same subject, in their own namespace or in the operator's; leave out
what somebody else makes, such as Namespaces.

If the cluster does not know a kind, the command takes its CustomResourceDefinition from the files.
Without one, it leaves the objects out, and names them.

The command impersonates the subject, so you need the right to do that, and reads the rest with
your own rights. It changes nothing.

Exit code: 0 nothing is missing, 3 something is missing, 1 failed, 2 wrong usage.`,
		Example: `  # What does the account of the scope in ibm-common-services lack?
  ambit preflight -n ibm-common-services

  # Grant exactly that
  ambit preflight -n ibm-common-services -o yaml | kubectl apply -f -

  # Before the scope is there
  ambit preflight -f scope.yaml --service-account deployer

  # What does the account of the tenant's OperatorGroup lack to install an operator?
  ambit preflight csv/etcdoperator.v0.9.4 -n tenant

  # Before anything is there, from the folder of its bundle
  ambit preflight -f bundle/ --service-account tenant/installer

  # What does Jane lack to apply a folder, whose objects name no namespace, in two namespaces?
  ambit preflight -f app/ --for-user jane@example.com --in cloudpak1,cloudpak2`,
		RunE: command.InSteps(o),
	}

	o.bind(c)

	return c
}

// bind adds the flags, with those by which kubectl finds a cluster.
func (o *Options) bind(c *cobra.Command) {
	// YAML comes before JSON, because it is what users apply.
	o.Forms = []string{output.Table, output.YAML, output.JSON}
	o.Programs = "the forms for programs are the Roles and RoleBindings that grant what is missing"
	o.Bind(c)

	f := c.Flags()
	f.StringSliceVarP(&o.Files, "filename", "f", nil,
		"file, folder or URL with NamespaceScopes, or with other objects; - is the standard input")
	f.StringVar(&o.Account, "service-account", "",
		"service account that would write, as NAME in the scope's namespace or as NAMESPACE/NAME; by default the scope's own, "+
			"else Ambit's default")
	f.StringVar(&o.User, "for-user", "", "user who would apply the files")
	f.StringVar(&o.Group, "for-group", "", "group whose members would apply the files")
	f.StringSliceVar(&o.In, "in", nil, "namespaces for objects that name none")
	f.StringVar(&o.Selector, "namespace-selector", "", "the same by the labels of namespaces, such as team=a")
}

// Complete takes the scope or the install that is asked about, and the current namespace of the kubeconfig.
func (o *Options) Complete(c *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return command.Usagef("%s takes one scope, not %d; see %s --help", c.CommandPath(), len(args), c.CommandPath())
	case len(args) == 1:
		o.Scope = args[0]
	}

	return o.Options.Complete(c, args)
}

// Validate says what is wrong with the options, before anything is read.
func (o *Options) Validate() error {
	if len(o.Files) > 0 && o.Scope != "" {
		return errors.New("a scope of the cluster and -f are both given; give one of them")
	}

	if err := files.Validate(o.Files); err != nil {
		return err
	}

	if err := o.Options.Validate(); err != nil {
		return err
	}

	if err := o.validateObjects(); err != nil {
		return err
	}

	namespace, name, found := strings.Cut(o.Account, "/")
	if !found {
		namespace, name = "", o.Account
	}

	for _, part := range []string{namespace, name} {
		if part == "" && !found {
			continue
		}

		if err := command.ValidName("--service-account", part); err != nil {
			return err
		}
	}

	return nil
}

// account is who is asked about: the account that the caller names, else that of the scope, as which the manager writes unless it
// refuses that. note says why the manager is not known.
func (o *Options) account(s *scope.Scope, id writer.Identity, note string) (namespace, name string, err error) {
	namespace, name, found := strings.Cut(o.Account, "/")
	if !found {
		namespace, name = s.Key.Namespace, cmp.Or(o.Account, s.Delegate)
	}

	if name != "" {
		return namespace, name, nil
	}

	why := id.Why()
	if !id.IsNobody() {
		why = "it names no service account, so Ambit itself writes for it"
	}

	if note != "" {
		why += " (" + note + ")"
	}

	return "", "", fmt.Errorf("%s: %s; say whom to ask about: --service-account NAME", s.Owner, why)
}

// Run asks, and says what is missing. ErrMissing is the answer "something".
func (o *Options) Run(ctx context.Context) error {
	c, config, err := command.Connect(o.Cluster)
	if err != nil {
		return err
	}

	documents, err := o.documents()
	if err != nil {
		return err
	}

	scopes, left, err := o.scopesIn(c.Scheme(), documents)

	switch {
	case err != nil:
		return err
	case o.isNamedInstall() || len(documents) > 0 && len(scopes) == 0:
		return o.runObjects(ctx, c, config, documents)
	case len(scopes) == 0:
		scopes, err = o.scopeOfCluster(ctx, c)
	}

	if err != nil {
		return err
	}

	answers, err := o.ask(ctx, c, config, scopes)
	if err != nil {
		return err
	}

	return o.print(answers, noteLeftOut(left))
}

// ask asks about each scope, as the manager takes it.
func (o *Options) ask(
	ctx context.Context, c client.Client, config *rest.Config, scopes []scope.Scope,
) ([]scopeAnswer, error) {
	manager, note, err := snapshot.New(c).Manager(ctx, o.AmbitNamespace)
	if err != nil {
		return nil, command.OneLine(err)
	}

	answers, writers := make([]scopeAnswer, 0, len(scopes)), manager.Writers()

	for i := range scopes {
		s := writers.Here(scopes[i])

		// Whether the account is there is said beside what it lacks.
		id := writers.Of(&s, &facts.OperatorNamespace{Accounts: map[string]struct{}{s.Delegate: {}}})

		namespace, name, err := o.account(&s, id, note)
		if err != nil {
			return nil, err
		}

		found, err := askAbout(ctx, c, config, &s, manager.Namespace, namespace, name)
		if err != nil {
			return nil, err
		}

		if o.Account == "" && id.IsNobody() {
			found.Notes = append(found.Notes, "whatever it may, nothing is written as it: "+id.Why())
		}

		answers = append(answers, *found)
	}

	return answers, nil
}
