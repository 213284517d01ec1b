// Package narrow is "ambit narrow": it shrinks what operators may do in the whole cluster to some namespaces.
package narrow

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/narrow"
	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// ErrMore is the answer that a new version asks for more. The command has printed what.
var ErrMore = errors.New("the new version asks for more")

// formSarif is a form that --output has only for a check.
const formSarif = "sarif"

// Options are the flags and arguments of "ambit narrow".
type Options struct {
	Out, ErrOut *terminal.Writer
	// Data takes the manifests.
	Data io.Writer
	In   io.Reader

	// Cluster says which cluster, and as which account.
	Cluster genericclioptions.RESTClientGetter
	// Namespace is the one that -n names, for objects that name none.
	Namespace string
	Version   string

	Files     []string
	Recursive bool
	From      string
	Check     string
	Output    string
	Offline   bool
	Strict    bool
	Quiet     bool

	members, memberLabels, keep, reads, accounts []string
	as                                           string
	fence                                        bool
	fenceAllow                                   []string

	flags *pflag.FlagSet
	// flagged are the flags that say how to narrow, of those that were given. Whoever wrote the input may not say otherwise.
	flagged []string
}

// howFlags are the flags that say how to narrow, which the configuration of a kustomize function may do, too.
var howFlags = []string{"members", "member-labels", "keep", "reads", "account", "as", "fence", "fence-allow", "strict"}

// Command returns "ambit narrow".
func Command(version string) *cobra.Command {
	o := &Options{Version: version}
	c := &cobra.Command{
		Use:   "narrow (-f FILE | --from NAMESPACE/ACCOUNT) [--members a,b] [--member-labels k=v]",
		Short: "Reduce an operator's cluster-wide permissions to some namespaces",
		Long: `Reduce an operator's cluster-wide permissions to some namespaces.

The command reads what "helm template" or "kustomize build" prints, or with --from what runs in the
cluster, and prints manifests that you can apply as they are: a ClusterRole with the rules that have
an effect in the whole cluster only, and the rest as Role and RoleBinding in the operator's namespace,
with a NamespaceScope that projects them into the members (with --as template: a ScopeTemplate and a
ScopeInstance). Operators get their list of namespaces in the form that they read. Everything else
stays as it was, comments and order included. A report about which rights are lost where, and about
what will not work, goes to standard error; -o table prints only the report.

The command learns which resources are namespaced from the cluster, from the CustomResourceDefinitions
in the files and, for Kubernetes' own resources, from a built-in list; --offline asks no cluster. It
names the resources that it cannot classify.

With --keep, an operator that must list the whole cluster keeps that right, and --fence lets it
write in its members only.

With --check the command compares two versions, and prints the additional rights of the new one. The
rules of a role that is not in the files come from the cluster; a new binding of a role that neither
has counts as an additional right. So does what ClusterServiceVersions, ScopeTemplates, NamespaceScopes
and the like ask for, and a change of what installs something that is not in the files.

As a filter it is a Helm post-renderer and a kustomize function: without -f it reads standard input,
also a ResourceList with its own functionConfig.

Exit code: 0 done; 3 with --check, the new version needs additional rights; 1 failed, or with --strict
something needs a decision; 2 wrong usage.`,
		Example: `  # From Helm
  helm template keda kedacore/keda -n keda | ambit narrow -f - --members shop,billing | kubectl apply -f -
  helm install keda kedacore/keda -n keda --post-renderer ambit \
    --post-renderer-args narrow --post-renderer-args --members=shop   # Helm 3

  # A running operator
  ambit narrow --from keda/keda-operator --members shop -o table

  # An operator that must list the whole cluster
  ambit narrow -f cert-manager.yaml --member-labels team=a --keep 'get,list,watch *' --fence

  # Which additional rights does the new version need?
  ambit narrow --check old.yaml -f new.yaml`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.Usagef("%s does not know %q; give files with -f", c.CommandPath(), args[0])
			}

			if err := o.complete(c); err != nil {
				return err
			}

			n, err := o.Validate()
			if err != nil {
				return command.Usage(err)
			}

			return o.Run(c.Context(), n)
		},
	}

	o.bind(c)

	return c
}

func (o *Options) bind(c *cobra.Command) {
	cluster := genericclioptions.NewConfigFlags(true)
	// In this command, --as says in which form to write, not whom to impersonate.
	cluster.Impersonate, cluster.ImpersonateUID, cluster.ImpersonateGroup = nil, nil, nil
	o.Cluster = command.BindCluster(c, cluster)

	f := c.Flags()
	o.flags = f
	files.Bind(f, &o.Files, &o.Recursive, "file or folder with manifests")
	f.StringVar(&o.From, "from", "", "narrow what this account holds in the cluster, as NAMESPACE/ACCOUNT")
	f.StringVar(&o.Check, "check", "", "compare with the manifests of this file or folder")
	f.StringVarP(&o.Output, "output", "o", output.YAML,
		"yaml or json for manifests, table for the report alone; with --check: table, json, yaml or sarif")
	f.BoolVar(&o.Offline, "offline", false, "ask no cluster")
	f.BoolVar(&o.Strict, "strict", false, "print nothing and fail where there is a warning")
	f.BoolVarP(&o.Quiet, "quiet", "q", false, "print warnings, and no report")
	f.StringSliceVar(&o.members, "members", nil, "namespaces in which the operators work, besides their own")
	f.StringSliceVar(&o.memberLabels, "member-labels", nil, "labels of further namespaces, as KEY=VALUE")
	f.StringVar(&o.as, "as", string(narrow.AsScope), "scope or template")
	f.StringArrayVar(&o.keep, "keep", nil, "leave a right cluster-wide: 'VERBS GROUP/RESOURCES', such as 'list,watch core/secrets'")
	f.StringArrayVar(&o.reads, "reads", nil,
		"how a container reads its namespaces: [WORKLOAD[/CONTAINER]=]env:NAME, arg:--flag or none")
	f.StringSliceVar(&o.accounts, "account", nil, "narrow these accounts only, as NAMESPACE/ACCOUNT")
	f.BoolVar(&o.fence, "fence", false, "refuse what the operators write outside of their members, by an admission policy")
	f.StringSliceVar(&o.fenceAllow, "fence-allow", nil, "what the fence leaves out: "+strings.Join(narrow.FenceWords(), ", "))
}

