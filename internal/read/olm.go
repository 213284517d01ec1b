package read

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// csvDefinition is the CustomResourceDefinition by which it is known whether OLM is there.
const csvDefinition = "clusterserviceversions.operators.coreos.com"

// The least and the most time between two questions whether ClusterServiceVersions can be read. Where their definition can be
// watched, nobody asks while there is none.
const (
	firstQuestion = 250 * time.Millisecond
	lastQuestion  = 30 * time.Second
)

// olm is what is known of the ClusterServiceVersions of an operator namespace.
type olm struct {
	csvs table[facts.CSV]
	// decided says that it is known whether they can be read; listed that they were.
	decided, listed bool
	// stop ends their watch; nil while nobody wants it.
	stop context.CancelFunc
	// changed wakes up whoever waits for their definition.
	changed chan struct{}
}

// CSVs says whether an operator namespace needs to know its ClusterServiceVersions.
func (w *Watches) CSVs(name string, wanted bool) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.store.mu.Lock()
	defer w.store.mu.Unlock()

	h := w.store.operatorNamespaces[name]
	if h == nil || wanted == (h.olm.stop != nil) {
		return
	}

	if !wanted {
		h.olm.stop()
		h.olm.stop = nil
		h.forgetCSVs()

		return
	}

	ctx, stop := context.WithCancel(h.running)
	h.olm.stop = stop
	h.olm.changed = make(chan struct{}, 1)

	go w.attendCSVs(ctx, name, h)
}

func (h *operatorNamespace) forgetCSVs() {
	h.olm.csvs.rows, h.olm.decided, h.olm.listed = nil, false, false
	delete(h.allowances, kindName(h.csvs().list))
}

// attendCSVs asks until ClusterServiceVersions can be read, watches them until they cannot, and begins again.
func (w *Watches) attendCSVs(ctx context.Context, name string, h *operatorNamespace) {
	wait := firstQuestion

	for ctx.Err() == nil {
		err := w.client.List(ctx, scope.NewOLMList(scope.KindCSV), client.InNamespace(name), client.Limit(1))
		if err == nil {
			wait = firstQuestion

			w.watchCSVs(ctx, name, h)
		} else if isAbsent(err) {
			w.noCSVs(ctx, name, h)
		}

		pause := time.After(wait)
		if w.isOLMAbsent() {
			pause = nil // Its definition is watched, and wakes us up.
		}

		select {
		case <-ctx.Done():
		case <-h.olm.changed:
			wait = firstQuestion
		case <-pause:
			wait = min(2*wait, lastQuestion)
		}
	}
}

// isAbsent tells that there is nothing to read, or that it may not be read, from an API server that cannot be asked now.
func isAbsent(err error) bool {
	return meta.IsNoMatchError(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err)
}

// watchCSVs watches the ClusterServiceVersions of an operator namespace until they cannot be read any more.
func (w *Watches) watchCSVs(ctx context.Context, name string, h *operatorNamespace) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	failed := make(chan struct{}, 1)
	k := h.csvs()

	w.store.mu.Lock()
	s := k.sink(ctx, &h.records)
	w.store.mu.Unlock()

	listed := func() {
		if ctx.Err() == nil {
			h.olm.decided, h.olm.listed = true, true
			w.store.listener.KeyChanged(scope.NamespaceScopes.In(name))
		}
	}

	start(ctx, w, &s, k.list, listed, func(err error) {
		if isAbsent(err) {
			wake(failed)
		}
	}, client.InNamespace(name))

	for {
		select {
		case <-ctx.Done():
			return
		case <-failed:
		case <-h.olm.changed:
			if !w.isOLMAbsent() {
				continue
			}
		}

		stop()
		w.noCSVs(context.WithoutCancel(ctx), name, h)

		return
	}
}

// noCSVs notes that there are no ClusterServiceVersions to read.
func (w *Watches) noCSVs(ctx context.Context, name string, h *operatorNamespace) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()

	if ctx.Err() != nil || h.olm.stop == nil || h.olm.decided && !h.olm.listed {
		return
	}

	h.forgetCSVs()
	h.olm.decided = true
	w.store.listener.KeyChanged(scope.NamespaceScopes.In(name))
}

// isOLMAbsent says whether it is known that OLM is not there.
func (w *Watches) isOLMAbsent() bool {
	w.store.mu.RLock()
	defer w.store.mu.RUnlock()

	return w.store.olmAbsent
}

// olmChanged is called with the store locked.
func (s *Store) olmChanged() {
	s.olmAbsent = len(s.definitions[csvDefinition].rows) == 0

	for _, h := range s.operatorNamespaces {
		if h.olm.stop != nil {
			wake(h.olm.changed)
		}
	}
}
