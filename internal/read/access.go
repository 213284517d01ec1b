package read

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// The waits between access checks. Where nothing may be read cluster-wide, each namespace is watched by itself, and its access
// is open while Roles and RoleBindings may be read there. No watch reports when a closed access opens, so it is checked now
// and then.
const (
	firstCheck = 500 * time.Millisecond
	lastCheck  = 5 * time.Second
	// perCheck is how long one closed access makes all closed ones wait, so that a thousand of them cost no more requests than a
	// hundred.
	perCheck = 50 * time.Millisecond
)

// access is what may be seen of one namespace for one reconcile key: what the owner of a namespace granted to one operator
// namespace lets no other one in.
type access struct {
	accessKey

	client client.WithWatch
	// decided says that it is known whether the access is open; closed says why it is not.
	decided bool
	closed  string

	stop context.CancelFunc
	// changed wakes the access up: permissions there may be others.
	changed chan struct{}
}

// accessKey names an access by the reconcile key that wants it.
type accessKey struct {
	reconcileKey scope.Key
	namespace    string
}

// Members says which namespaces have to be seen for a reconcile key. It matters only where namespaces are watched one by one;
// watches of namespaces that nobody needs any more end.
func (w *Watches) Members(reconcileKey scope.Key, namespaces []string) {
	if !w.namespaced {
		return
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	if w.running == nil {
		return // Nothing is known yet, so this is asked again.
	}

	w.store.mu.Lock()
	defer w.store.mu.Unlock()

	w.members(reconcileKey, namespaces)
}

// members is called with everything locked.
func (w *Watches) members(reconcileKey scope.Key, namespaces []string) {
	s := w.store
	for _, name := range namespaces {
		if reconcileKey == scope.NamespaceScopes.In(name) {
			continue // The namespace itself is watched otherwise.
		}

		if key := (accessKey{reconcileKey, name}); s.accesses[key] == nil {
			w.newAccess(key)
		}
	}

	for key, d := range s.accesses {
		if key.reconcileKey == reconcileKey && !slices.Contains(namespaces, key.namespace) {
			w.leave(d)
		}
	}
}

// leave is called with everything locked.
func (w *Watches) leave(d *access) {
	d.stop()
	delete(w.store.accesses, d.accessKey)
	w.store.forget(d)
}

// forget takes out what a closed access has brought, unless it is still seen for another reconcile key.
func (s *Store) forget(closed *access) {
	for key, d := range s.accesses {
		if d != closed && key.namespace == closed.namespace && d.isOpen() {
			return
		}
	}

	s.projected.forget(closed.namespace)
}

// readerOf is who looks into a namespace for a reconcile key; nil for Ambit itself.
func (w *Watches) readerOf(key accessKey) client.WithWatch {
	namespace := key.reconcileKey.Namespace
	if key.reconcileKey.Family == scope.Installs {
		return w.installers[namespace].readerOf(key.namespace, namespace)
	}

	return w.ReadAs[namespace]
}

func (d *access) isOpen() bool { return d.decided && d.closed == "" }

// userOf is the account that installs, where one of its targets is looked into; empty for whoever looks otherwise.
func (w *Watches) userOf(key accessKey) string {
	if namespace := key.reconcileKey.Namespace; key.reconcileKey.Family == scope.Installs && key.namespace != namespace {
		return w.installers[namespace].user
	}

	return ""
}

func (w *Watches) newAccess(key accessKey) {
	if w.mayRead != nil {
		d := &access{accessKey: key, decided: true, stop: func() {}}
		if err := w.mayRead(w.userOf(key), key.namespace); err != nil {
			d.closed = d.whyClosed(err)
		}

		w.store.accesses[key] = d

		return
	}

	ctx, stop := context.WithCancel(w.running)
	d := &access{accessKey: key, client: w.client, stop: stop, changed: make(chan struct{}, 1)}

	if as := w.readerOf(key); as != nil {
		d.client = as
	}

	w.store.accesses[key] = d

	go w.attend(ctx, d)
}

// attend checks until the access opens, watches until it closes, and begins again.
func (w *Watches) attend(ctx context.Context, d *access) {
	wait := firstCheck

	for ctx.Err() == nil {
		err := d.check(ctx)

		switch {
		case err == nil:
			wait = firstCheck

			w.watchAccessible(ctx, d)
		case refusesEntry(err) && w.isClosed(ctx, d):
			w.close(ctx, d, d.whyClosed(err))
		}

		sleep(ctx, max(wait, w.checkWait()))
		wait = min(2*wait, lastCheck)
	}
}

// check asks whether the namespace can be read.
func (d *access) check(ctx context.Context) error {
	for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
		if err := d.client.List(ctx, list, client.InNamespace(d.namespace), client.Limit(1)); err != nil {
			return fmt.Errorf("reading namespace %s: %w", d.namespace, err)
		}
	}

	return nil
}

