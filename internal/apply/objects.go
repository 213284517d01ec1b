package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const metadataField = "metadata"

const fieldOwner = client.FieldOwner(scope.FieldManager)

// change makes one change to one projected object.
func (a *Applier) change(ctx context.Context, id Identity, c *plan.Change) (Fate, error) {
	writer, err := a.as(id)
	if err != nil {
		return Failed, attempted(c, err)
	}

	var fate Fate

	switch c.Action {
	case plan.Create:
		fate, err = a.create(ctx, writer, c)
	case plan.Update:
		fate, err = a.update(ctx, writer, c)
	case plan.Replace:
		fate, err = a.replace(ctx, writer, c, formatVersion(c.Version))
	case plan.Delete:
		fate, err = a.delete(ctx, writer, c, formatVersion(c.Version))
	}

	if err != nil {
		return Failed, attempted(c, err)
	}

	return fate, nil
}

func (a *Applier) create(ctx context.Context, writer client.Client, c *plan.Change) (Fate, error) {
	obj := c.Copy.In(c.Namespace)

	err := writer.Create(ctx, obj, fieldOwner)
	if apierrors.IsAlreadyExists(err) {
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

// adopt deals with an object that is in the way of a new one. When the API server recorded Ambit as a writer of it, or it
// still bears the scope's label, it is ours: somebody took its marks away. Otherwise it is somebody else's and stays.
func (a *Applier) adopt(ctx context.Context, writer client.Client, c *plan.Change) (Fate, error) {
	reader, err := a.readerBeside(writer)
	if err != nil {
		return Failed, err
	}

	live := c.Key.Kind.Empty(c.Namespace, c.Key.Name)
	if err := reader.Get(ctx, client.ObjectKeyFromObject(live), live); err != nil {
		return Failed, err //nolint:wrapcheck // change says what was being done.
	}

	if !isOurs(live, c) {
		return Failed, ErrNameClash
	}

	if is, _ := projected.From(live); is.RoleRef != c.Copy.RoleRef {
		return a.replace(ctx, writer, c, live.GetResourceVersion())
	}

	return a.update(ctx, writer, c)
}

// replace deletes and creates a binding, because the API server lets nobody change a roleRef.
func (a *Applier) replace(ctx context.Context, writer client.Client, c *plan.Change, seen string) (Fate, error) {
	if fate, err := a.delete(ctx, writer, c, seen); err != nil {
		return fate, err
	}

	obj := c.Copy.In(c.Namespace)
	if err := writer.Create(ctx, obj, fieldOwner); err != nil {
		return Failed, err //nolint:wrapcheck // change says what was being done.
	}

	a.store.Wrote(obj)

	return Configured, nil
}

func isOurs(live client.Object, c *plan.Change) bool {
	if live.GetLabels()[scope.LabelScope] == c.Copy.ScopeHash {
		return true
	}

	return IsMade(live)
}

// update sets everything that Ambit decides, and leaves alone what others put beside it, such as labels of their own.
func (a *Applier) update(ctx context.Context, writer client.Client, c *plan.Change) (Fate, error) {
	patch, err := patchOf(c)
	if err != nil {
		return Failed, err
	}

	obj := c.Key.Kind.Empty(c.Namespace, c.Key.Name)
	if err := writer.Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), fieldOwner); err != nil {
		if apierrors.IsNotFound(err) {
			a.store.Deleted(c.Namespace, c.Key)
		}

		return Failed, err //nolint:wrapcheck // change says what was being done.
	}

	a.store.Wrote(obj)

	return Configured, nil
}

func patchOf(c *plan.Change) ([]byte, error) {
	meta := map[string]any{"labels": c.Copy.Labels(), "annotations": c.Copy.Annotations()}
	if refs := c.Copy.OwnerReferences(c.Namespace); refs != nil {
		meta["ownerReferences"] = refs
	}

	content := map[string]any{metadataField: meta}

	switch {
	case c.Key.Kind.IsBinding():
		content["subjects"] = c.Copy.Subjects
	case c.Key.Kind == projected.ClusterRole:
		content["aggregationRule"] = c.Copy.AggregationRule()
		if len(c.Copy.Aggregates) == 0 {
			content["rules"] = c.Copy.Rules
		}
	default:
		content["rules"] = c.Copy.Rules
	}

	patch, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("writing the patch: %w", err)
	}

	return patch, nil
}

// delete removes the object that the plan saw and no other: the resource version goes along.
func (a *Applier) delete(ctx context.Context, writer client.Client, c *plan.Change, seen string) (Fate, error) {
	err := writer.Delete(ctx, c.Key.Kind.Empty(c.Namespace, c.Key.Name), client.Preconditions{ResourceVersion: &seen})

	switch {
	case apierrors.IsNotFound(err):
		a.store.Deleted(c.Namespace, c.Key)

		return Unchanged, nil
	case err != nil:
		return Failed, err //nolint:wrapcheck // change says what was being done.
	default:
		a.store.Deleted(c.Namespace, c.Key)

		return Deleted, nil
	}
}

func formatVersion(v uint64) string { return strconv.FormatUint(v, 10) }
