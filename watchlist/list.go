package watchlist

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// variable is how operators learned their namespaces before they followed a list.
	variable = "WATCH_NAMESPACE"
	// usualName is the ConfigMap that a NamespaceScope writes unless it names another.
	usualName = "namespace-scope"
)

// List is a list of namespaces that an operator follows. It serves one manager.
type List struct {
	source source
	// configMap is the name of the ConfigMap that the list comes from, also where it is read from a file.
	configMap string

	mu      sync.Mutex
	hooks   []Hook
	elected <-chan struct{}
	cache   *liveCache
}

// Hook is called for a namespace that leaves, while the cache can still be read and the permissions are still there. Its context
// ends before the permissions do. A hook that fails is called again until then.
type Hook func(ctx context.Context, namespace string) error

// FromFile follows a file, such as the key of a ConfigMap that is mounted. The kubelet takes up to a minute or two to write a
// change; FromConfigMap sees it at once.
func FromFile(path string) (*List, error) {
	if err := onlySource(path); err != nil {
		return nil, err
	}

	if path == "" {
		return nil, errors.New("no file is named that holds the list of namespaces")
	}

	return &List{source: &fileSource{path: path}, configMap: usualName}, nil
}

// FromConfigMap follows the key "namespaces" of one ConfigMap, and no other. The account needs get, list and watch of configmaps
// with that resourceName, in that namespace.
func FromConfigMap(cfg *rest.Config, namespace, name string) (*List, error) {
	if err := onlySource("ConfigMap " + namespace + "/" + name); err != nil {
		return nil, err
	}

	source, err := newConfigMapSource(cfg, namespace, name)
	if err != nil {
		return nil, err
	}

	return &List{source: source, configMap: name}, nil
}

// FromEnv takes a fixed list from an environment variable. One that is empty serves nothing; "*" serves all namespaces.
func FromEnv(name string) (*List, error) {
	value, set := os.LookupEnv(name)
	if !set {
		return nil, fmt.Errorf("the environment variable %s is not set; an empty one serves no namespace, \"*\" all of them", name)
	}

	list, err := parse(value)
	if err != nil {
		return nil, fmt.Errorf("the environment variable %s: %w", name, err)
	}

	return &List{source: fixedSource(list)}, nil
}

func onlySource(source string) error {
	if value := os.Getenv(variable); value != "" {
		return fmt.Errorf("the namespaces come from two sources, %s and the environment variable %s; remove one", source, variable)
	}

	return nil
}

// Named says which ConfigMap a file is mounted from, where it is not "namespace-scope". That is how whoever writes the list knows
// that this operator follows it.
func (l *List) Named(configMap string) *List {
	l.configMap = configMap

	return l
}

// OnLeave adds a hook for namespaces that leave. It runs in every replica unless HooksAfter says otherwise.
func (l *List) OnLeave(hook Hook) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.hooks = append(l.hooks, hook)
}

// HooksAfter lets hooks run only once a channel is closed. Give it mgr.Elected(): a standby keeps caches too, and must not
// clean up what the leader works on.
func (l *List) HooksAfter(elected <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.elected = elected
}

// due are the hooks to run now.
func (l *List) due() []Hook {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.elected != nil && !isClosed(l.elected) {
		return nil
	}

	return l.hooks
}

// NewCache makes the manager's cache.
func (l *List) NewCache() cache.NewCacheFunc {
	return func(cfg *rest.Config, opts cache.Options) (cache.Cache, error) {
		l.mu.Lock()
		defer l.mu.Unlock()

		if l.cache != nil {
			return nil, errors.New("a list of namespaces serves one manager; make another for another manager")
		}

		c, err := newLiveCache(l, cfg, opts)
		if err != nil {
			return nil, err
		}

		l.cache = c

		return c, nil
	}
}

// Ready is a check for mgr.AddReadyzCheck: an error names the namespaces that are in the list and cannot be watched.
func (l *List) Ready(*http.Request) error {
	c := l.live()
	if c == nil {
		return errors.New("the list of namespaces is not used by any manager")
	}

	return c.problems()
}

// Namespaces are those that are served now, sorted. One that is empty stands for all.
func (l *List) Namespaces() []string {
	if c := l.live(); c != nil {
		return c.served()
	}

	return nil
}

func (l *List) live() *liveCache {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.cache
}

// Reconciler keeps a reconciler from being called for a namespace that left, and lets a namespace leave only after the calls
// that are under way. Without it such a call is made once more, finds ErrNotInScope at its first read, and is not repeated.
func (l *List) Reconciler(inner reconcile.Reconciler) reconcile.Reconciler {
	return reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
		c := l.live()
		if c == nil || request.Namespace == "" {
			return inner.Reconcile(ctx, request)
		}

		s := c.space(request.Namespace)
		if s == nil || !s.work.enter() {
			return reconcile.Result{}, nil
		}
		defer s.work.exit()

		return inner.Reconcile(ctx, request)
	})
}
