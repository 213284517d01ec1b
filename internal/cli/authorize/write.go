package authorize

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// write makes the account, grants, and then adds the member to the scope: if the member came first, the scope would fail in
// between. A dry run makes the same requests, and changes nothing.
func (o *Options) write(ctx context.Context, w *session, grants []grant.Grant, join *scope.Scope) error {
	first := &grants[0]

	err := w.ensureAccount(ctx, first)

	switch {
	// A namespace may authorize an account before the account exists.
	case apierrors.IsForbidden(err) && o.GrantOnly && !first.InOperatorNamespace():
		if !w.dry {
			break // The dry run before said so.
		}

		if err := o.notes([]string{fmt.Sprintf("service account %s/%s does not exist, and you may not make it; somebody who may "+
			"has to", o.To, first.Account)}); err != nil {
			return err
		}
	case err != nil:
		return err
	}

	for i := range grants {
		err := w.grant(ctx, &grants[i])
		if err != nil && i > 0 {
			return fmt.Errorf("%w, or grant in namespace %s alone with --grant-only", err, o.Namespace)
		}

		if err != nil {
			return err
		}
	}

	if join == nil {
		return nil
	}

	return w.changeMembers(ctx, join.Owner, grant.With)
}

func (w *session) grant(ctx context.Context, g *grant.Grant) error {
	if err := w.mayWrite(ctx, g, "Role", &rbacv1.Role{}); err != nil {
		return command.OneLine(err)
	}

	if err := w.mayWrite(ctx, g, "RoleBinding", &rbacv1.RoleBinding{}); err != nil {
		return command.OneLine(err)
	}

	role, err := w.applyGrant(ctx, g.Role())
	if err != nil {
		return describeRefusal(err, "granting Role %s in namespace %s", g.Name(), g.Namespace)
	}

	binding := g.RoleBinding()
	if !w.dry {
		binding.OwnerReferences = grant.GoesWith(role)
	}

	// In a dry run the Role does not exist, so the API server answers with NotFound to a caller who may not bind every Role;
	// everything else was checked before.
	if _, err = w.applyGrant(ctx, binding); err != nil && (!w.dry || !apierrors.IsNotFound(err)) {
		return describeRefusal(err, "granting RoleBinding %s in namespace %s", g.Name(), g.Namespace)
	}

	return nil
}

// mayWrite fails when something that is not a grant has the name of one.
func (w *session) mayWrite(ctx context.Context, g *grant.Grant, kind string, obj client.Object) error {
	err := w.Get(ctx, client.ObjectKey{Namespace: g.Namespace, Name: g.Name()}, obj)

	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return describeRefusal(err, "looking for %s %s in namespace %s", kind, g.Name(), g.Namespace)
	case !grant.IsGrant(obj, g.To):
		return fmt.Errorf("%s %s in namespace %s is not a grant to %s, so it is left alone; rename or delete it",
			kind, g.Name(), g.Namespace, g.To)
	default:
		return nil
	}
}

// ensureAccount makes the service account if it is missing. One that is there stays as it is.
func (w *session) ensureAccount(ctx context.Context, g *grant.Grant) error {
	account := &corev1.ServiceAccount{}

	err := w.Get(ctx, client.ObjectKey{Namespace: g.To, Name: g.Account}, account)
	// Whoever may not look into the other namespace may still let its account into their own.
	if err == nil || apierrors.IsForbidden(err) {
		return nil
	}

	if !apierrors.IsNotFound(err) {
		return describeRefusal(err, "looking for service account %s/%s", g.To, g.Account)
	}

	account = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Namespace: g.To, Name: g.Account, Labels: map[string]string{scope.LabelManagedBy: grant.ManagedBy},
	}}

	if err := w.Create(ctx, account); err != nil && !apierrors.IsAlreadyExists(err) {
		return describeRefusal(err, "making service account %s/%s", g.To, g.Account)
	}

	return nil
}

// applyGrant writes one object by server-side apply. It forces conflicts, because a grant says the same whoever edited it.
func (w *session) applyGrant(ctx context.Context, obj client.Object) (client.Object, error) {
	content, err := output.Content(obj)
	if err != nil {
		return nil, err
	}

	body, err := printable.Body(content)
	if err != nil {
		return nil, fmt.Errorf("writing the patch: %w", err)
	}

	copied, _ := obj.DeepCopyObject().(client.Object) // A copy has the type of its original.

	//nolint:wrapcheck // grant says what was being done.
	return copied, w.Patch(ctx, copied, client.RawPatch(types.ApplyPatchType, body), client.ForceOwnership)
}

// describeRefusal says what was being done, in one line, and what to do about it.
func describeRefusal(err error, format string, values ...any) error {
	what := fmt.Sprintf(format, values...)

	switch {
	case strings.Contains(err.Error(), "not currently held"):
		return fmt.Errorf("%s: %w; nobody can grant what they do not hold: let somebody run this who does, "+
			"such as a cluster administrator", what, command.OneLine(err))
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w; let somebody run this who may", what, command.OneLine(err))
	default:
		return fmt.Errorf("%s: %w", what, command.OneLine(err))
	}
}