// watchAccessible watches an accessible namespace until it can no longer be read.
func (w *Watches) watchAccessible(ctx context.Context, d *access) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()

	failed := make(chan struct{}, 1)
	fail := func(err error) {
		if refusesEntry(err) {
			wake(failed)
		}
	}
	missing := 2
	listed := func() {
		if missing--; missing == 0 && ctx.Err() == nil {
			w.store.decide(d, "")
		}
	}

	for kind, list := range map[projected.Kind]client.ObjectList{
		projected.Role: &rbacv1.RoleList{}, projected.RoleBinding: &rbacv1.RoleBindingList{},
	} {
		k := within(ctx, w.store.projected.sink(kind), d.namespace)
		k.other = func(namespace string) {
			w.store.permissionsChanged(namespace)
			wake(d.changed)
		}

		startAs(ctx, w, d.client, &k, list, listed, fail, client.InNamespace(d.namespace))
	}

	for {
		select {
		case <-ctx.Done():
			return
		case <-failed:
			if w.staysClosed(ctx, d, firstCheck, 3*firstCheck) {
				w.close(ctx, d, noAccess)

				return
			}
		case <-d.changed:
			// The API server does not end a watch when the right to it goes, and its authorizer learns of that a moment after the watch
			// reported it.
			for _, wait := range []time.Duration{firstCheck, 3 * firstCheck} {
				if !sleep(ctx, wait) {
					return
				}

				if err := d.check(ctx); refusesEntry(err) {
					w.close(ctx, d, noAccess)

					return
				}
			}
		}
	}
}

// isClosed says whether an access that was refused once is closed. One that is known to be need not be asked twice.
func (w *Watches) isClosed(ctx context.Context, d *access) bool {
	w.store.mu.RLock()
	known := d.closed != ""
	w.store.mu.RUnlock()

	return known || w.staysClosed(ctx, d, firstCheck)
}

// staysClosed checks again after each of the waits, and says whether it was refused every time. An API server that begins
// refuses whatever it is asked before its authorizer has read who may do what. Every access would close by that, every member
// leave the watch lists, and every operator restart twice.
func (w *Watches) staysClosed(ctx context.Context, d *access, waits ...time.Duration) bool {
	for _, wait := range waits {
		if !sleep(ctx, wait) || !refusesEntry(d.check(ctx)) {
			return false
		}
	}

	return true
}

func (w *Watches) close(ctx context.Context, d *access, why string) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()

	if ctx.Err() == nil {
		w.store.forget(d)
		w.store.decide(d, why)
	}
}

// checkWait is how long a closed access waits because of all that are closed.
func (w *Watches) checkWait() time.Duration {
	w.store.mu.RLock()
	defer w.store.mu.RUnlock()

	var all time.Duration

	for _, d := range w.store.accesses {
		if d.closed != "" {
			all += perCheck
		}
	}

	return all
}

// decide notes whether an access is open and notifies whom it concerns. It is called with the store locked.
func (s *Store) decide(d *access, closed string) {
	if d.decided && d.closed == closed {
		return
	}

	first := !d.decided
	before := facts.Namespace{Closed: d.closed}
	d.decided, d.closed = true, closed
	after := facts.Namespace{Closed: d.closed}

	if first {
		s.listener.KeyChanged(d.reconcileKey)
	}

	s.listener.NamespaceChanged(d.namespace, &before, &after)
}

// inAccessible returns the namespaces that may be seen for a reconcile key, and whether all of them are decided.
func (s *Store) inAccessible(reconcileKey scope.Key) (map[string]facts.Namespace, bool) {
	out := map[string]facts.Namespace{}
	if reconcileKey.Family == scope.NamespaceScopes {
		out[reconcileKey.Namespace] = facts.Namespace{}
	}

	for key, d := range s.accesses {
		if key.reconcileKey != reconcileKey {
			continue
		}

		if !d.decided {
			return nil, false
		}

		out[key.namespace] = facts.Namespace{Closed: d.closed}
	}

	return out, true
}

// within limits a sink to one namespace and to the life of its watch: all namespaces share the table.
func within(ctx context.Context, k sink[projectedRecord], namespace string) sink[projectedRecord] {
	k = whileRunning(ctx, k)

	keys := k.keys
	k.keys = func() map[types.NamespacedName]uint64 {
		all := keys()
		maps.DeleteFunc(all, func(key types.NamespacedName, _ uint64) bool { return key.Namespace != namespace })

		return all
	}

	return k
}

func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// sleep says whether the time passed before the context ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
