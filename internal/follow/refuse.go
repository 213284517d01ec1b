package follow

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// refuse is a client of a subresource that neither reads nor writes.
type refuse struct{}

// Status writes, so all of it fails.
func (*Gate) Status() client.SubResourceWriter { return refuse{} }

// SubResource fails, whatever it is of.
func (*Gate) SubResource(string) client.SubResourceClient { return refuse{} }

// Get fails.
func (refuse) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	return ErrReads
}

// Create fails.
func (refuse) Create(context.Context, client.Object, client.Object, ...client.SubResourceCreateOption) error {
	return ErrReads
}

// Update fails.
func (refuse) Update(context.Context, client.Object, ...client.SubResourceUpdateOption) error {
	return ErrReads
}

// Patch fails.
func (refuse) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return ErrReads
}

// Apply fails.
func (refuse) Apply(context.Context, runtime.ApplyConfiguration, ...client.SubResourceApplyOption) error {
	return ErrReads
}
