package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/consent"
)

// RevokeOptions are what "ambit revoke" is told.
type RevokeOptions struct {
	ConsentOptions

	// Timeout bounds the wait for the manager to take away what it projected.
	Timeout time.Duration
}

func newRevoke() *cobra.Command {
	o := &RevokeOptions{}
	c := &cobra.Command{
		Use:   "revoke [NAMESPACE] --to OPS",
		Short: "Take back what \"ambit authorize\" granted",
		Long: `Take back what "ambit authorize" granted: take NAMESPACE out of the NamespaceScope in OPS,
wait until what was projected for it is gone from NAMESPACE, and then take the grant back.
NAMESPACE is the current one by default.

The grant goes also when something projected is still there after --timeout; that is
said, and the exit code is 1. The service account in OPS stays.`,
		Example: `  ambit revoke cloudpak1 --to ibm-common-services`,
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
	c.Flags().DurationVar(&o.Timeout, "timeout", 10*time.Second, "how long to wait for what was projected to go")

	return c
}

// Validate says what is wrong with the options, before anything is read.
func (o *RevokeOptions) Validate() error {
	if o.Timeout < 0 {
		return fmt.Errorf("--timeout is %s; give 0 or more", o.Timeout)
	}

	return o.ConsentOptions.Validate()
}

// Run takes back. As long as the scope has the namespace as a member, the manager needs the grant to clean up.
func (o *RevokeOptions) Run(ctx context.Context) error {
	w, err := o.world(ctx)
	if err != nil {
		return err
	}

	var nss *operatorv1.NamespaceScope
	if !o.GrantOnly {
		if nss, err = w.scope(ctx, o.Scope); err != nil {
			return err
		}
	}

	grants, err := w.grants(ctx)
	if err != nil {
		return err
	}

	mine, others := o.divide(grants, nss)
	if err := o.show(nss, mine, others); err != nil {
		return err
	}

	if o.DryRun == dryRunClient {
		return sayTo(o.Out, "Nothing was changed: this was a dry run by the client.")
	}

	if err := w.tryRevoking(ctx, nss, mine); err != nil {
		return err
	}

	if o.DryRun == dryRunServer {
		return sayTo(o.Out, "Nothing was changed: this was a dry run by the server, which would accept it.")
	}

	var left []string

	if nss != nil {
		if err := w.changeMembers(ctx, nss, false, consent.Without); err != nil {
			return err
		}

		if left, err = w.waitUntilGone(ctx, nss, o.Timeout); err != nil {
			return err
		}
	}

	if err := w.takeBack(ctx, mine, false); err != nil {
		return err
	}

	if len(left) > 0 {
		return stillThere(o.Namespace, nss, left)
	}

	return sayTo(o.Out, "Done: %s consents to nothing of this any more.", o.Namespace)
}

// divide separates what is taken back from the grants that other scopes of the same namespace have. Without a scope it is
// everything, or what was granted for the scope that --scope names.
func (o *RevokeOptions) divide(grants []grantedObject, nss *operatorv1.NamespaceScope) (mine, others []grantedObject) {
	name := o.Scope
	if nss != nil {
		name = nss.Name
	}

	for _, g := range grants {
		if name == "" || g.scope() == "" || g.scope() == name {
			mine = append(mine, g)
		} else {
			others = append(others, g)
		}
	}

	return mine, others
}

func (o *RevokeOptions) show(nss *operatorv1.NamespaceScope, mine, others []grantedObject) error {
	if nss != nil && slices.Contains(nss.Spec.NamespaceMembers, o.Namespace) {
		if err := sayTo(o.Out, "NamespaceScope %s/%s: %s is a member no longer", nss.Namespace, nss.Name, o.Namespace); err != nil {
			return err
		}
	}

	for _, g := range mine {
		if err := sayTo(o.Out, "%s %s in namespace %s: taken back", g.kind, g.GetName(), o.Namespace); err != nil {
			return err
		}
	}

	if len(mine) == 0 {
		if err := sayTo(o.Out, "Nothing was granted to %s in namespace %s.", o.To, o.Namespace); err != nil {
			return err
		}
	}

	for _, g := range others {
		if g.kind == "Role" {
			if err := sayTo(o.Out, "Note: the grant for scope %s stays; to take it back: ambit revoke %s --to %s --scope %s",
				g.scope(), o.Namespace, o.To, g.scope()); err != nil {
				return err
			}
		}
	}

	return nil
}

func stillThere(namespace string, nss *operatorv1.NamespaceScope, left []string) error {
	const shown = 3

	names := strings.Join(left[:min(shown, len(left))], ", ")
	if len(left) > shown {
		names += fmt.Sprintf(" and %d more", len(left)-shown)
	}

	cause := "is Ambit running?"
	if nss.Spec.NamespaceSelector != nil {
		cause = "does its namespaceSelector still select " + namespace + "?"
	}

	return fmt.Errorf("the grant is taken back, but what NamespaceScope %s/%s projected is still in namespace %s: %s; %s "+
		"To remove it: kubectl delete rolebindings,roles -n %s -l ambit.dev/scope=%s",
		nss.Namespace, nss.Name, namespace, names, cause, namespace, ownerHash(nss))
}
