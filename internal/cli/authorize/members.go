package authorize

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// contended says how often members are written again where somebody else has written the scope in between: the owners of dozens
// of namespaces may authorize them at once, and Ambit writes the status meanwhile. It is over after ten seconds at most.
func contended() wait.Backoff {
	return wait.Backoff{Steps: 18, Duration: 10 * time.Millisecond, Factor: 1.3, Jitter: 1}
}

// changeMembers changes the members of a scope. The list belongs to whoever wrote it, so the write is refused if somebody
// else has written in between, and tried again from what is there then. That it is refused as often as it is tried does not
// say whether the caller may write it, so it does not fail a dry run.
func (w *session) changeMembers(
	ctx context.Context, owner scope.Owner, change func([]string, string) ([]string, bool),
) error {
	err := retry.RetryOnConflict(contended(), func() error {
		live, list := resource(owner)
		if err := w.Get(ctx, client.ObjectKey{Namespace: owner.Namespace, Name: owner.Name}, live); err != nil {
			return err //nolint:wrapcheck // It is described below.
		}

		members, differs := change(list(), w.namespace)
		if !differs {
			return nil
		}

		body, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"resourceVersion": live.GetResourceVersion()},
			"spec":     map[string]any{"namespaceMembers": members},
		})
		if err != nil {
			return fmt.Errorf("writing the patch: %w", err)
		}

		return w.Patch(ctx, live, client.RawPatch(types.MergePatchType, body))
	})
	if w.dry && apierrors.IsConflict(err) {
		return nil
	}

	if apierrors.IsForbidden(err) {
		return fmt.Errorf("changing the members of %s: %w; let somebody run this who may, "+
			"or leave scopes alone with --grant-only", grant.Title(owner), command.OneLine(err))
	}

	if err != nil {
		return describeRefusal(err, "changing the members of %s", grant.Title(owner))
	}

	return nil
}

// resource is an empty resource of the kind that a scope came from, and the members that it lists once it is read. Both
// groups call the field namespaceMembers.
func resource(owner scope.Owner) (obj client.Object, members func() []string) {
	if owner.Group == namespacescopev1alpha1.GroupVersion.Group {
		nss := &namespacescopev1alpha1.NamespaceScope{}

		return nss, func() []string { return nss.Spec.NamespaceMembers }
	}

	nss := &operatorv1.NamespaceScope{}

	return nss, func() []string { return nss.Spec.NamespaceMembers }
}
