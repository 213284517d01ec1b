package authorize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// checkInterval is how often revoke looks whether what was projected is gone.
const checkInterval = 200 * time.Millisecond

// grantedObject is a Role or a RoleBinding that authorize wrote.
type grantedObject struct {
	client.Object

	kind string
}

const roleKind = "Role"

// grants returns what authorize wrote in a namespace for the other one, bindings first: without its binding, a Role gives
// nothing.
func (w *session) grants(ctx context.Context, namespace string) ([]grantedObject, error) {
	var found []grantedObject

	err := w.rbac(ctx, namespace, func(kind string, obj client.Object) {
		if grant.IsGrant(obj, w.to) {
			found = append(found, grantedObject{Object: obj, kind: kind})
		}
	}, client.MatchingLabels{grant.LabelTo: w.to})

	return found, err
}

// rbac visits the RoleBindings and then the Roles of a namespace.
func (w *session) rbac(
	ctx context.Context, namespace string, visit func(kind string, obj client.Object), options ...client.ListOption,
) error {
	var (
		bindings rbacv1.RoleBindingList
		roles    rbacv1.RoleList
	)

	options = append(options, client.InNamespace(namespace))

	for _, list := range []client.ObjectList{&bindings, &roles} {
		if err := w.List(ctx, list, options...); err != nil {
			return describeRefusal(err, "listing the roles and rolebindings of namespace %s", namespace)
		}
	}

	for i := range bindings.Items {
		visit("RoleBinding", &bindings.Items[i])
	}

	for i := range roles.Items {
		visit(roleKind, &roles.Items[i])
	}

	return nil
}

// revoke takes the member out of the scope, if it leaves one, and then the grants back. It returns what is left of what was
// projected. Whoever may write the scope may do so all the time, and does not keep the grant by that. What was projected goes
// with the grant.
func (w *session) revoke(
	ctx context.Context, s *scope.Scope, grants []grantedObject, timeout time.Duration,
) (left []string, err error) {
	var stays error

	if s != nil {
		if left, err = w.leave(ctx, s.Owner, timeout); err != nil && !apierrors.IsConflict(err) {
			return nil, err
		}

		stays = err
	}

	if err := w.takeBackAll(ctx, grants); err != nil || stays == nil {
		return left, err
	}

	return nil, fmt.Errorf("the grant is taken back, but namespace %s is still a member: %w", w.namespace, stays)
}

// leave takes the namespace out of the members of a scope, and returns what is left there of what was projected.
func (w *session) leave(ctx context.Context, owner scope.Owner, timeout time.Duration) ([]string, error) {
	if err := w.changeMembers(ctx, owner, grant.Without); err != nil {
		return nil, err
	}

	return w.waitUntilGone(ctx, owner, timeout)
}

// takeBackAll deletes the objects that were shown. Whoever holds a grant may put another object in the place of one of them, just
// before that is deleted, and keeps no other by that.
func (w *session) takeBackAll(ctx context.Context, grants []grantedObject) error {
	return errors.Join(collect.Map(grants, func(g grantedObject) error { return w.takeBack(ctx, g) })...)
}

// takeBack deletes an object, but none that was created under the same name since. Whoever holds a grant may put finalizers on
// it, and a binding gives what it gives for as long as it is there. One of these, "orphan", counts unless the request says what
// becomes of what belongs to the grant.
func (w *session) takeBack(ctx context.Context, g grantedObject) error {
	err := w.Delete(ctx, g.Object, client.Preconditions{UID: new(g.GetUID())},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if w.dry && apierrors.IsConflict(err) {
		return nil // Another one is in its place by now, which says nothing of whether the caller may delete it.
	}

	if client.IgnoreNotFound(err) != nil {
		return describeRefusal(err, "taking back %s %s in namespace %s", g.kind, g.GetName(), w.namespace)
	}

	if err := w.release(ctx, g); err != nil {
		return describeRefusal(err, "taking the finalizers off %s %s in namespace %s", g.kind, g.GetName(), w.namespace)
	}

	return nil
}

// release takes the finalizers off what was deleted and is still there. Nobody can add another one to that. The patch names the
// UID, so that the API server refuses it for what was made under the same name since.
func (w *session) release(ctx context.Context, g grantedObject) error {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": g.GetUID(), "finalizers": nil}})
	if err != nil {
		return fmt.Errorf("writing the patch: %w", err)
	}

	live, _ := g.DeepCopyObject().(client.Object) // A copy has the type of its original.

	isAnother := func(err error) bool { return apierrors.IsInvalid(err) || apierrors.IsConflict(err) }
	err = retry.OnError(retry.DefaultBackoff, isAnother, func() error {
		err := w.Get(ctx, client.ObjectKeyFromObject(g), live)
		if err != nil || live.GetUID() != g.GetUID() || len(live.GetFinalizers()) == 0 {
			return err //nolint:wrapcheck // takeBack says what was being done.
		}

		return w.Patch(ctx, live, client.RawPatch(types.MergePatchType, body))
	})

	return client.IgnoreNotFound(err) //nolint:wrapcheck // takeBack says what was being done.
}

// waitUntilGone waits until nothing is left of what was projected, and returns what is. Of what is only tried, nothing goes. An
// API server that takes longer than the timeout is waited for: before it has answered, nothing is known to be gone.
func (w *session) waitUntilGone(ctx context.Context, owner scope.Owner, timeout time.Duration) ([]string, error) {
	if w.dry {
		return nil, nil
	}

	for deadline := time.Now().Add(timeout); ; {
		var left []string

		err := w.rbac(ctx, w.namespace, func(kind string, obj client.Object) {
			if grant.IsProjectedFor(obj, owner) {
				left = append(left, kind+" "+obj.GetName())
			}
		})
		if err != nil && ctx.Err() == nil {
			return nil, err
		}

		if err == nil && (len(left) == 0 || !time.Now().Before(deadline)) {
			return left, nil
		}

		if err := pause(ctx, "what was projected to go"); err != nil {
			return nil, err
		}
	}
}

// pause waits for the next look at what is waited for.
func pause(ctx context.Context, waitedFor string) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("waiting for %s: %w", waitedFor, ctx.Err())
	case <-time.After(checkInterval):
		return nil
	}
}
