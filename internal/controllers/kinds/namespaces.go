package kinds

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/ambit-k8s/ambit/internal/read"
)

// inBetween is longer than a reflector waits after it was refused, which is a minute at most, and shorter than a watch lasts,
// which is five minutes at least. Refusals that are further apart are not about the same loss of rights.
const inBetween = 2 * time.Minute

// Namespaces are those that are served where nothing may be read cluster-wide. Each is closed until the kinds in question have
// been read there, and open from then on. Each has a cache of its own: that of controller-runtime for several namespaces is ready
// when all of them have been read, so that one which may not be read would keep the others from being served, and would end the
// manager after a while.
type Namespaces struct {
	log     logr.Logger
	user    string
	what    What
	readers map[string]*scopeReader
	opened  func(namespace string, scopes *Kinds) error
}

type scopeReader struct {
	cache cache.Cache
	kinds *Kinds
	// open is closed once the scopes have been read.
	open chan struct{}

	mu sync.Mutex
	// refused is when reading was refused last; zero when it never was.
	refused time.Time
}

// What says what is read in each namespace, for the log: what it is called, and the Role by which it may be read.
type What struct{ Kinds, Role string }

// NewNamespaces returns the namespaces, in which objects of the given kinds are read. Start opens them. options apply to each of
// them, and keep cuts an object down to what is kept of it; user is the name of Ambit's account, for the log.
func NewNamespaces(
	c cluster.Cluster, options Options, keep toolscache.TransformFunc, user string, namespaces []string,
	what What, objects []client.Object,
) (*Namespaces, error) {
	h := &Namespaces{log: options.Log, user: user, what: what, readers: map[string]*scopeReader{}}

	for _, namespace := range namespaces {
		one := &scopeReader{open: make(chan struct{})}

		scopes, err := cache.New(c.GetConfig(), cache.Options{
			HTTPClient: c.GetHTTPClient(), Scheme: c.GetScheme(), Mapper: c.GetRESTMapper(),
			NewInformer:                 read.NewInformer,
			DefaultNamespaces:           map[string]cache.Config{namespace: {}},
			DefaultTransform:            keep,
			ReaderFailOnMissingInformer: true, // Nothing else is watched by mistake.
			DefaultWatchErrorHandler: func(ctx context.Context, r *toolscache.Reflector, err error) {
				h.failed(ctx, namespace, r, err)
			},
		})
		if err != nil {
			return nil, fmt.Errorf("making the cache of namespace %s: %w", namespace, err)
		}

		options.Cache, options.Namespace, options.Log = scopes, namespace, h.log.WithValues("namespace", namespace)
		if one.kinds, err = New(c, options, objects...); err != nil {
			return nil, fmt.Errorf("making what reads the scopes of namespace %s: %w", namespace, err)
		}

		one.cache, h.readers[namespace] = scopes, one
	}

	return h, nil
}

// OnOpen says what is done when an operator namespace has opened. It is called before Start.
func (h *Namespaces) OnOpen(do func(namespace string, scopes *Kinds) error) { h.opened = do }

// Start reads the scopes of each operator namespace, whatever becomes of the others, until the context ends.
func (h *Namespaces) Start(ctx context.Context) error {
	running, ctx := errgroup.WithContext(ctx)

	for namespace, one := range h.readers {
		running.Go(func() error { return one.cache.Start(ctx) })
		running.Go(func() error { return one.kinds.Start(ctx) })
		running.Go(func() error { return h.attend(ctx, namespace, one) })
	}

	return running.Wait() //nolint:wrapcheck // It is what one of them returned.
}

// attend opens an operator namespace as soon as its scopes have been read. The reflectors try to read them, less and less
// often.
func (h *Namespaces) attend(ctx context.Context, namespace string, one *scopeReader) error {
	if !one.kinds.Wait(ctx) {
		return nil // The manager ends.
	}

	close(one.open)

	if one.wasRefused() {
		h.log.Info("The "+h.what.Kinds+" of a namespace can be read now; it is served", "namespace", namespace)
	}

	return h.opened(namespace, one.kinds)
}

// failed is called when the scopes of an operator namespace cannot be listed or watched. It logs that once for as long as they
// may not be; other errors of a watch are logged as everywhere.
func (h *Namespaces) failed(ctx context.Context, namespace string, r *toolscache.Reflector, err error) {
	if apierrors.IsNotFound(err) {
		h.readers[namespace].kinds.Wake() // The definition of a kind may be gone.
	}

	if !apierrors.IsForbidden(err) {
		toolscache.DefaultWatchErrorHandler(ctx, r, err)

		return
	}

	if h.readers[namespace].refuse(time.Now()) {
		h.log.Error(err, "May not read the "+h.what.Kinds+" of a namespace. Grant the account there what "+h.what.Role+
			" has; the namespace is served within a minute after that, and others meanwhile",
			"namespace", namespace, "account", h.user)
	}
}

// refuse notes a refusal, and says whether it is the first one since the scopes could be read.
func (o *scopeReader) refuse(now time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()

	first := o.refused.IsZero() || now.Sub(o.refused) > inBetween
	o.refused = now

	return first
}

func (o *scopeReader) wasRefused() bool {
	o.mu.Lock()
	defer o.mu.Unlock()

	return !o.refused.IsZero()
}

// IsOpen says whether the scopes of a namespace have been read.
func (h *Namespaces) IsOpen(namespace string) bool {
	one := h.readers[namespace]

	return one != nil && isClosed(one.open)
}

// Listed returns an error that names a namespace of which a kind is neither listed nor known to be missing; nil when there is
// none. One that may not be read counts as listed: others are served meanwhile.
func (h *Namespaces) Listed() error {
	for _, namespace := range slices.Sorted(maps.Keys(h.readers)) {
		if err := h.readers[namespace].kinds.Listed(); err != nil && !h.readers[namespace].wasRefused() {
			return fmt.Errorf("in namespace %s, %w", namespace, err)
		}
	}

	return nil
}

// Wait waits until an operator namespace is open. It returns false when the context ends before.
func (h *Namespaces) Wait(ctx context.Context, namespace string) bool {
	select {
	case <-ctx.Done():
		return false
	case <-h.readers[namespace].open:
		return true
	}
}

// Kinds returns the kinds of an operator namespace.
func (h *Namespaces) Kinds(namespace string) *Kinds { return h.readers[namespace].kinds }

// Get reads a scope of an open operator namespace. For a closed one it returns an error: that nothing is known does not mean that
// there is nothing.
func (h *Namespaces) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	scopes, err := h.underCheck(key.Namespace)
	if err != nil {
		return err
	}

	return scopes.Get(ctx, key, obj, opts...) //nolint:wrapcheck // Callers tell API errors apart.
}

// List reads the scopes of an open operator namespace.
func (h *Namespaces) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)

	scopes, err := h.underCheck(o.Namespace)
	if err != nil {
		return err
	}

	return scopes.List(ctx, list, opts...) //nolint:wrapcheck // Callers tell API errors apart.
}

// underCheck returns the cache of an open operator namespace. One that is closed would keep its reader waiting.
func (h *Namespaces) underCheck(namespace string) (client.Reader, error) {
	if !h.IsOpen(namespace) {
		return nil, fmt.Errorf("the %s of namespace %q have not been read", h.what.Kinds, namespace)
	}

	return h.readers[namespace].kinds, nil
}
