package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// errClosed says that the API server ended a watch.
var errClosed = errors.New("the API server closed the watch")

// observer waits for something to happen, and knows when it did. It begins before the action that it observes.
type observer struct{ watch watch.Interface }

func observe(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) (*observer, error) {
	w, err := c.Watch(ctx, list, opts...)
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", list, err)
	}

	return &observer{w}, nil
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
