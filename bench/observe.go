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

// effect is what an action leads to, as a watch shows it.
type effect struct {
	// what names it, for errors.
	what string
	list client.ObjectList
	of   []client.ListOption
	// fromNow shows only what happens from now on: to send the present state of 20,000 objects would keep the API server busy
	// while it is measured.
	fromNow bool
	// seen says whether it is there. It is shown every event, the present state first.
	seen func(watch.EventType, client.Object) bool
}

// watch begins to watch, which has to be before the action.
func (e *effect) watch(ctx context.Context, c client.WithWatch) (watch.Interface, error) {
	of := slices.Clone(e.of)

	if e.fromNow {
		if err := c.List(ctx, e.list, append(of, client.Limit(1))...); err != nil {
			return nil, fmt.Errorf("listing %T: %w", e.list, err)
		}

		of = append(of, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: e.list.GetResourceVersion()}})
	}

	w, err := c.Watch(ctx, e.list, of...)
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", e.list, err)
	}

	return w, nil
}

// wait returns when the effect was seen.
func (e *effect) wait(ctx context.Context, w watch.Interface) (time.Time, error) {
	for {
		select {
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		case event, open := <-w.ResultChan():
			if !open {
				return time.Time{}, errClosed
			}

			if event.Type == watch.Error {
				return time.Time{}, apierrors.FromObject(event.Object)
			}

			if obj, ok := event.Object.(client.Object); ok && e.seen(event.Type, obj) {
				return time.Now(), nil
			}
		}
	}
}

// measure measures from an action until its effect, with the processor time of the manager.
func (b *bench) measure(ctx context.Context, act func() error, e *effect) (cost, error) {
	w, err := e.watch(ctx, b.cluster.admin)
	if err != nil {
		return cost{}, err
	}
	defer w.Stop()

	stop := b.costs(b.managerCPU)

	if err := act(); err != nil {
		return cost{}, err
	}

	done, err := e.wait(ctx, w)
	if err != nil {
		return cost{}, fmt.Errorf("waiting for %s: %w", e.what, err)
	}

	return stop(done), nil
}

func mergePatch(json string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(json)) }

func applyPatch(json []byte) client.Patch { return client.RawPatch(types.ApplyPatchType, json) }
