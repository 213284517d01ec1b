package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// first tells when something in a namespace is first seen as it should be, from now on.
func (w *world) first(
	ctx context.Context, list client.ObjectList, namespace string, should func(client.Object) bool,
) (<-chan time.Time, error) {
	if err := w.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing %T: %w", list, err)
	}

	events, err := w.Watch(ctx, list, &client.ListOptions{
		Namespace: namespace, Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()},
	})
	if err != nil {
		return nil, fmt.Errorf("watching %T: %w", list, err)
	}

	at := make(chan time.Time, 1)

	go func() {
		defer events.Stop()

		for e := range events.ResultChan() {
			if o, ok := e.Object.(client.Object); ok && should(o) {
				at <- time.Now()

				return
			}
		}

		at <- time.Now() // The watch broke; what was waited for is seen by looking.
	}()

	return at, nil
}

// served says whether the operator did what the Greeting of a namespace asks for.
func (w *world) served(ctx context.Context, namespace string) (string, error) {
	err := w.Get(ctx, client.ObjectKey{Namespace: namespace, Name: hello}, &appsv1.Deployment{})
	if apierrors.IsNotFound(err) {
		return "not yet", nil
	}

	return served, err
}

// livePods are the operator's pods, without those that are ending.
func (w *world) livePods(ctx context.Context) ([]string, error) {
	var list corev1.PodList
	if err := w.List(ctx, &list, client.InNamespace(liveOps), client.MatchingLabels{"app": liveOperator}); err != nil {
		return nil, err
	}

	var names []string

	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			names = append(names, list.Items[i].Name)
		}
	}

	return names, nil
}

// follows says whether a pod of the operator has taken in the list as it is.
func (w *world) follows(ctx context.Context) (string, error) {
	var (
		cm     corev1.ConfigMap
		leases coordinationv1.LeaseList
	)

	if err := w.Get(ctx, client.ObjectKey{Namespace: liveOps, Name: configMap}, &cm); err != nil {
		return "", err
	}

	if err := w.List(ctx, &leases, client.InNamespace(liveOps), client.HasLabels{scope.LabelFollows}); err != nil {
		return "", err
	}

	for i := range leases.Items {
		if leases.Items[i].Annotations[scope.AnnotationTakenIn] == scope.TakenIn(cm.Data[scope.ListKey]) {
			return follows, nil
		}
	}

	return "not yet", nil
}

// addOperator watches what the operator does in team-a, and what it says.
func (j *journal) addOperator(ctx context.Context, w *world) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(greetings)

	events, err := w.Watch(ctx, list, client.InNamespace("team-a"))
	if err != nil {
		return fmt.Errorf("watching Greetings: %w", err)
	}

	leases, err := w.Watch(ctx, &coordinationv1.LeaseList{}, client.InNamespace(liveOps), client.HasLabels{scope.LabelFollows})
	if err != nil {
		return fmt.Errorf("watching Leases: %w", err)
	}

	go j.follow(events, func(e watch.Event) (what, object string) {
		g, ok := e.Object.(*unstructured.Unstructured)
		if !ok || e.Type != watch.Modified || slices.Contains(g.GetFinalizers(), liveFinalizer) {
			return "", ""
		}

		return released, "Greeting team-a/" + g.GetName()
	})

	go j.follow(leases, func(e watch.Event) (what, object string) {
		if e.Type == watch.Deleted {
			return "", ""
		}

		return takenIn, "Lease"
	})

	return nil
}

const (
	released = "the operator let go of the Greeting in team-a"
	takenIn  = "the operator said that it serves this list, and nothing else"
)
