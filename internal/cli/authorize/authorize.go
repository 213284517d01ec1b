// Package authorize is "ambit authorize" and "ambit revoke", which takes back what the other granted.
package authorize

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Options are the flags and arguments of "ambit authorize".
type Options struct {
	GrantOptions

	// Account is the service account that is granted to; empty means the one that the scope names, else "ambit".
	Account string
	// All grants the wide rule instead of the least.
	All bool
	// Installs grants what the operators need that are installed in To, instead of what a scope projects.
	Installs bool
}

// Command returns "ambit authorize".
func Command() *cobra.Command {
	o := &Options{}
	c := &cobra.Command{
		Use:   "authorize [NAMESPACE] --to OPS",
		Short: "Authorize the operators of another namespace in a namespace",
		Long: `Authorize the operators of another namespace in a namespace: grant the service account that
writes for the NamespaceScope in OPS the minimal rights to project the scope into
NAMESPACE, and add NAMESPACE to the scope. NAMESPACE is the current one by default.

The grant is one Role and one RoleBinding, which the command shows first. Run the command again when
the scope needs more; repeating it is harmless. The command writes with your own rights.

If NAMESPACE is OPS itself, the command grants what the scope needs in its own namespace: to write its
watch list, to inject the list where the scope asks for that, and to restart its readers. For a scope
with manualManagement and no service account, the grant of each member includes these rights.

With --installs the command ignores scopes and serves the OperatorGroup in OPS: it grants the group's
service account the permissions that the operators installed there need in their targets.`,
		Example: `  # Preview; nothing is changed
  ambit authorize cloudpak1 --to ibm-common-services --dry-run=server

  # Grant, and make cloudpak1 a member of the scope in ibm-common-services
  ambit authorize cloudpak1 --to ibm-common-services

  # Grant what the scope needs in its own namespace
  ambit authorize ibm-common-services --to ibm-common-services

  # Authorize the operators that are installed in team-a
  ambit authorize team-a-jobs --to team-a --installs`,
		RunE: command.InSteps(o),
	}

	o.bind(c)
	c.Flags().StringVar(&o.Account, "service-account", "",
		"service account in OPS that gets the rights; by default the one that the scope names, else ambit; created if missing")
	c.Flags().BoolVar(&o.All, "all", false,
		"grant everything in NAMESPACE, and the right to grant any rule there, instead of the minimum")
	c.Flags().BoolVar(&o.Installs, "installs", false,
		"grant what operators need that are installed in OPS from ClusterServiceVersions; serves no scope")
	output.Bind(c, &o.Output, output.Forms(), "the forms for programs print the granted objects, and nothing else, to the output")

	return c
}

// Validate says what is wrong with the options, before anything is read.
func (o *Options) Validate() error {
	if o.Account != "" {
		if err := command.ValidName("--service-account", o.Account); err != nil {
			return err
		}
	}

	if o.Installs && (o.All || o.Scope != "" || o.Namespace == o.To) {
		return errors.New("--installs is for what is installed in another namespace, and for no scope; leave --all and --scope out")
	}

	if o.All && o.Namespace == o.To {
		return errors.New("--all is for other namespaces; what a scope needs in its own is the same for every scope")
	}

	return o.GrantOptions.Validate()
}

// Run grants.
func (o *Options) Run(ctx context.Context) error {
	w, err := o.connect(ctx, false, o.Namespace, o.To)
	if err != nil {
		return err
	}

	s, err := o.scope(ctx, w)
	if err != nil {
		return err
	}

	grants, notes, err := o.decide(ctx, w, s)
	if err != nil {
		return err
	}

	foreign, err := w.boundTo(ctx, grants)
	if err != nil {
		return err
	}

	unused, err := w.unused(ctx, s)
	if err != nil {
		return err
	}

	if err := o.show(grants, slices.Concat(notes, foreign, unused)); err != nil {
		return err
	}

	if o.changesNoScope() {
		s = nil
	}

	return o.carryOut(func() error { return o.write(ctx, w.trying(), grants, s) }, func() error {
		if err := o.write(ctx, w, grants, s); err != nil {
			return err
		}

		if s == nil {
			return o.say("Granted. No scope was changed.")
		}

		return o.say("Granted. %s is a member of %s.", o.Namespace, grant.Title(s.Owner))
	})
}

// scope returns the scope that is meant; nil where the grant is for no scope.
func (o *Options) scope(ctx context.Context, w *session) (*scope.Scope, error) {
	// Only a grant that leaves scopes alone can do without one.
	if o.Installs || o.All && o.GrantOnly {
		return nil, nil //nolint:nilnil // None is an answer.
	}

	s, err := reading.FindScope(ctx, w.Client, o.To, o.wanted(), byFlag())
	if err == nil && s.Deleting() && !o.changesNoScope() {
		return nil, fmt.Errorf("%s is being deleted, and takes no members; to let it remove what it projected, give --grant-only",
			grant.Title(s.Owner))
	}

	return s, err
}

// changesNoScope says whether the command only grants. A scope's own namespace is always a member.
func (o *Options) changesNoScope() bool { return o.GrantOnly || o.Namespace == o.To }

// show prints what is granted: the objects, and the same in words.
func (o *Options) show(grants []grant.Grant, notes []string) error {
	objects := make([]scope.Object, 0, 2*len(grants))
	for i := range grants {
		objects = append(objects, grants[i].Role(), grants[i].RoleBinding())
	}

	if err := output.Objects(o.Out, o.Output, objects); err != nil {
		return err
	}

	for i := range grants {
		g := &grants[i]
		if err := o.say("Service account %s of %s may, in namespace %s only:", g.Account, g.To, g.Namespace); err != nil {
			return err
		}

		for _, line := range grant.Words(g.Rules) {
			if err := o.say("  %s", line); err != nil {
				return err
			}
		}
	}

	return o.notes(notes)
}
