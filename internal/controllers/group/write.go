package group

import (
	"context"
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ambit-k8s/ambit/internal/apply"
)

// Once the permissions are as they should be, no write is waited for any longer than others can wait: the next reconcile may have
// to revoke something. One that takes longer goes on with copies of what it writes.

// bounded makes a write to an object.
func (p *state) bounded(ctx context.Context, kind, name string, write func(context.Context) error) error {
	if !p.installing {
		return write(ctx)
	}

	return p.Applier.Bounded(ctx, p.key, kind+" "+name, write)
}

func (p *state) put(ctx context.Context, obj *unstructured.Unstructured) error {
	written := obj.DeepCopy()

	err := p.bounded(ctx, obj.GetKind(), obj.GetName(), func(ctx context.Context) error {
		_, err := p.Applier.Put(ctx, p.as.Writes, written)

		return err
	})
	if err == nil {
		obj.Object = written.Object
	}

	return err
}

// annotatePods returns a Deployment as it is once its pods are annotated.
func (p *state) annotatePods(
	ctx context.Context, d *appsv1.Deployment, annotations map[string]string,
) (*appsv1.Deployment, error) {
	written := d.DeepCopy()

	return written, p.bounded(ctx, kindDeployment, d.Name, func(ctx context.Context) error {
		return p.Applier.AnnotatePods(ctx, p.as.Writes, written, annotations)
	})
}

// fail notes an error. That of a write that goes on is none: whoever ends it asks for another reconcile.
func (p *state) fail(err error) {
	switch {
	case errors.Is(err, apply.ErrUnanswered):
		p.again = true
	case err != nil:
		p.errs = append(p.errs, err)
	}
}