func (o *Options) complete(c *cobra.Command) error {
	o.Out, o.ErrOut = terminal.NewWriter(c.OutOrStdout()), terminal.NewWriter(c.ErrOrStderr())
	o.Data, o.In = o.Out.Data(), c.InOrStdin()

	if c.Flags().Changed("namespace") {
		namespace, _, err := o.Cluster.ToRawKubeConfigLoader().Namespace()
		if err != nil {
			return fmt.Errorf("reading the kubeconfig: %w", err)
		}

		o.Namespace = namespace
	}

	if o.Check != "" && !c.Flags().Changed("output") {
		o.Output = output.Table
	}

	if len(o.Files) == 0 && o.From == "" {
		if terminal.IsTerminal(o.In) {
			return command.Usagef("there is nothing to narrow; give -f FILE, or --from NAMESPACE/ACCOUNT")
		}

		o.Files = []string{files.Stdin}
	}

	o.flagged = slices.DeleteFunc(slices.Clone(howFlags), func(name string) bool { return !c.Flags().Changed(name) })

	return nil
}

// Validate says what is wrong with the options, before anything is read, and returns them as they are meant.
func (o *Options) Validate() (*narrow.Options, error) {
	forms := []string{output.YAML, output.JSON, output.Table}
	if o.Check != "" {
		forms = append(forms, formSarif)
	}

	switch {
	case !slices.Contains(forms, o.Output):
		return nil, fmt.Errorf("--output is %q; give %s", o.Output, strings.Join(forms, ", "))
	case o.From != "" && len(o.Files) > 0:
		return nil, errors.New("-f and --from are two different things; give one of them")
	case o.From != "" && o.Offline:
		return nil, errors.New("--from asks the cluster, and --offline does not; give one of them")
	case o.From != "" && o.Check != "":
		return nil, errors.New("--check compares files; give -f")
	}

	// For a check, the nothing that would be read the second time is no more than anything.
	if err := files.Validate(append(slices.Clone(o.Files), o.Check)); err != nil {
		return nil, err
	}

	return o.narrowing()
}

func (o *Options) narrowing() (*narrow.Options, error) {
	n := &narrow.Options{
		As: narrow.Form(o.as), Namespace: o.Namespace, Kinds: reach.NewKinds(),
		Members: slices.Compact(slices.Sorted(slices.Values(o.members))),
	}

	for _, name := range n.Members {
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
			return nil, fmt.Errorf("--members: %q is no namespace: %s", name, problems[0])
		}
	}

	if len(o.fenceAllow) > 0 && !o.fence {
		return nil, errors.New("--fence-allow is about a fence; give --fence, too")
	}

	var err error

	if n.MemberLabels, err = labelsOf(strings.Join(o.memberLabels, ",")); err != nil {
		return nil, fmt.Errorf("--member-labels: %w", err)
	}

	for _, text := range o.keep {
		keep, err := reach.ParseKeep(text)
		if err != nil {
			return nil, fmt.Errorf("--keep: %w", err)
		}

		n.Keep = append(n.Keep, keep...)
	}

	for _, text := range o.reads {
		reading, err := narrow.ParseReading(text)
		if err != nil {
			return nil, fmt.Errorf("--reads: %w", err)
		}

		n.Reads = append(n.Reads, reading)
	}

	if n.Accounts, err = o.namedAccounts(); err != nil {
		return nil, err
	}

	if o.fence {
		if n.Fence, err = narrow.NewFence(o.fenceAllow); err != nil {
			return nil, fmt.Errorf("--fence-allow: %w", err)
		}
	}

	return n, n.Validate()
}

// labelsOf reads labels. Of a key that is there twice, a map would take one value, and select more than is asked for, or others.
func labelsOf(text string) (map[string]string, error) {
	out, err := labels.ConvertSelectorToLabelsMap(text)
	if err != nil {
		return nil, fmt.Errorf("%w; give KEY=VALUE, with commas between several", err)
	}

	if text != "" && len(out) <= strings.Count(text, ",") {
		return nil, errors.New("a key is there twice, and a namespace has one value of each")
	}

	return out, nil
}

// namedAccounts returns the accounts that the flags name. If they name none, all accounts are meant.
func (o *Options) namedAccounts() ([]explain.Account, error) {
	texts := o.accounts
	if o.From != "" {
		texts = append(slices.Clone(texts), o.From)
	}

	var out []explain.Account

	for _, text := range texts {
		namespace, name, found := strings.Cut(text, "/")
		if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
			return nil, fmt.Errorf("%q is no account; give NAMESPACE/ACCOUNT", text)
		}

		out = append(out, explain.Account{Namespace: namespace, Name: name})
	}

	return out, nil
}
