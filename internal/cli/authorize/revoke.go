package authorize

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// RevokeOptions are the flags and arguments of "ambit revoke".
type RevokeOptions struct {
	GrantOptions

	// Installs takes back what was granted to the operators that are installed in To, and nothing else.
	Installs bool
	// Timeout bounds the wait for the manager to take away what it projected.
	Timeout time.Duration
}

// RevokeCommand returns "ambit revoke".
func RevokeCommand() *cobra.Command {
	o := &RevokeOptions{}
	c := &cobra.Command{
		Use:   "revoke [NAMESPACE] --to OPS",
		Short: "Take back what \"ambit authorize\" granted",
		Long: `Take back what "ambit authorize" granted: remove NAMESPACE from the NamespaceScope in OPS,
wait until everything projected for that scope is gone from NAMESPACE, and then delete the grant.
NAMESPACE is the current one by default.

If something projected is still there after --timeout, the command deletes the grant all the same,
reports what is left, and exits with 1. The service account in OPS stays, and so does the grant
in OPS itself, which "ambit revoke OPS --to OPS" takes back.

At the end the command names each RoleBinding in NAMESPACE that still gives service accounts of OPS something:
an account that holds a grant may have used it to write one.

What "ambit authorize --installs" granted stays, too, and the command says so; with --installs it is
what the command takes back, and no scope loses anything. With --grant-only and without --scope the
command takes back all grants to OPS.

The namespaces may be in the middle of being deleted; with --grant-only or --installs OPS may be gone.`,
		Example: `  ambit revoke cloudpak1 --to ibm-common-services

  # What the operators that are installed in team-a were granted
  ambit revoke team-a-jobs --to team-a --installs`,
		RunE: command.InSteps(o),
	}

	o.bind(c)
	output.Bind(c, &o.Output, output.Forms(), "the forms for programs print what is taken back, and nothing else, to the output")
	c.Flags().BoolVar(&o.Installs, "installs", false,
		"take back what was granted to operators that are installed in OPS from ClusterServiceVersions; leave scopes alone")
	c.Flags().DurationVar(&o.Timeout, "timeout", 10*time.Second, "how long to wait until everything projected is gone")

	return c
}

// Validate says what is wrong with the options, before anything is read.
func (o *RevokeOptions) Validate() error {
	if o.Timeout < 0 {
		return fmt.Errorf("--timeout is %s; give 0 or more", o.Timeout)
	}

	if o.Installs && (o.Scope != "" || o.Namespace == o.To) {
		return errors.New("--installs is for what is installed in another namespace, and for no scope; leave --scope out")
	}

	return o.GrantOptions.Validate()
}

// Run takes back. As long as the scope has the namespace as a member, the manager needs the grant to clean up.
func (o *RevokeOptions) Run(ctx context.Context) error {
	ofScope := !o.GrantOnly && !o.Installs

	// Grants to a namespace outlive it, and serve whoever creates it again.
	places := []string{o.Namespace}
	if ofScope {
		places = append(places, o.To)
	}

	w, err := o.connect(ctx, true, places...)
	if err != nil {
		return err
	}

	var s *scope.Scope
	if ofScope {
		if s, err = reading.FindScope(ctx, w.Client, o.To, o.wanted(), byFlag()); err != nil {
			return err
		}
	}

	grants, err := w.grants(ctx, o.Namespace)
	if err != nil {
		return err
	}

	mine, others, err := o.divide(grants, s)
	if err != nil {
		return err
	}

	// A scope's own namespace is a member as long as there is the scope, and holds no copies.
	if o.Namespace == o.To {
		s = nil
	}

	if err := o.show(s, mine, others); err != nil {
		return err
	}

	if err := o.showWhatStays(ctx, w, mine); err != nil {
		return err
	}

	try := func() error {
		_, err := w.trying().revoke(ctx, s, mine, o.Timeout)

		return err
	}

	return o.carryOut(try, func() error {
		left, err := w.revoke(ctx, s, mine, o.Timeout)
		if apierrors.IsConflict(err) {
			_, unread := o.keeps(ctx, w, mine, others)

			return errors.Join(err, unread)
		}

		if err != nil {
			return err
		}

		return o.sayWhatCame(ctx, w, s, left, mine, others)
	})
}

// sayWhatCame names what accounts keep first, and then what is left of the scope: whoever has a right there can make objects that
// look as if they were left.
func (o *RevokeOptions) sayWhatCame(
	ctx context.Context, w *session, s *scope.Scope, left []string, mine, others []grantedObject,
) error {
	keeps, err := o.keeps(ctx, w, mine, others)

	switch {
	case len(left) > 0:
		return errors.Join(stillThere(o.Namespace, s, left), err)
	case err != nil:
		return err
	case keeps:
		return o.say("Done. Accounts of %s still have in %s what the notes name.", o.To, o.Namespace)
	default:
		return o.say("Done: nothing of this is authorized in %s any more.", o.Namespace)
	}
}

// keeps names what accounts of the other namespace keep, and says whether that is anything. In their own namespace, they have
// rights of their own.
func (o *RevokeOptions) keeps(ctx context.Context, w *session, mine, others []grantedObject) (bool, error) {
	if o.Namespace == o.To {
		return false, nil
	}

	kept, err := w.kept(ctx, mine, others, o.Timeout)
	if err != nil {
		return false, err
	}

	return len(kept) > 0, o.showKept(kept)
}

