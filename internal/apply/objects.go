package apply

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const metadataField = "metadata"

const fieldOwner = client.FieldOwner(scope.FieldManager)

// change makes one change to one projected object.
func (a *Applier) change(ctx context.Context, id Identity, c *plan.Change) (Result, error) {
	writer, err := a.as(id)
	if err != nil {
		return Failed, attempted(c, err)
	}

	var result Result

	switch c.Action {
	case plan.Create:
		result, err = a.create(ctx, writer, c)
	case plan.Update:
		result, err = a.update(ctx, writer, c)
	case plan.Delete:
		result, err = a.delete(ctx, writer, c)
	case plan.Empty:
		result, err = a.empty(ctx, writer, c)
	case plan.Hold:
		result, err = a.hold(ctx, writer, c)
	}

	if err != nil {
		return Failed, attempted(c, err)
	}

	return result, nil
}

func (a *Applier) create(ctx context.Context, writer client.Client, c *plan.Change) (Result, error) {
	o := c.Object()
	obj := o.In(c.Namespace)

	err := writer.Create(ctx, obj, fieldOwner)
	if apierrors.IsAlreadyExists(err) && c.Copy.Fixed {
		return a.adopt(ctx, writer, c)
	}

	if err != nil {
		return Failed, err //nolint:wrapcheck // change says what was being done.
	}

	a.store.Wrote(obj)

	return Created, nil
}

// readerBeside is who looks at one object before it is written: Ambit itself where it sees the whole cluster, and otherwise
// whoever writes it, because somebody let them in.
func (a *Applier) readerBeside(writer client.Client) (client.Client, error) {
	if a.ReviewOwn {
		return writer, nil
	}

	return a.as(Own())
}

// adopt deals with a ClusterRole that is in the way of a new one, because its name can be known beforehand. When the API server
// recorded Ambit as a writer of it, it is ours: somebody took its marks away. Otherwise it is somebody else's and stays. Nothing
// else is ever adopted: names that nobody knows are in nobody's way.
func (a *Applier) adopt(ctx context.Context, writer client.Client, c *plan.Change) (Result, error) {
	live, err := a.get(ctx, writer, c)
	if err != nil {
		return Failed, err
	}

	// Anybody may write as the field manager that Ambit is. But only who may do everything has a ClusterRole aggregate others: one
	// that does not may be bound already, by whoever put it there.
	if role, is := live.(*rbacv1.ClusterRole); !IsMade(live) || is && role.AggregationRule == nil && len(c.Copy.Aggregates) > 0 {
		return Failed, ErrNameClash
	}

	return a.patch(ctx, writer, c, patchOf(c, live.GetResourceVersion()))
}

// get looks at the object of a change. Where Ambit sees the whole cluster it may list everything and get little, so it lists what
// has the name.
func (a *Applier) get(ctx context.Context, writer client.Client, c *plan.Change) (client.Object, error) {
	reader, err := a.readerBeside(writer)
	if err != nil {
		return nil, err
	}

	if a.ReviewOwn {
		live := c.Key.Kind.Empty(c.Namespace, c.Key.Name)

		return live, reader.Get(ctx, client.ObjectKeyFromObject(live), live) //nolint:wrapcheck // change says what was being done.
	}

	list := c.Key.Kind.EmptyList()

	err = reader.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingFields{"metadata.name": c.Key.Name})
	if err != nil {
		return nil, err //nolint:wrapcheck // change says what was being done.
	}

	items, err := meta.ExtractList(list)
	if err != nil {
		return nil, fmt.Errorf("reading a list: %w", err)
	}

	for _, item := range items {
		if live, is := item.(client.Object); is {
			return live, nil
		}
	}

	return nil, apierrors.NewNotFound(rbacv1.Resource(string(c.Key.Kind)), c.Key.Name)
}

// maxPatches is how often the write of an object is tried again that somebody else writes at the same time.
const maxPatches = 4

// update sets everything that Ambit decides, and leaves alone what others put beside it, such as labels of their own. It writes
// the very object that was looked at: what is made of rules that somebody else takes out in between, or of another object of the
// name, could give them to whoever bound it meanwhile. An object that somebody keeps writing, so that this never succeeds, is
// deleted.
func (a *Applier) update(ctx context.Context, writer client.Client, c *plan.Change) (Result, error) {
	result, err := a.patch(ctx, writer, c, patchOf(c, formatVersion(c.Version)))

	for range maxPatches {
		if !apierrors.IsConflict(err) {
			return result, err
		}

		live, getErr := a.get(ctx, writer, c)
		if getErr != nil {
			return Failed, getErr
		}

		if !c.Fits(live) {
			break
		}

		result, err = a.patch(ctx, writer, c, patchOf(c, live.GetResourceVersion()))
	}

	if !apierrors.IsConflict(err) {
		return result, err
	}

	return a.insist(ctx, writer, c)
}

func (a *Applier) patch(ctx context.Context, writer client.Client, c *plan.Change, patch client.Patch) (Result, error) {
	obj := c.Key.Kind.Empty(c.Namespace, c.Key.Name)
	if err := writer.Patch(ctx, obj, patch, fieldOwner); err != nil {
		if apierrors.IsNotFound(err) {
			a.store.Deleted(c.Namespace, c.Key)
		}

		return Failed, err //nolint:wrapcheck // change says what was being done.
	}

	a.store.Wrote(obj)

	return Configured, nil
}

