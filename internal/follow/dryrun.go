package follow

import (
	"context"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// DryRuns is a client for plans: it lists what is followed, gets what is there now, and writes only by dry runs, which store
// nothing. A write that the caller may not make is not tried; it fails as at the API server.
type DryRuns struct{ *Client }

// DryRuns returns a client that shares what is followed.
func (c *Client) DryRuns() *DryRuns { return &DryRuns{c} }

// List lists what is followed. Plans change what they read, so untyped objects are copied: lists would share their content.
func (d *DryRuns) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if err := d.Client.List(ctx, list, options...); err != nil {
		return err
	}

	if untyped, is := list.(*unstructured.UnstructuredList); is {
		untyped.DeepCopy().DeepCopyInto(untyped)
	}

	return nil
}

// Get asks the API server each time: a plan compares files with what exists now.
func (d *DryRuns) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	return d.Gate.Get(ctx, key, obj, options...)
}

// Create asks for a review, or makes an object by a dry run.
func (d *DryRuns) Create(ctx context.Context, obj client.Object, options ...client.CreateOption) error {
	switch obj.(type) {
	case *authorizationv1.SelfSubjectAccessReview, *authorizationv1.SelfSubjectRulesReview, *authorizationv1.SubjectAccessReview:
		return d.Gate.Create(ctx, obj, options...)
	}

	var all client.CreateOptions
	all.ApplyOptions(options)

	if err := d.mayTry(ctx, all.DryRun, "create", obj, ""); err != nil {
		return err
	}

	return d.WithWatch.Create(ctx, obj, options...) //nolint:wrapcheck // Whoever asks knows best what for.
}

// Patch changes an object by a dry run.
func (d *DryRuns) Patch(ctx context.Context, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
	var all client.PatchOptions
	all.ApplyOptions(options)

	if err := d.mayTry(ctx, all.DryRun, "patch", obj, obj.GetName()); err != nil {
		return err
	}

	return d.WithWatch.Patch(ctx, obj, patch, options...) //nolint:wrapcheck // As above.
}

// Delete deletes an object by a dry run.
func (d *DryRuns) Delete(ctx context.Context, obj client.Object, options ...client.DeleteOption) error {
	var all client.DeleteOptions
	all.ApplyOptions(options)

	if err := d.mayTry(ctx, all.DryRun, "delete", obj, obj.GetName()); err != nil {
		return err
	}

	return d.WithWatch.Delete(ctx, obj, options...) //nolint:wrapcheck // As above.
}

// mayTry fails for a write that would be stored, and for one that the caller may not make.
func (d *DryRuns) mayTry(ctx context.Context, dryRun []string, verb string, obj client.Object, name string) error {
	if !slices.Equal(dryRun, []string{metav1.DryRunAll}) {
		return ErrReads
	}

	return d.check(ctx, verb, obj, obj.GetNamespace(), name)
}

// MayActAs says whether the caller may act as a user.
func (g *Gate) MayActAs(ctx context.Context, user string) (bool, error) {
	q := question{verb: "impersonate"}
	q.resource, q.namespace, q.name = scope.Impersonated(user)

	return g.may(ctx, q)
}
