package kinds

import (
	"context"
	"time"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// attend reads a kind while it is there, and looks for it while it is not.
func (k *Kinds) attend(ctx context.Context, one *kind) {
	wait := firstQuestion

	for ctx.Err() == nil {
		is := k.ask(ctx, one)

		if is == there && k.list(ctx, one) {
			k.stay(ctx, one)

			wait = firstQuestion

			continue
		}

		if is == missing {
			k.miss(ctx, one)
		}

		select {
		case <-ctx.Done():
		case <-one.wake:
			wait = firstQuestion
		case <-k.pause(one, is, wait):
			wait = min(2*wait, lastQuestion)
		}
	}
}

// pause is when to ask again. Where a definition is watched, no time is needed: wake comes with the definition.
func (k *Kinds) pause(one *kind, is verdict, wait time.Duration) <-chan time.Time {
	if is == missing && k.Definition != nil {
		if _, known := k.Definition(one.definition); known {
			return nil
		}
	}

	return time.After(wait)
}

// stay returns once a kind that is listed is missing.
func (k *Kinds) stay(ctx context.Context, one *kind) {
	var again <-chan time.Time

	for {
		select {
		case <-ctx.Done():
			return
		case <-one.wake:
		case <-again:
		}

		again = nil

		switch k.ask(ctx, one) {
		case missing:
			k.miss(ctx, one)

			return
		case unknown:
			again = time.After(sure)
		case there:
		}
	}
}

// list has a kind listed and watched. It returns false if that is not possible, or no longer.
func (k *Kinds) list(ctx context.Context, one *kind) bool {
	informer, err := k.informer(ctx, one)
	if err != nil {
		// Discovery may be a moment behind.
		k.Log.V(1).Info("Waiting until a kind is served", "definition", one.definition, "because", err.Error())

		return false
	}

	k.mu.Lock()
	one.informer = informer

	for _, s := range one.sources {
		s.handle(informer)
	}
	k.mu.Unlock()

	for synced := informer.HasSyncedChecker(); !toolscache.IsDone(synced); {
		select {
		case <-ctx.Done():
			return false
		case <-one.wake:
			if k.ask(ctx, one) == missing {
				k.miss(ctx, one)

				return false
			}
		case <-synced.Done():
		}
	}

	if one.reported {
		k.Log.Info("A kind that was missing is there now, and is served", "definition", one.definition)
	}

	one.reported = false
	k.decide(one, true)

	return true
}

// informer has the cache make an informer, with the indexes of the kind.
func (k *Kinds) informer(ctx context.Context, one *kind) (cache.Informer, error) {
	informer, err := k.Cache.GetInformer(ctx, one.object, cache.BlockUntilSynced(false))

	for field, values := range one.indexes {
		if err == nil {
			err = k.Cache.IndexField(ctx, one.object, field, values)
		}
	}

	return informer, err //nolint:wrapcheck // list says what it is about.
}

// miss notes that a kind is missing: what was read of it is forgotten.
func (k *Kinds) miss(ctx context.Context, one *kind) {
	k.mu.Lock()
	stale := one.informer != nil
	one.informer, one.listed = nil, false

	if stale {
		// It cannot fail for a kind that the scheme knows.
		_ = k.Cache.RemoveInformer(ctx, one.object)
	}
	k.mu.Unlock()

	if !one.reported {
		k.Log.Info("A kind is missing: its CustomResourceDefinition is not there. What is of it is not served until it is; everything "+
			"else is", "definition", one.definition)

		one.reported = true

		k.decide(one, false)
	}
}

// decide notes whether a kind is listed or missing, and calls Missing and Changed.
func (k *Kinds) decide(one *kind, listed bool) {
	k.mu.Lock()
	one.listed = listed
	k.mu.Unlock()

	if !one.isDecided() {
		close(one.decided)
	}

	if k.Missing != nil {
		k.Missing(one.definition, !listed)
	}

	if k.Changed != nil {
		k.Changed()
	}
}
