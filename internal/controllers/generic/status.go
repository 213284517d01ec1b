package generic

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WriteStatus writes the status of obj, which differs from that of before, as it was read. A merge patch replaces a whole list,
// so the version goes along: where somebody else wrote meanwhile, such as a condition of theirs, the API server answers with a
// conflict, nothing is lost, and planning again settles it. Nor can the status of one object get onto another that has its name
// by now. That the object is gone is no failure.
func WriteStatus(ctx context.Context, c client.Client, obj, before client.Object) error {
	change := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := c.Status().Patch(ctx, obj, change); client.IgnoreNotFound(err) != nil {
		kind, _ := c.GroupVersionKindFor(obj) // A typed object does not always say it; that it cannot be told is no news.

		return fmt.Errorf("writing the status of %s %s: %w", kind.Kind, client.ObjectKeyFromObject(obj), err)
	}

	return nil
}
