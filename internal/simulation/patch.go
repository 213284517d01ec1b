package simulation

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patching is how an object is patched.
type patching struct {
	manager               string
	force, dryRun, status bool
}

var errChanged = errors.New("the object has been modified; please apply your changes to the latest version and try again")

func (u *user) patch(obj client.Object, patch client.Patch, how *patching) error {
	u.mu.Lock()
	defer u.mu.Unlock()

	gvk, err := u.GroupVersionKindFor(obj)
	if err != nil {
		return err
	}

	key := Key{gvk.GroupKind(), client.ObjectKeyFromObject(obj)}

	asks := &request{verb: "patch", named: true, key: key, gvk: gvk, dryRun: how.dryRun}
	if how.status {
		asks.subresource = statusOf
	}

	if err := u.mayAsk(asks); err != nil {
		return err
	}

	live, err := u.cluster.json(key)
	if err != nil {
		return err
	}

	if live == nil && patch.Type() != types.ApplyPatchType {
		return u.cluster.notFound(key, gvk)
	}

	was := live
	if was == nil {
		was = empty(gvk)
	}

	body, err := patch.Data(obj)
	if err != nil {
		return fmt.Errorf("reading the patch of %s: %w", key.Name, err)
	}

	now, err := u.patched(was, patch.Type(), body, how)
	if err != nil {
		return err
	}

	asks.object, asks.live = now, u.cluster.get(key)
	if err := u.takes(asks, now, live); err != nil {
		return err
	}

	if u.keep(now, live, how); !how.dryRun && u.cluster.get(key) != nil {
		_, err = u.cluster.read(key, obj)

		return err
	}

	return fromJSON(now, obj)
}

// patched is an object with a patch, and with who wrote it. Of a Role or a binding, it is noted who wrote it and not
// which fields.
func (u *user) patched(
	was *unstructured.Unstructured, kind types.PatchType, body []byte, how *patching,
) (*unstructured.Unstructured, error) {
	if was.GroupVersionKind().Group == rbacv1.GroupName && kind != types.ApplyPatchType {
		now, err := patched(was, kind, body, &patching{})
		if err == nil && !sameButTimes(was, now) {
			wrote(now, how.manager)
		}

		return now, err
	}

	began := time.Now()

	now, err := patched(was, kind, body, how)
	if err == nil {
		stamp(now, how.manager, began, u.cluster.now)
	}

	return now, err
}

// takes says why an object that a patch has made is not stored; nil when it is. It asks in the order of the API server.
func (u *user) takes(asks *request, now, live *unstructured.Unstructured) error {
	if live == nil {
		if err := u.cluster.takesNew(asks.key, asks.gvk); err != nil {
			return err
		}
	}

	if err := u.mayHandOut(asks); err != nil {
		return err
	}

	if err := u.fits(asks, now, live); err != nil {
		return err
	}

	if err := valid(asks); err != nil || live != nil {
		return err
	}

	// Whoever makes an object by server-side apply must be allowed to create it, too.
	creates := *asks
	creates.verb, creates.within = toCreate, true

	return u.mayAsk(&creates)
}

// fits says why a patch was not meant for the object that is there; nil where it was.
func (u *user) fits(asks *request, now, live *unstructured.Unstructured) error {
	key, gvk := asks.key, asks.gvk

	switch {
	case live == nil && now.GetUID() != "":
		return apierrors.NewConflict(u.cluster.resource(gvk), key.Name, errPrecondition)
	case live != nil && now.GetResourceVersion() != live.GetResourceVersion():
		return apierrors.NewConflict(u.cluster.resource(gvk), key.Name, errChanged)
	case live != nil && now.GetUID() != live.GetUID():
		return apierrors.NewInvalid(gvk.GroupKind(), key.Name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "uid"), now.GetUID(), "field is immutable"),
		})
	case live != nil && live.GetDeletionTimestamp() != nil && !sets.New(live.GetFinalizers()...).HasAll(now.GetFinalizers()...):
		return apierrors.NewInvalid(gvk.GroupKind(), key.Name, field.ErrorList{
			field.Forbidden(field.NewPath("metadata", "finalizers"), "no new finalizers can be added if the object is being deleted"),
		})
	default:
		return nil
	}
}

func (u *user) keep(now, live *unstructured.Unstructured, how *patching) {
	switch {
	case live == nil:
		delete(now.Object, "status")

		if u.cluster.initialize(now); !how.dryRun {
			u.cluster.insert(now)
		}

		return
	case how.status:
		status, set := now.Object["status"]
		now.Object = live.DeepCopy().Object

		if delete(now.Object, "status"); set {
			now.Object["status"] = status
		}
	default:
		keepStatus(now, live)
	}

	if advance(now, live); !how.dryRun {
		u.cluster.replace(now, live)
	}
}

// patched is an object with a patch, and with who wrote it.
func patched(
	live *unstructured.Unstructured, kind types.PatchType, body []byte, how *patching,
) (*unstructured.Unstructured, error) {
	now := live.DeepCopy()

	switch kind {
	case types.ApplyPatchType:
		applied := &unstructured.Unstructured{}
		if err := json.Unmarshal(body, &applied.Object); err != nil {
			return nil, fmt.Errorf("reading what is applied: %w", err)
		}

		now, err := serverSideApply(now, applied, how.manager, how.force)
		if err == nil {
			withoutNothing(now.Object) // Who applies nothing for a field empties it.
		}

		return now, err
	case types.MergePatchType, types.JSONPatchType:
		if err := patchJSON(now, kind, body); err != nil {
			return nil, err
		}
	default:
		return nil, errNotSimulated
	}

	return note(live, now, how.manager)
}

// patchJSON changes the object by a patch of its JSON, as the API server does.
func patchJSON(now *unstructured.Unstructured, kind types.PatchType, body []byte) error {
	text, err := json.Marshal(now.Object)
	if err != nil {
		return fmt.Errorf("writing %s as JSON: %w", now.GetName(), err)
	}

	if kind == types.MergePatchType {
		text, err = jsonpatch.MergePatch(text, body)
	} else if operations, wrong := jsonpatch.DecodePatch(body); wrong != nil {
		err = wrong
	} else if text, err = operations.Apply(text); err != nil {
		return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, now.GetName(),
			err.Error(), 0, false)
	}

	if err != nil {
		return fmt.Errorf("reading the patch: %w", err)
	}

	now.Object = nil
	if err := json.Unmarshal(text, &now.Object); err != nil {
		return fmt.Errorf("reading %s: %w", now.GetName(), err)
	}

	normalized(now)

	return nil
}

// normalized takes out fields that are null, and of the metadata those that are empty.
func normalized(u *unstructured.Unstructured) {
	withoutNothing(u.Object)

	metadata, _ := u.Object["metadata"].(map[string]any)
	maps.DeleteFunc(metadata, func(_ string, value any) bool {
		fields, is := value.(map[string]any)
		items, list := value.([]any)

		return is && len(fields) == 0 || list && len(items) == 0
	})
}
