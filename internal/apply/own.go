package apply

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CreateOnce creates an object as an identity. One that is there already stays as it is, whoever made it. The right to create is
// all that this takes; server-side apply would take another.
func (a *Applier) CreateOnce(ctx context.Context, id Identity, obj client.Object) (Result, error) {
	writer, err := a.as(id)
	if err != nil {
		return Failed, err
	}

	err = writer.Create(ctx, obj, fieldOwner)

	switch {
	case apierrors.IsAlreadyExists(err):
		return Unchanged, nil
	case err != nil:
		return Failed, fmt.Errorf("creating %T %s: %w", obj, name(obj), err)
	default:
		return Created, nil
	}
}

// Replace writes an object as an identity. The API server refuses that where somebody else wrote since it was read. The right to
// update is all that this takes.
func (a *Applier) Replace(ctx context.Context, id Identity, obj client.Object) error {
	writer, err := a.as(id)
	if err != nil {
		return err
	}

	if err := writer.Update(ctx, obj, fieldOwner); err != nil {
		return fmt.Errorf("writing %T %s: %w", obj, name(obj), err)
	}

	return nil
}
