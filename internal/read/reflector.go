package read

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// firstPause is how long whoever lists and watches waits before it asks again, at first.
	firstPause = 800 * time.Millisecond
	// maxPause and maxRelistPause bound, but for the jitter, how long it waits for an API server that is away, and how long before
	// it lists again after a watch ended. One may follow the other: the API server comes back, and does not remember the version
	// from which a watch resumes. A revocation may take no longer than ten seconds.
	maxPause       = 5 * time.Second
	maxRelistPause = 8 * time.Second
	// overdue is how much later than the API server should have ended a watch it is ended here.
	overdue = 30 * time.Second
)

// anyVersion is what client-go asks for at first where it cannot stream what there is: the API server answers from its
// memory then, however old that is. Of several API servers, one may be behind the others. What is asked for instead is the
// latest version: what is missing in an old list would be taken for gone, and what was made for it taken back.
const anyVersion = "0"

// NewInformer makes an informer for caches of controller-runtime, which is client-go's, but asks an API server that is away every
// few seconds. By itself it would pause for up to a minute: its reflector has the default backoff, which no option of an informer
// can change yet (the TODO at ReflectorOptions.Backoff in k8s.io/client-go/tools/cache/reflector.go). So its reflector is never
// told that the API server is away.
func NewInformer(
	from cache.ListerWatcher, object runtime.Object, resync time.Duration, indexers cache.Indexers,
) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(persistent(from), object, resync, indexers)
}

// newReflector returns a reflector that follows what is listed and watched, and has it in a store. It lists again in time also
// where watches ended often before.
func newReflector(from cache.ListerWatcher, to cache.ReflectorStore, name string) *cache.Reflector {
	return cache.NewReflectorWithOptions(persistent(from), nil, to, cache.ReflectorOptions{
		Name: name, TypeDescription: name, Backoff: pauses(maxRelistPause),
	})
}

func pauses(most time.Duration) *wait.Backoff {
	return &wait.Backoff{Duration: firstPause, Cap: most, Steps: 5, Factor: 2, Jitter: 0.2}
}

// persistent asks until the API server answers.
func persistent(from cache.ListerWatcher) cache.ListerWatcher {
	asked := cache.ToListerWatcherWithContext(from)

	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if o.ResourceVersion == anyVersion {
				o.ResourceVersion = ""
			}

			return untilAnswered(ctx, isAway, func() (runtime.Object, error) { return asked.ListWithContext(ctx, o) })
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			away := isAway
			if o.SendInitialEvents != nil {
				// An API server that fails to stream what there is may still list it, which client-go asks for next.
				away = func(err error) bool { return isAway(err) && !apierrors.IsInternalError(err) }
			}

			watching, err := untilAnswered(ctx, away, func() (watch.Interface, error) { return asked.WatchWithContext(ctx, o) })
			if err != nil || o.TimeoutSeconds == nil {
				return watching, err
			}

			return &timed{watching, time.AfterFunc(time.Duration(*o.TimeoutSeconds)*time.Second+overdue, watching.Stop)}, nil
		},
	}
}

// timed is a watch that ends by a time. The API server ends each watch after a while, but whatever is between may lose it, and
// keep the connection: client-go would listen forever, and what was revoked since would stay.
type timed struct {
	watch.Interface

	end *time.Timer
}

// Stop ends the watch.
func (w *timed) Stop() {
	w.end.Stop()
	w.Interface.Stop()
}

// untilAnswered asks until there is an answer, or the context ends.
func untilAnswered[T any](ctx context.Context, away func(error) bool, ask func() (T, error)) (T, error) {
	pause := pauses(maxPause)

	for first := true; ; first = false {
		answer, err := ask()
		if err == nil || ctx.Err() != nil || !away(err) {
			return answer, err
		}

		if first {
			klog.FromContext(ctx).Info("The API server does not answer; it is asked every few seconds", "because", err.Error())
		}

		if !sleep(ctx, pause.Step()) {
			return answer, err
		}
	}
}

// isAway says whether an error is no answer of an API server that works. Everything else is for the reflector to decide: a
// refusal, a kind that is not served, a version that is too old or not there yet.
func isAway(err error) bool {
	var answer apierrors.APIStatus

	switch {
	case meta.IsNoMatchError(err) || apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge):
		return false
	case !errors.As(err, &answer):
		return true // The connection failed.
	default:
		code := answer.Status().Code

		// An API server that starts may know nobody yet.
		return code >= http.StatusInternalServerError || code == http.StatusTooManyRequests || code == http.StatusUnauthorized
	}
}