func patchOf(c *plan.Change, version string) client.Patch {
	o := c.Object()

	meta := map[string]any{"labels": o.Labels(), "annotations": o.Annotations(), "resourceVersion": version}
	if refs := o.OwnerReferences(c.Namespace); refs != nil {
		meta["ownerReferences"] = refs
	}

	content := map[string]any{metadataField: meta}

	switch {
	case o.Kind.IsBinding():
		content["subjects"] = o.Subjects
	case o.Kind == projected.ClusterRole:
		content["aggregationRule"] = o.AggregationRule()
		if len(o.Aggregates) == 0 {
			content["rules"] = o.Rules
		}
	default:
		content["rules"] = o.Rules
	}

	return merge(content)
}

// hold puts a finalizer on the very object that was looked at, so that it outlasts the content of its namespace. An object that
// is gone already, or is being deleted, cannot be held.
func (a *Applier) hold(ctx context.Context, writer client.Client, c *plan.Change) (Result, error) {
	patch := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q,"finalizers":[%q]}}`, formatVersion(c.Version), scope.CopyFinalizer)

	result, err := a.patch(ctx, writer, c, client.RawPatch(types.MergePatchType, patch))
	if apierrors.IsNotFound(err) {
		return Unchanged, nil
	}

	return result, err
}

// nothing is the patch after which nobody holds anything by an object, and no finalizer keeps it.
const nothing = `{"metadata":{"finalizers":null},%q:[]}`

// released is the patch after which no finalizer keeps an object.
const released = `{"metadata":{"finalizers":null}}`

// empty takes everything from an object that does not go when it is deleted, whoever wrote it last.
func (a *Applier) empty(ctx context.Context, writer client.Client, c *plan.Change) (Result, error) {
	content := "rules"
	if c.Key.Kind.IsBinding() {
		content = "subjects"
	}

	obj := c.Key.Kind.Empty(c.Namespace, c.Key.Name)

	err := writer.Patch(ctx, obj, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, nothing, content)), fieldOwner)

	switch {
	case isOf(c, err):
		a.store.Deleted(c.Namespace, c.Key)

		return Unchanged, nil
	case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
		return a.release(ctx, writer, c)
	case err != nil:
		return Failed, err //nolint:wrapcheck // change says what was being done.
	}

	// An object that was deleted before goes once its finalizers are gone; the answer shows it as it was.
	if obj.GetDeletionTimestamp() != nil && len(obj.GetFinalizers()) == 0 {
		a.store.Deleted(c.Namespace, c.Key)
	} else {
		a.store.Wrote(obj)
	}

	return Configured, nil
}

// release removes an object that finalizers keep and that may not be emptied: the API server lets nobody change a binding to a
// role whose rules they do not hold, or that is gone, but for what concerns garbage collection. Nobody can put another finalizer
// on it once it is deleted.
func (a *Applier) release(ctx context.Context, writer client.Client, c *plan.Change) (Result, error) {
	obj := c.Key.Kind.Empty(c.Namespace, c.Key.Name)

	var only client.Preconditions
	if seen := formatVersion(c.Version); !c.Named {
		only.ResourceVersion = &seen
	}

	err := writer.Delete(ctx, obj, only)
	if err == nil {
		err = writer.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(released)), fieldOwner)
	}

	if client.IgnoreNotFound(err) != nil {
		return Failed, err //nolint:wrapcheck // change says what was being done.
	}

	a.store.Deleted(c.Namespace, c.Key)

	return Deleted, nil
}

// delete removes the object that the plan saw: the resource version goes along, so that no finalizer can have been added since.
func (a *Applier) delete(ctx context.Context, writer client.Client, c *plan.Change) (Result, error) {
	seen := formatVersion(c.Version)
	err := writer.Delete(ctx, c.Key.Kind.Empty(c.Namespace, c.Key.Name), client.Preconditions{ResourceVersion: &seen})

	result := Deleted

	switch {
	case apierrors.IsConflict(err):
		return a.insist(ctx, writer, c)
	case apierrors.IsNotFound(err):
		result = Unchanged
	case err != nil:
		return Failed, err //nolint:wrapcheck // change says what was being done.
	}

	a.store.Deleted(c.Namespace, c.Key)

	return result, nil
}

// insist removes an object that somebody else keeps writing, if it has a name that Ambit gave: no object of anybody else's has
// one. Where finalizers hold it, it is emptied, so that nobody keeps by it what they were to lose.
func (a *Applier) insist(ctx context.Context, writer client.Client, c *plan.Change) (Result, error) {
	live, err := a.get(ctx, writer, c)
	if err != nil {
		return Failed, err
	}

	if !c.Named {
		a.store.Wrote(live)

		return Failed, apierrors.NewConflict(rbacv1.Resource(string(c.Key.Kind)), c.Key.Name, errChanged)
	}

	err = writer.Delete(ctx, c.Key.Kind.Empty(c.Namespace, c.Key.Name))
	if err != nil && !apierrors.IsNotFound(err) {
		return Failed, err //nolint:wrapcheck // change says what was being done.
	}

	live, err = a.get(ctx, writer, c)

	switch {
	case apierrors.IsNotFound(err):
		a.store.Deleted(c.Namespace, c.Key)
	case err != nil:
		return Failed, err
	case live.GetDeletionTimestamp() != nil:
		if _, err := a.empty(ctx, writer, c); err != nil {
			return Failed, err
		}
	default:
		a.store.Wrote(live)
	}

	// What comes in its place is planned for again.
	return Deleted, nil
}

// errChanged is why a write of an object is planned again.
var errChanged = errors.New("somebody else changed it")

func formatVersion(v uint64) string { return strconv.FormatUint(v, 10) }
