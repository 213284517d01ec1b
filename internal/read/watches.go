package read

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Watches keeps a Store up to date. Namespaces, ClusterRoles, ClusterRoleBindings and projected objects are watched everywhere,
// or, in namespaced mode, projected objects in each member by itself; everything else only in namespaces that hold a scope, by
// watches that start with the first scope and stop after the last.
type Watches struct {
	store  *Store
	client client.WithWatch
	// namespaced says that nothing may be read cluster-wide.
	namespaced bool
	// ReadAs are the clients that look into members, by operator namespace, where it is not the one that reads everything else.
	ReadAs map[string]client.WithWatch
	// Impersonate makes the client that looks into targets as the account that installs there. It is needed where ReadAs is.
	Impersonate func(user string) (client.WithWatch, error)
	// installers are those accounts with their clients, by the namespace in which they install.
	installers map[string]installer

	// checks are the accesses that are to be checked, by operator namespace.
	checks map[string]*checks

	// mayRead says at once why the API server would refuse Roles and RoleBindings of a namespace to a user, where nothing is
	// watched; nil elsewhere.
	mayRead func(user, namespace string) error

	mu      sync.Mutex
	running context.Context //nolint:containedctx // The life of the manager, within which operator namespaces come and go.
	// pending is what is to be watched once the watches run.
	pending map[scope.Key]struct{}
	// turns are those in which catalogs are read.
	turns turns
}

// NewWatches returns watches that begin with Start. In namespaced mode they read nothing cluster-wide: namespaces are watched one
// by one, as Members asks for them.
func NewWatches(store *Store, c client.WithWatch, namespaced bool) *Watches {
	if namespaced {
		store.accesses = map[scope.Key]map[string]*access{}
	}

	w := &Watches{
		store: store, client: c, namespaced: namespaced, pending: map[scope.Key]struct{}{}, installers: map[string]installer{},
		checks: map[string]*checks{},
	}
	w.FollowDefinition(csvDefinition, store.olmChanged)

	return w
}

// NewNarrowOnce returns watches in namespaced mode for records that somebody fills: they watch nothing, and ask mayRead why the
// API server would refuse Roles and RoleBindings of a namespace to a user; nil where it would not. The empty user is whoever
// looks for the operator namespace.
func NewNarrowOnce(store *Store, mayRead func(user, namespace string) error) *Watches {
	w := NewWatches(store, nil, true)
	w.running, w.mayRead = context.Background(), mayRead

	return w
}

// Start runs the cluster-wide watches until the context ends, and those of operator namespaces that were asked for.
func (w *Watches) Start(ctx context.Context) error {
	if !w.namespaced {
		w.startEverywhere(ctx)
	}

	w.mu.Lock()
	w.running = ctx

	for reconcileKey := range w.pending {
		switch reconcileKey.Family {
		case scope.NamespaceScopes, scope.Installs:
			w.begin(reconcileKey)
		case scope.Catalogs:
			w.store.listener.KeyChanged(reconcileKey) // Its reconcile asks for the catalogs again.
		case scope.Templates: // What they need is watched everywhere.
		}
	}
	w.mu.Unlock()

	<-ctx.Done()

	return nil
}

// Listed says what is missing until everything that is watched cluster-wide has been listed; nil from then on. Namespaces that
// are watched one by one are not waited for: one that may not be read must not keep the others from being served.
func (w *Watches) Listed() error {
	w.mu.Lock()
	running := w.running != nil
	w.mu.Unlock()

	if !running {
		return errors.New("the watches have not begun")
	}

	w.store.mu.RLock()
	defer w.store.mu.RUnlock()

	if n := w.store.waiting; n > 0 {
		return fmt.Errorf("%d of what is watched cluster-wide is not listed yet", n)
	}

	return nil
}

func (w *Watches) startEverywhere(ctx context.Context) {
	s := w.store
	namespaces := tableSink(&s.namespaces, convertNamespace)
	clusterRoles := s.clusterSink(projected.ClusterRole, &s.clusterRoles)
	clusterBindings := s.clusterSink(projected.ClusterRoleBinding, &s.clusterBindings)
	roles := s.projected.sink(projected.Role)
	bindings := s.projected.sink(projected.RoleBinding)

	roles.other, bindings.other = s.permissionsChanged, s.permissionsChanged

	s.mu.Lock()
	s.waiting = 5
	s.mu.Unlock()

	listed := func() {
		if s.waiting--; s.waiting == 0 {
			s.listener.EverythingChanged()
		}
	}

	start(ctx, w, &namespaces, &corev1.NamespaceList{}, listed, nil)
	start(ctx, w, &clusterRoles, &rbacv1.ClusterRoleList{}, listed, nil)
	start(ctx, w, &clusterBindings, &rbacv1.ClusterRoleBindingList{}, listed, nil)
	start(ctx, w, &roles, &rbacv1.RoleList{}, listed, nil)
	start(ctx, w, &bindings, &rbacv1.RoleBindingList{}, listed, nil)

	w.startDefinitions(ctx)
	w.startWebhooks(ctx)
}

func tableSink[R any](t *table[R], convert func(client.Object) (R, bool)) sink[R] {
	return sink[R]{convert: convert, put: t.put, drop: t.drop, keys: t.keys}
}

// start runs one watch. failed, if given, is notified of every error of listing or watching.
func start[R any](ctx context.Context, w *Watches, s *sink[R], list client.ObjectList, listed func(),
	failed func(error), opts ...client.ListOption,
) {
	startAs(ctx, w, w.client, s, list, listed, failed, opts...)
}

// startAs is start with a client of its own.
func startAs[R any](ctx context.Context, w *Watches, c client.WithWatch, s *sink[R], list client.ObjectList, listed func(),
	failed func(error), opts ...client.ListOption,
) {
	s.lock, s.done = &w.store.mu, listed
	follow(ctx, c, s, list, failed, opts...)
}

// follow has a sink receive what is listed and watched until the context ends.
func follow[R any](
	ctx context.Context, c client.WithWatch, s *sink[R], list client.ObjectList, failed func(error), opts ...client.ListOption,
) {
	// A stopped watch may still deliver what it has in hand. Either nobody reaches the tables that it fills any more, or its sink is
	// one of whileRunning.
	go newReflector(listerWatcher(c, list, failed, opts), s, fmt.Sprintf("%T", list)).RunWithContext(ctx)
}

func listerWatcher(
	c client.WithWatch, list client.ObjectList, failed func(error), opts []client.ListOption,
) *cache.ListWatch {
	notify := func(err error) {
		if err != nil && failed != nil {
			failed(err)
		}
	}
	fresh := func() client.ObjectList {
		l, _ := list.DeepCopyObject().(client.ObjectList) // A copy has the type of its original.

		return l
	}
	with := func(raw metav1.ListOptions) []client.ListOption {
		merged := &client.ListOptions{}
		merged.ApplyOptions(opts)
		merged.Raw, merged.Limit, merged.Continue = &raw, raw.Limit, raw.Continue

		return []client.ListOption{merged}
	}

	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			l := fresh()
			if err := c.List(ctx, l, with(o)...); err != nil {
				notify(err)

				return nil, fmt.Errorf("listing %T: %w", list, err)
			}

			return l, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			watching, err := c.Watch(ctx, fresh(), with(o)...)
			notify(err)

			return watching, err //nolint:wrapcheck // The reflector tells API errors apart.
		},
	}
}
