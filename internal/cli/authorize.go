package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/consent"
)

// AuthorizeOptions are what "ambit authorize" is told.
type AuthorizeOptions struct {
	ConsentOptions

	// Account is the service account that is granted to; empty means the one that the scope names, else "ambit".
	Account string
	// All grants the wide rule instead of the least.
	All bool
	// Output is "", "yaml" or "json".
	Output string
}

func newAuthorize() *cobra.Command {
	o := &AuthorizeOptions{}
	c := &cobra.Command{
		Use:   "authorize [NAMESPACE] --to OPS",
		Short: "Let the operators of another namespace into a namespace",
		Long: `Let the operators of another namespace into a namespace: grant the service account that
writes for the NamespaceScope in OPS the least by which it can project the scope into
NAMESPACE, and add NAMESPACE to the scope. NAMESPACE is the current one by default.

It grants by one Role and one RoleBinding, which it shows first. Run it again when the
scope needs more; repeating it is harmless. It writes with your own rights.`,
		Example: `  # Look first; nothing is changed
  ambit authorize cloudpak1 --to ibm-common-services --dry-run=server

  # Grant, and make cloudpak1 a member of the scope in ibm-common-services
  ambit authorize cloudpak1 --to ibm-common-services`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.complete(c, args); err != nil {
				return err
			}

			if err := o.Validate(); err != nil {
				return usageError{err}
			}

			return o.Run(c.Context())
		},
	}

	o.bind(c)
	c.Flags().StringVar(&o.Account, "service-account", "",
		"service account in OPS that is granted to; by default the one that the scope names, else ambit; made if missing")
	c.Flags().BoolVar(&o.All, "all", false, "grant everything in NAMESPACE, and any rule for others, instead of the least")
	c.Flags().StringVarP(&o.Output, "output", "o", "", "print the granted objects as yaml or json, and nothing else, to the output")

	return c
}

// Validate says what is wrong with the options, before anything is read.
func (o *AuthorizeOptions) Validate() error {
	if o.Output != "" && o.Output != "yaml" && o.Output != "json" {
		return fmt.Errorf("--output is %q; give yaml or json", o.Output)
	}

	if o.Account != "" {
		if err := validName("--service-account", o.Account); err != nil {
			return err
		}
	}

	return o.ConsentOptions.Validate()
}

// Run grants. Everything that can be refused is tried by a server-side dry run first, so that a refusal changes nothing.
func (o *AuthorizeOptions) Run(ctx context.Context) error {
	w, err := o.world(ctx)
	if err != nil {
		return err
	}

	// Only a wide grant that leaves scopes alone can do without one.
	var nss *operatorv1.NamespaceScope
	if !o.All || !o.GrantOnly {
		if nss, err = w.scope(ctx, o.Scope); err != nil {
			return err
		}
	}

	grant, notes, err := o.grant(ctx, w, nss)
	if err != nil {
		return err
	}

	if err := o.show(grant, notes); err != nil {
		return err
	}

	if o.GrantOnly {
		nss = nil
	}

	if o.DryRun == dryRunClient {
		return o.say("Nothing was changed: this was a dry run by the client.")
	}

	if err := w.authorize(ctx, grant, nss, true); err != nil {
		return err
	}

	if o.DryRun == dryRunServer {
		return o.say("Nothing was changed: this was a dry run by the server, which would accept it.")
	}

	if err := w.authorize(ctx, grant, nss, false); err != nil {
		return err
	}

	if nss == nil {
		return o.say("Granted. No scope was changed.")
	}

	return o.say("Granted. %s is a member of NamespaceScope %s/%s.", o.Namespace, nss.Namespace, nss.Name)
}

// grant decides what is granted.
func (o *AuthorizeOptions) grant(ctx context.Context, w *world, nss *operatorv1.NamespaceScope,
) (*consent.Grant, []string, error) {
	g := &consent.Grant{Namespace: o.Namespace, To: o.To, Account: o.Account, Scope: o.Scope}

	if nss != nil {
		g.Scope = nss.Name

		if g.Account == "" {
			g.Account = nss.Spec.ServiceAccountName
		}
	}

	if g.Account == "" {
		g.Account = consent.DefaultAccount
	}

	if o.All {
		g.Rules = consent.Wide()

		return g, nil, nil
	}

	p, err := w.plan(ctx, nss)
	if err != nil {
		return nil, nil, err
	}

	g.Rules = consent.Rules(p)

	return g, notesOn(p, nss, g), nil
}

// show prints what is granted: the objects, and the same in words.
func (o *AuthorizeOptions) show(g *consent.Grant, notes []string) error {
	if err := o.print(g.Role(), g.RoleBinding()); err != nil {
		return err
	}

	if err := o.say("Service account %s of %s may, in namespace %s only:", g.Account, g.To, g.Namespace); err != nil {
		return err
	}

	for _, line := range consent.Words(g.Rules) {
		if err := o.say("  %s", line); err != nil {
			return err
		}
	}

	for _, note := range notes {
		if err := o.say("Note: %s", note); err != nil {
			return err
		}
	}

	return nil
}
