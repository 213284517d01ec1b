package read

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
)

// A door leads to a namespace that is watched by itself, because nothing may be read cluster-wide. It is open while Roles
// and RoleBindings may be read there. No watch tells when a closed one opens, so somebody has to knock now and then.
const (
	firstKnock = 500 * time.Millisecond
	lastKnock  = 5 * time.Second
	// perDoor is how long one closed door makes all closed doors wait, so that a thousand of them cost no more requests
	// than a hundred.
	perDoor = 50 * time.Millisecond
)

// closedDoor is what is known of a namespace that cannot be read.
const (
	closedDoor  = "Ambit may not read Roles and RoleBindings there, or there is no such namespace"
	mayNotActAs = "Ambit may not act as the service account to which is granted: in the scope's namespace it lacks something of " +
		"what Role ambit-namespaced of config/rbac/namespaced has"
)

// Each operator namespace has doors of its own: what the owner of a namespace granted to one operator namespace lets no other
// one in.
type door struct {
	doorKey

	client client.WithWatch
	// decided says that it is known whether it is open; closed why it is not.
	decided bool
	closed  string

	stop context.CancelFunc
	// changed wakes the door up: permissions behind it may be others.
	changed chan struct{}
}

// doorKey names a door by the operator namespace that wants to see behind it.
type doorKey struct{ reconcileKey, namespace string }

// Members says which namespaces an operator namespace needs to see, besides itself. It matters only where namespaces are
// watched one by one; watches of namespaces that no operator namespace needs any more end.
func (w *Watches) Members(reconcileKey string, namespaces []string) {
	if !w.narrow {
		return
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	if w.running == nil {
		return // Nothing is known yet, so this is asked again.
	}

	w.store.mu.Lock()
	defer w.store.mu.Unlock()

	s := w.store
	for _, name := range namespaces {
		if name == reconcileKey {
			continue
		}

		if key := (doorKey{reconcileKey, name}); s.doors[key] == nil {
			w.newDoor(key)
		}
	}

	for key, d := range s.doors {
		if key.reconcileKey == reconcileKey && !slices.Contains(namespaces, key.namespace) {
			w.leave(d)
		}
	}
}

// leave is called with everything locked.
func (w *Watches) leave(d *door) {
	d.stop()
	delete(w.store.doors, d.doorKey)
	w.store.forget(d)
}

// forget takes out what a door that is closed has brought, unless somebody else still sees it.
func (s *Store) forget(closed *door) {
	for key, d := range s.doors {
		if d != closed && key.namespace == closed.namespace && d.isOpen() {
			return
		}
	}

	s.projected.forget(closed.namespace)
}

func (d *door) isOpen() bool { return d.decided && d.closed == "" }

func (w *Watches) newDoor(key doorKey) {
	ctx, stop := context.WithCancel(w.running)
	d := &door{doorKey: key, client: w.client, stop: stop, changed: make(chan struct{}, 1)}

	if as := w.ReadAs[key.reconcileKey]; as != nil {
		d.client = as
	}

	w.store.doors[key] = d

	go w.attend(ctx, d)
}

// attend knocks until the door opens, watches until it closes, and begins again.
func (w *Watches) attend(ctx context.Context, d *door) {
	wait := firstKnock

	for ctx.Err() == nil {
		err := d.knock(ctx)

		switch {
		case err == nil:
			wait = firstKnock

			w.watchBehind(ctx, d)
		case refusesEntry(err) && w.isShut(ctx, d):
			w.close(ctx, d, whyClosed(err))
		}

		select {
		case <-ctx.Done():
		case <-time.After(max(wait, w.patience())):
			wait = min(2*wait, lastKnock)
		}
	}
}

// knock asks whether the namespace can be read.
func (d *door) knock(ctx context.Context) error {
	for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
		if err := d.client.List(ctx, list, client.InNamespace(d.namespace), client.Limit(1)); err != nil {
			return fmt.Errorf("reading namespace %s: %w", d.namespace, err)
		}
	}

	return nil
}

// refusesEntry tells a closed door from an API server that cannot be asked now.
func refusesEntry(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) }

// whyClosed tells a namespace that did not let anybody in from an account that Ambit may not act as.
func whyClosed(err error) string {
	status, is := errors.AsType[*apierrors.StatusError](err)
	if is && status.ErrStatus.Details != nil && status.ErrStatus.Details.Kind == "serviceaccounts" {
		return mayNotActAs
	}

	return closedDoor
}

// watchBehind watches what is behind an open door until it closes.
func (w *Watches) watchBehind(ctx context.Context, d *door) {
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
			if w.staysShut(ctx, d, firstKnock, 3*firstKnock) {
				w.close(ctx, d, closedDoor)

				return
			}
		case <-d.changed:
			// The API server does not end a watch when the right to it goes, and its authorizer learns of that a moment
			// after the watch told.
			for _, wait := range []time.Duration{firstKnock, 3 * firstKnock} {
				if !sleep(ctx, wait) {
					return
				}

				if err := d.knock(ctx); refusesEntry(err) {
					w.close(ctx, d, closedDoor)

					return
				}
			}
		}
	}
}

// isShut says whether a door that somebody was turned away from is closed. One that is known to be need not be asked twice.
func (w *Watches) isShut(ctx context.Context, d *door) bool {
	w.store.mu.RLock()
	known := d.closed != ""
	w.store.mu.RUnlock()

	return known || w.staysShut(ctx, d, firstKnock)
}

// staysShut knocks again, each time after a while, and says whether all of it was in vain. An API server that begins refuses
// whatever it is asked before its authorizer has read who may do what. Every door would close by that, every member leave the
// watch lists, and every operator restart twice.
func (w *Watches) staysShut(ctx context.Context, d *door, waits ...time.Duration) bool {
	for _, wait := range waits {
		if !sleep(ctx, wait) || !refusesEntry(d.knock(ctx)) {
			return false
		}
	}

	return true
}

func (w *Watches) close(ctx context.Context, d *door, why string) {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()

	if ctx.Err() == nil {
		w.store.forget(d)
		w.store.decide(d, why)
	}
}

// patience is how long a closed door waits because of all that are closed.
func (w *Watches) patience() time.Duration {
	w.store.mu.RLock()
	defer w.store.mu.RUnlock()

	var all time.Duration

	for _, d := range w.store.doors {
		if d.closed != "" {
			all += perDoor
		}
	}

	return all
}

// decide notes whether a door is open and tells whom it concerns. It is called with the store locked.
func (s *Store) decide(d *door, closed string) {
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

// behindDoors returns the namespaces that an operator namespace may see, and whether all of them are decided.
func (s *Store) behindDoors(reconcileKey string) (map[string]facts.Namespace, bool) {
	out := map[string]facts.Namespace{reconcileKey: {}}

	for key, d := range s.doors {
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

// withoutClosed takes out what is behind doors that are closed to an operator namespace: another one may see it.
func withoutClosed[T any](found map[string]T, namespaces map[string]facts.Namespace) {
	maps.DeleteFunc(found, func(name string, _ T) bool {
		ns, known := namespaces[name]

		return !known || ns.Closed != ""
	})
}

// within limits a sink to one namespace and to the life of its watch: the table belongs to all.
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

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
