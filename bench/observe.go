package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errClosed says that the API server ended a watch.
var errClosed = errors.New("the API server closed the watch")

// observer waits for something to happen, and knows when it did. It has to be made before the action that it observes.
type observer struct{ watch watch.Interface }

func observe(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (*observer, error) {
	w, err := c.Watch(ctx, list, opts...)
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", list, err)
	}

	return &observer{w}, nil
}

// observeFromNow shows only what happens from now on: to send the present state of 20,000 objects would keep the API server busy
// while it is measured.
func observeFromNow(
	ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption,
) (*observer, error) {
	if err := c.List(ctx, list, append(slices.Clone(opts), client.Limit(1))...); err != nil {
		return nil, fmt.Errorf("listing %T: %w", list, err)
	}

	from := &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}}

	return observe(ctx, c, list, append(slices.Clone(opts), from)...)
}

func (o *observer) stop() { o.watch.Stop() }

// until returns when seen first says yes; it is shown every event, the present state first.
func (o *observer) until(ctx context.Context, seen func(watch.EventType, client.Object) bool) (time.Time, error) {
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		case e, open := <-o.watch.ResultChan():
			if !open {
				return time.Time{}, errClosed
			}

			if e.Type == watch.Error {
				return time.Time{}, apierrors.FromObject(e.Object)
			}

			if obj, ok := e.Object.(client.Object); ok && seen(e.Type, obj) {
				return time.Now(), nil
			}
		}
	}
}

func mergePatch(json string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(json)) }

func applyPatch(json []byte) client.Patch { return client.RawPatch(types.ApplyPatchType, json) }
