package watchlist

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// hookTime is for how long hooks may work for a namespace that leaves. Ambit revokes the permissions after 10 seconds, by
	// default.
	hookTime = 8 * time.Second
	// hookAgain is when a hook that failed is called again; twice that after the next time.
	hookAgain = 50 * time.Millisecond
)

func (c *liveCache) runHooks(ctx context.Context, namespace string) {
	hooks := c.list.due()
	if len(hooks) == 0 {
		return
	}

	ctx, cancel := context.WithTimeout(ctx, hookTime)
	defer cancel()

	done := make(chan struct{})

	go func() {
		defer close(done)

		for _, hook := range hooks {
			runHook(ctx, hook, namespace)
		}
	}()

	// A hook that does not heed its context keeps nothing else from leaving.
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// runHook calls a hook until it succeeds or its time is over: others may write at the same time what it cleans up, and nobody can
// clean up later.
func runHook(ctx context.Context, hook Hook, namespace string) {
	for pause := hookAgain; ; pause = min(2*pause, time.Second) {
		err := hook(ctx, namespace)
		if err == nil {
			return
		}

		log.FromContext(ctx).Error(err, "A hook failed for a namespace that leaves", "namespace", namespace)

		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}
