package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/consent"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const consentOwner = client.FieldOwner(consent.FieldManager)

// authorize writes the grant, and then the member into the scope: were the member there first, the scope would fail in
// between. A dry run makes the same requests, and changes nothing.
func (w *world) authorize(ctx context.Context, g *consent.Grant, nss *operatorv1.NamespaceScope, dry bool) error {
	role, binding := g.Role(), g.RoleBinding()

	if err := errors.Join(w.mayWrite(ctx, "Role", &rbacv1.Role{}, g.Name()),
		w.mayWrite(ctx, "RoleBinding", &rbacv1.RoleBinding{}, g.Name())); err != nil {
		return oneLineError{err}
	}

	if err := w.ensureAccount(ctx, g, dry); err != nil {
		return err
	}

	if err := w.applyGrant(ctx, role, dry); err != nil {
		return describeRefusal(err, "granting Role %s in namespace %s", g.Name(), g.Namespace)
	}

	// In a dry run the Role is not there to be bound, which whoever may not bind every Role is told after everything
	// else was checked.
	err := w.applyGrant(ctx, binding, dry)
	if dry && apierrors.IsNotFound(err) {
		err = nil
	}

	if err != nil {
		return describeRefusal(err, "granting RoleBinding %s in namespace %s", g.Name(), g.Namespace)
	}

	if nss == nil {
		return nil
	}

	return w.changeMembers(ctx, nss, dry, consent.With)
}

// mayWrite fails when something that is not a grant has the name of one.
func (w *world) mayWrite(ctx context.Context, kind string, obj client.Object, name string) error {
	err := w.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, obj)

	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return describeRefusal(err, "looking for %s %s in namespace %s", kind, name, w.namespace)
	case !consent.IsGrant(obj, w.to):
		return fmt.Errorf("%s %s in namespace %s is not a grant to %s, so it is left alone; rename or delete it",
			kind, name, w.namespace, w.to)
	default:
		return nil
	}
}

// ensureAccount makes the service account if it is missing. One that is there stays as it is.
func (w *world) ensureAccount(ctx context.Context, g *consent.Grant, dry bool) error {
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
		Namespace: g.To, Name: g.Account, Labels: map[string]string{scope.LabelManagedBy: consent.ManagedBy},
	}}
	options := []client.CreateOption{consentOwner}

	if dry {
		options = append(options, client.DryRunAll)
	}

	if err := w.Create(ctx, account, options...); err != nil && !apierrors.IsAlreadyExists(err) {
		return describeRefusal(err, "making service account %s/%s", g.To, g.Account)
	}

	return nil
}

// applyGrant writes one object by server-side apply. By force, because a grant says what it says whoever edited it.
func (w *world) applyGrant(ctx context.Context, obj client.Object, dry bool) error {
	content, err := contentOf(obj)
	if err != nil {
		return err
	}

	body, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("writing the patch: %w", err)
	}

	options := []client.PatchOption{consentOwner, client.ForceOwnership}
	if dry {
		options = append(options, client.DryRunAll)
	}

	copied, _ := obj.DeepCopyObject().(client.Object) // A copy has the type of its original.

	//nolint:wrapcheck // authorize says what was being done.
	return w.Patch(ctx, copied, client.RawPatch(types.ApplyPatchType, body), options...)
}

// changeMembers changes the members of a scope. The list belongs to whoever wrote it, so the write is refused if somebody
// else has written in between, and tried again from what is there then.
func (w *world) changeMembers(ctx context.Context, nss *operatorv1.NamespaceScope, dry bool,
	change func([]string, string) ([]string, bool),
) error {
	key := client.ObjectKeyFromObject(nss)

	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live := &operatorv1.NamespaceScope{}
		if err := w.Get(ctx, key, live); err != nil {
			return err //nolint:wrapcheck // It is described below.
		}

		members, differs := change(live.Spec.NamespaceMembers, w.namespace)
		if !differs {
			return nil
		}

		body, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": live.ResourceVersion},
			"spec":     map[string]any{"namespaceMembers": members},
		})
		if err != nil {
			return fmt.Errorf("writing the patch: %w", err)
		}

		options := []client.PatchOption{consentOwner}
		if dry {
			options = append(options, client.DryRunAll)
		}

		return w.Patch(ctx, live, client.RawPatch(types.MergePatchType, body), options...)
	})
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("changing the members of NamespaceScope %s: %w; let somebody run this who may, "+
			"or leave scopes alone with --grant-only", key, oneLineError{err})
	}

	if err != nil {
		return describeRefusal(err, "changing the members of NamespaceScope %s", key)
	}

	return nil
}

// describeRefusal says what was being done, in one line, and what to do about it.
func describeRefusal(err error, format string, values ...any) error {
	what := fmt.Sprintf(format, values...)

	switch {
	case strings.Contains(err.Error(), "not currently held"):
		return fmt.Errorf("%s: %w; nobody can grant what they do not hold: let somebody run this who does, "+
			"such as a cluster administrator", what, oneLineError{err})
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%s: %w; let somebody run this who may", what, oneLineError{err})
	default:
		return fmt.Errorf("%s: %w", what, oneLineError{err})
	}
}
