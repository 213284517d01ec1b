package served

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// scopesToShow returns scopes as arguments for tree.
func scopesToShow(ctx context.Context, c client.Reader, o *reading.Options) []string {
	namespace, short := "", func(obj client.Object) string { return obj.GetNamespace() + "/" + obj.GetName() }
	if o.NamespaceGiven {
		namespace, short = o.Namespace, client.Object.GetName
	}

	out := reading.ScopeNames(ctx, c, namespace, short)

	if !o.NamespaceGiven {
		out = append(out, reading.NamesIn(ctx, c, &operatorsv1alpha1.ScopeInstanceList{}, "", client.Object.GetName)...)
	}

	return out
}

// TreeOptions are the flags and arguments of "ambit tree".
type TreeOptions struct {
	reading.Options

	// Scope is NAME or NAMESPACE/NAME; empty means all.
	Scope string
	// In are patterns of namespaces.
	In []string
	// Failed shows only what is not fully served; All folds nothing.
	Failed, All bool
}

// TreeCommand returns "ambit tree".
func TreeCommand() *cobra.Command {
	o := &TreeOptions{}
	c := &cobra.Command{
		Use:   "tree [SCOPE]",
		Short: "Show scopes, their namespaces, the accounts that work there, and their roles",
		Long: `Show scopes, their namespaces, the accounts that work there, and their roles, with what
failed and why. SCOPE is NAME or NAMESPACE/NAME; without it, and without -n, all scopes that
you may see.

If a scope is gone but left permissions, because somebody removed its finalizer, the command shows the
scope as OrphansLeft, with where these permissions are and how to delete them. So it does for a
ClusterServiceVersion that is gone, whose account may not delete what it was given.

The command shows namespaces with the same content as one. -o json and yaml print all of them.

The command reads with your rights, and names what you may not read. A question mark, with what the
scope's status says, marks a namespace of which you may read too little; NAMESPACE/*
stands for accounts that you may not read.`,
		Example: `  # Everything
  ambit tree

  # One scope, with every namespace by itself
  ambit tree ibm-common-services/namespacescope --all

  # Only what is wrong
  ambit tree --failed`,
		RunE: command.InSteps(o),
	}

	o.Bind(c)
	c.ValidArgsFunction = o.Names(scopesToShow)

	f := c.Flags()
	f.StringSliceVar(&o.In, "in", nil, "only namespaces of these names; * stands for anything")
	f.BoolVar(&o.Failed, "failed", false, "only what is not fully served")
	f.BoolVar(&o.All, "all", false, "show each namespace by itself")

	return c
}

// Complete takes the scope to show.
func (o *TreeOptions) Complete(c *cobra.Command, args []string) error {
	if len(args) > 1 {
		return command.Usagef("%s takes one scope, not %d; see %s --help", c.CommandPath(), len(args), c.CommandPath())
	}

	if len(args) == 1 {
		o.Scope = args[0]
	}

	if err := o.Options.Complete(c, args); err != nil {
		return err
	}

	// Whoever may not see all scopes may see those of the namespace that is named.
	if namespace, _, named := strings.Cut(o.Scope, "/"); named && !o.NamespaceGiven {
		o.Namespace = namespace
	}

	return nil
}

// Validate says what is wrong with the options, before anything is read.
func (o *TreeOptions) Validate() error {
	if err := validPatterns("--in", o.In); err != nil {
		return err
	}

	return o.Options.Validate()
}

// TreeData is what "ambit tree" prints for programs.
type TreeData struct {
	Scopes  []overview.ScopeTree `json:"scopes"`
	NotRead []string             `json:"notRead,omitempty"`
	Notes   []string             `json:"notes,omitempty"`
}

// Run shows the tree.
func (o *TreeOptions) Run(ctx context.Context) error {
	v, all, err := once(ctx, &o.Options)
	if err != nil {
		return err
	}

	trees := all.Keep(overview.Filter{Namespace: matcher(o.In), OnlyFailed: o.Failed}).Trees()
	trees = o.meant(trees)

	if o.Scope != "" && len(trees) == 0 {
		return fmt.Errorf("there is no scope %s, or you may not see it; ambit tree shows those that you may see", o.Scope)
	}

	if o.Output != output.Table {
		return o.PrintData(&TreeData{trees, v.NotRead(), v.Notes})
	}

	p := &printer{paint: terminal.PaintFor(o.Out), all: o.All}
	for i := range trees {
		p.scope(&trees[i])
	}

	if len(trees) == 0 {
		p.Linef("%s", nothing(v.NotRead(), "There is no scope to show", o.NamespaceGiven))
	}

	if err := output.Say(o.Out, "%s", p.Text()); err != nil {
		return err
	}

	return o.PrintNotes(v)
}

