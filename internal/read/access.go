package read

import (
	"context"
	"fmt"
	"maps"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// The waits between access checks. Where nothing may be read cluster-wide, each namespace is watched by itself, and its access
// is open while Roles and RoleBindings may be read there. No watch reports when a closed access opens, so it is checked now
// and then.
const (
	firstCheck = 500 * time.Millisecond
	lastCheck  = 5 * time.Second
	// perCheck is how long one closed access makes all closed ones of its operator namespace wait, so that a thousand of them cost
	// no more requests than a hundred.
	perCheck = 50 * time.Millisecond
)

// access is what may be seen of one namespace for one reconcile key: what the owner of a namespace granted to one operator
// namespace lets no other one in.
type access struct {
	accessKey
	placed

	client client.WithWatch
	// decided says that it is known whether the access is open; closed says why it is not.
	decided bool
	closed  string

	// running ends when nobody needs the access any more, which stop says.
	running context.Context //nolint:containedctx // The life of the access, which is checked now and then.
	stop    context.CancelFunc

	// next is when it is to be checked. The lock of checks guards it, and the place among those that are.
	next time.Time
	// pause is how long it waits for the next check if it is refused, and doubted says that it was refused once. Both are for
	// whoever checks it, which is one at a time.
	pause   time.Duration
	doubted bool
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
	for _, name := range namespaces {
		if reconcileKey == scope.NamespaceScopes.In(name) {
			continue // The namespace itself is watched otherwise.
		}

		if w.store.accesses[reconcileKey][name] == nil {
			w.newAccess(accessKey{reconcileKey, name})
		}
	}

	needed := sets.New(namespaces...)
	for name, d := range w.store.accesses[reconcileKey] {
		if !needed.Has(name) {
			w.leave(d)
		}
	}
}

// leave is called with everything locked.
func (w *Watches) leave(d *access) {
	s := w.store

	d.stop()

	if of := w.checks[d.reconcileKey.Namespace]; of != nil {
		of.drop(d)
	}

	s.setClosed(d, "") // It counts as closed no more.

	if delete(s.accesses[d.reconcileKey], d.namespace); len(s.accesses[d.reconcileKey]) == 0 {
		delete(s.accesses, d.reconcileKey)
	}

	s.forget(d)
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
	d := &access{accessKey: key, client: w.client, pause: firstCheck, stop: func() {}}
	w.store.put(d)

	if w.mayRead != nil {
		d.decided = true

		if err := w.mayRead(w.userOf(key), key.namespace); err != nil {
			w.store.setClosed(d, d.whyClosed(err))
		}

		return
	}

	d.running, d.stop = context.WithCancel(w.running)

	if as := w.readerOf(key); as != nil {
		d.client = as
	}

	w.checksOf(key.reconcileKey.Namespace).add(d, 0)
}

// checksOf are those of an operator namespace. They run until Ambit ends.
func (w *Watches) checksOf(operatorNamespace string) *checks {
	of := w.checks[operatorNamespace]
	if of == nil {
		of = &checks{
			wake: make(chan struct{}, 1), due: pile[*access]{less: func(a, b *access) bool { return a.next.Before(b.next) }},
		}
		w.checks[operatorNamespace] = of

		go of.run(w.running, func(d *access) { w.attend(d, of) })
	}

	return of
}

// attend checks an access. One that is open is watched until it closes, in the background; one that is not is checked again.
//
// An API server that begins refuses whatever it is asked before its authorizer has read who may do what. Every access would close
// by that, every member leave the watch lists, and every operator restart twice. So one is closed that was refused twice.
func (w *Watches) attend(d *access, in *checks) {
	err := d.check(d.running)

	switch {
	case err == nil:
		d.pause, d.doubted = firstCheck, false

		go func() {
			w.watchAccessible(d.running, d)
			w.checkAgain(d, in, firstCheck)
		}()
	case refusesEntry(err) && !d.doubted && !w.isClosed(d):
		d.doubted = true
		w.checkAgain(d, in, firstCheck)
	default:
		if d.doubted = false; refusesEntry(err) {
			w.close(d.running, d, d.whyClosed(err))
		}

		w.checkAgain(d, in, max(d.pause, w.checkWait(d.reconcileKey.Namespace)))
		d.pause = min(2*d.pause, lastCheck)
	}
}

// checkAgain has an access checked once more, unless nobody needs it any more.
func (w *Watches) checkAgain(d *access, in *checks, wait time.Duration) {
	w.store.mu.RLock()
	defer w.store.mu.RUnlock()

	if d.running.Err() == nil {
		in.add(d, wait)
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

	// changed says that permissions there may be others.
	failed, changed := make(chan struct{}, 1), make(chan struct{}, 1)
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
			wake(changed)
		}

		startAs(ctx, w, d.client, &k, list, listed, fail, client.InNamespace(d.namespace))
	}

	for {
		select {
		case <-ctx.Done():
			return
		case <-failed:
			if d.staysClosed(ctx, firstCheck, 3*firstCheck) {
				w.close(ctx, d, noAccess)

				return
			}
		case <-changed:
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

// isClosed says whether an access is known to be closed: then a refusal is no news, and need not be asked for twice.
func (w *Watches) isClosed(d *access) bool {
	w.store.mu.RLock()
	defer w.store.mu.RUnlock()

	return d.closed != ""
}

// staysClosed checks an access that was open again after each of the waits, and says whether it was refused every time.
func (d *access) staysClosed(ctx context.Context, waits ...time.Duration) bool {
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

// checkWait is how long a closed access waits because of all that are closed for its operator namespace.
func (w *Watches) checkWait(operatorNamespace string) time.Duration {
	w.store.mu.RLock()
	defer w.store.mu.RUnlock()

	return time.Duration(w.store.closed[operatorNamespace]) * perCheck
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