// divide separates what is taken back from the grants that other scopes of the same namespace have, and those for installs.
// Without a scope it is everything, or what was granted for the scope that --scope names, or for installs.
func (o *RevokeOptions) divide(grants []grantedObject, s *scope.Scope) (mine, others []grantedObject, err error) {
	wanted := o.wanted()
	if s != nil {
		wanted = grant.Wanted{Group: s.Owner.Group, Name: s.Owner.Name}
	}

	var first scope.Owner

	for _, g := range grants {
		owner, forInstalls := grant.ScopeOf(g, o.To), grant.IsForInstalls(g, o.To)

		switch {
		case o.Installs != forInstalls && (o.Installs || wanted.Name != ""):
			others = append(others, g)
		case forInstalls || owner.Name == "":
			mine = append(mine, g)
		case !wanted.Means(owner):
			others = append(others, g)
		case wanted.Name != "" && first.Name != "" && first != owner:
			return nil, nil, fmt.Errorf("there are grants for %s and for %s; give --scope GROUP/NAME",
				grant.Title(first), grant.Title(owner))
		default:
			first = owner
			mine = append(mine, g)
		}
	}

	return mine, others, nil
}

// show says what is to be done, before it is tried: where it is refused, nothing else is said to the output.
func (o *RevokeOptions) show(s *scope.Scope, mine, others []grantedObject) error {
	if s != nil && slices.Contains(s.Members.Named, o.Namespace) {
		if err := o.say("%s: %s is to be a member no longer", grant.Title(s.Owner), o.Namespace); err != nil {
			return err
		}
	}

	if err := o.printTaken(mine); err != nil {
		return err
	}

	for _, g := range mine {
		if err := o.say("%s %s in namespace %s: to be taken back", g.kind, printable.Name(g.GetName()), o.Namespace); err != nil {
			return err
		}
	}

	if len(mine) == 0 {
		if err := o.say("Nothing was granted to %s in namespace %s.", o.To, o.Namespace); err != nil {
			return err
		}
	}

	return o.showOthers(others)
}

// showOthers names the grants that stay, and how each is taken back. Those for installs are one to the user.
func (o *RevokeOptions) showOthers(others []grantedObject) error {
	var notes []string

	for _, g := range others {
		if g.kind != roleKind {
			continue
		}

		var what string

		switch owner := grant.ScopeOf(g, o.To); {
		case grant.IsForInstalls(g, o.To):
			what = "the grant for what is installed in " + o.To + " stays; to take it back: " +
				grant.RevokeInstallsCommand(o.Namespace, o.To)
		case owner.Name == "":
			what = "the grant " + printable.Name(g.GetName()) + ", which is for no scope, stays; ambit revoke without --installs takes " +
				"it back"
		default:
			what = "the grant for scope " + grant.Short(owner) + " stays; to take it back: " + grant.RevokeCommand(o.Namespace, owner)
		}

		if !slices.Contains(notes, what) {
			notes = append(notes, what)
		}
	}

	return o.notes(notes)
}

// printTaken prints for programs what is taken back, as it could be granted again.
func (o *RevokeOptions) printTaken(mine []grantedObject) error {
	if o.Output == output.Table {
		return nil
	}

	objects := make([]scope.Object, 0, len(mine))

	for _, g := range mine {
		obj, _ := g.DeepCopyObject().(client.Object) // A copy has the type of its original.
		obj.GetObjectKind().SetGroupVersionKind(rbacv1.SchemeGroupVersion.WithKind(g.kind))
		obj.SetOwnerReferences(nil) // The Role has another UID when it is made again.

		objects = append(objects, obj)
	}

	return output.Objects(o.Out, o.Output, objects)
}

// showWhatStays names what the scopes that lose a member still hold in their own namespace: other members need it.
func (o *RevokeOptions) showWhatStays(ctx context.Context, w *session, mine []grantedObject) error {
	if o.Namespace == o.To || o.Installs {
		return nil
	}

	inOperatorNamespace, err := w.grants(ctx, o.To)
	if apierrors.IsForbidden(err) {
		return nil // Whoever owns only the one namespace has nothing to do with the other.
	}

	var notes []string

	for _, g := range inOperatorNamespace {
		owner := grant.ScopeOf(g, o.To)
		lost := slices.ContainsFunc(mine, func(m grantedObject) bool { return grant.ScopeOf(m, o.To) == owner })

		if g.kind == roleKind && lost {
			notes = append(notes, fmt.Sprintf("what %s was granted in namespace %s itself stays, as does its service account, "+
				"because other members may need them; to take it back: %s --grant-only",
				grant.Title(owner), o.To, grant.RevokeCommand(o.To, owner)))
		}
	}

	return errors.Join(err, o.notes(notes))
}

func stillThere(namespace string, s *scope.Scope, left []string) error {
	const shown = 3

	cause := "is Ambit running? If it is, the scope's status says what its account lacks."
	if s.Members.Selector != nil {
		cause = "does its namespaceSelector still select " + namespace + "?"
	}

	return fmt.Errorf("the grant is taken back, but what %s projected is still in namespace %s: %s; %s "+
		"To remove it: kubectl delete rolebindings,roles -n %s -l %s=%s",
		grant.Title(s.Owner), namespace, printable.Some(left, shown), cause, namespace, scope.LabelScope, s.Owner.Hash())
}