// meant returns the scopes to show, with the namespaces to show.
func (o *TreeOptions) meant(trees []overview.ScopeTree) []overview.ScopeTree {
	out := []overview.ScopeTree{}

	for _, t := range trees {
		if in := matcher(o.In); in != nil {
			t.Members = slices.DeleteFunc(t.Members, func(m overview.MemberTree) bool { return !in(m.Namespace) })
		}

		if o.isMeant(&t) {
			out = append(out, t)
		}
	}

	return out
}

// isMeant says whether a scope is to be shown. Templates bind nothing by themselves, so only a name, or --failed, shows them.
func (o *TreeOptions) isMeant(t *overview.ScopeTree) bool {
	kind, name, _ := strings.Cut(t.Name, " ")

	switch {
	case o.Scope != "":
		return name == o.Scope || name[strings.LastIndex(name, "/")+1:] == o.Scope
	case o.Failed:
		return t.Ready != "True" || len(t.Failed) > 0 || len(t.Members) > 0
	default:
		return kind != "ScopeTemplate"
	}
}

// printer writes trees for users.
type printer struct {
	terminal.Builder

	paint terminal.Paint
	all   bool
	// wide are the accounts of the scope that hold something in all namespaces.
	wide map[overview.Operator]bool
}

func (p *printer) scope(t *overview.ScopeTree) {
	p.Linef("%s   %s", p.paint.Bold(t.Name), p.ready(&t.Scope))

	for _, remark := range t.Remarks {
		p.Linef("│  %s %s", p.paint.Warn("!"), remark)
	}

	p.wide = map[overview.Operator]bool{}
	for i := range t.ClusterWide {
		p.wide[t.ClusterWide[i].Operator] = true
	}

	groups := t.Groups(!p.all)
	for i := range groups {
		p.group(&groups[i], i == len(groups)-1)
	}
}

func (p *printer) ready(s *overview.Scope) terminal.Text {
	switch {
	case s.Reason == "" && s.Message == "":
		return p.paint.Warn("no status yet")
	case s.Ready == "True":
		return p.paint.Good(s.Reason)
	case s.Ready == "False":
		return terminal.Textf("%s: %s", p.paint.Bad(s.Reason), s.Message)
	default:
		return terminal.Textf("%s: %s", p.paint.Warn(s.Reason), s.Message)
	}
}

func (p *printer) group(g *overview.Group, last bool) {
	branch, stem := "├─ ", "│  "
	if last {
		branch, stem = "└─ ", "   "
	}

	count := terminal.Text{}
	if len(g.Namespaces) > 1 {
		count = p.paint.Dim(fmt.Sprintf(" (%d namespaces)", len(g.Namespaces)))
	}

	p.Linef("%s%s%s%s", branch, printable.Some(output.Places(g.Namespaces), output.MaxSome), count,
		p.state(g.State, g.Reason, g.Message))

	if len(g.Accounts) == 0 && (g.State == overview.OwnNamespace || g.State == overview.Idle) {
		p.Linef("%s└─ %s", stem, p.paint.Dim("no account"))
	}

	table := terminal.Table{Indent: stem}

	for i := range g.Accounts {
		a := &g.Accounts[i]

		twig := "├─ "
		if i == len(g.Accounts)-1 {
			twig = "└─ "
		}

		roles := make([]terminal.Text, 0, len(a.Roles))

		for _, r := range a.Roles {
			// Users know the roles of an operator namespace by their names, without the namespace.
			role := terminal.Of(output.QuotedTitle(strings.Replace(r.Name, " "+a.Namespace+"/", " ", 1)))
			if r.Missing {
				role = p.paint.Bad(terminal.Textf("%s (missing)", role))
			}

			roles = append(roles, role)
		}

		switch {
		case len(roles) > 0:
		case a.State == overview.Unknown || a.Name == overview.AnyAccount:
			roles = []terminal.Text{p.paint.Dim("not read")}
		default:
			roles = []terminal.Text{p.paint.Dim("no role")}
		}

		table.Row(terminal.Textf("%s%s%s", twig, a.String(), wideMark(p.paint, p.wide[a.Operator])),
			terminal.Join(roles, ", "))
	}

	p.Add(table.Text())
}

func (p *printer) state(state overview.State, reason, message string) terminal.Text {
	switch state {
	case overview.OwnNamespace:
		return p.paint.Dim(" (operator namespace)")
	case overview.Idle:
		return terminal.Text{}
	case overview.Served:
		if reason == "" {
			return terminal.Text{}
		}

		return terminal.Textf("  %s: %s", p.paint.Warn(reason), message)
	case overview.Unknown:
		return terminal.Textf("  %s: %s", p.paint.Warn("? "+reason), message)
	case overview.Partial, overview.Failed:
	}

	return terminal.Textf("  %s: %s", p.paint.Bad("✗ "+reason), message)
}
