package read

import (
	"context"
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// renewAfter is how long a namespace of which something was left out is left as it is once there is room for that. Whoever writes
// there could have it listed all the time otherwise.
const renewAfter = 30 * time.Second

// records are those of one namespace that is watched for a reconcile key.
type records struct {
	// kinds fill the tables, by the type of their objects.
	kinds map[reflect.Type]kind

	// stop ends the watches, which run within running; waiting counts those that have not listed yet.
	stop    context.CancelFunc
	running context.Context //nolint:containedctx // The life of the namespace, within which further watches come and go.
	waiting int

	// allowances bound what is remembered of each kind. bounded is called when they leave out more or less; renewing says that the
	// namespace is about to be listed again.
	allowances allowances
	bounded    func()
	renewing   bool
}

// records are those for a reconcile key; nil where nothing is watched for it.
func (s *Store) records(key scope.Key) *records {
	if h := s.operatorNamespaces[key.Namespace]; h != nil && key.Family == scope.NamespaceScopes {
		return &h.records
	}

	if in := s.installs[key.Namespace]; in != nil && key.Family == scope.Installs {
		return &in.records
	}

	return nil
}

// kindsOf are the tables into which an object belongs in its namespace, for whichever keys that is watched.
func (s *Store) kindsOf(obj client.Object) []kind {
	var out []kind

	for _, family := range []scope.Family{scope.NamespaceScopes, scope.Installs} {
		if in := s.records(family.In(obj.GetNamespace())); in != nil && in.kind(obj) != nil {
			out = append(out, in.kind(obj))
		}
	}

	return out
}

// kind is that of an object; nil where there is no table of such objects.
func (in *records) kind(obj client.Object) kind { return in.kinds[reflect.TypeOf(obj)] }

// changed asks for a plan for a reconcile key, if anything is watched for it.
func (s *Store) changed(key scope.Key) {
	if s.records(key) != nil {
		s.listener.KeyChanged(key)
	}
}

// Watch makes sure that a namespace is watched for a reconcile key: the operator namespace of scopes, or one in which something
// is installed. It does not wait; the listener is notified when everything there is listed.
func (w *Watches) Watch(key scope.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.running == nil {
		w.pending[key] = struct{}{}

		return
	}

	w.begin(key)
}

// Release ends the watches of a namespace that holds nothing any more for which it was watched, and forgets what they brought.
func (w *Watches) Release(key scope.Key) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.pending, key)

	w.store.mu.Lock()
	defer w.store.mu.Unlock()

	w.end(key)

	if key.Family == scope.Installs {
		return // What is left in its targets has to be found.
	}

	for _, d := range w.store.accesses[key] {
		w.leave(d)
	}
}

// end is called with the store locked.
func (w *Watches) end(key scope.Key) {
	in := w.store.records(key)
	if in == nil {
		return
	}

	in.stop()

	if key.Family == scope.Installs {
		delete(w.store.installs, key.Namespace)
	} else {
		delete(w.store.operatorNamespaces, key.Namespace)
	}
}

func (w *Watches) begin(key scope.Key) {
	s := w.store

	s.mu.Lock()
	defer s.mu.Unlock()

	if s.records(key) != nil {
		return
	}

	var in *records

	changed := func() {
		if in.waiting == 0 {
			s.listener.KeyChanged(key)
		}
	}

	if key.Family == scope.Installs {
		s.installs[key.Namespace] = newInstalls(changed)
	} else {
		s.operatorNamespaces[key.Namespace] = newOperatorNamespace(changed)
	}

	in = s.records(key)
	in.running, in.stop = context.WithCancel(w.running)

	in.bounded = func() {
		if in.waiting > 0 || in.running.Err() != nil {
			return
		}

		s.listener.KeyChanged(key)

		if in.allowances.hasRoom() && !in.renewing {
			in.renewing = true
			time.AfterFunc(renewAfter, func() { w.renew(key, in) })
		}
	}

	listed := func() {
		in.waiting--
		changed()
	}

	// The store is locked, so that no watch counts as listed before the last one was started.
	for _, k := range in.kinds {
		k.watch(w, in, listed, client.InNamespace(key.Namespace))
	}
}

// renew lists a namespace again.
func (w *Watches) renew(key scope.Key, in *records) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.store.mu.Lock()
	is := w.store.records(key) == in && in.running.Err() == nil

	if is {
		w.end(key)
	}
	w.store.mu.Unlock()

	if is {
		w.begin(key)
	}
}
