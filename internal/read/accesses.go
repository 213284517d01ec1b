package read

import (
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// put adds an access.
func (s *Store) put(d *access) {
	if s.accesses[d.reconcileKey] == nil {
		s.accesses[d.reconcileKey] = map[string]*access{}
	}

	s.accesses[d.reconcileKey][d.namespace] = d
}

// setClosed notes why an access is closed; empty when it is not.
func (s *Store) setClosed(d *access, why string) {
	of := d.reconcileKey.Namespace

	if d.closed != "" {
		s.closed[of]--
	}

	if d.closed = why; why != "" {
		s.closed[of]++
	}

	if s.closed[of] == 0 {
		delete(s.closed, of)
	}
}

// decide notes whether an access is open and notifies whom it concerns. It is called with the store locked.
func (s *Store) decide(d *access, closed string) {
	if d.decided && d.closed == closed {
		return
	}

	first := !d.decided
	before := facts.Namespace{Closed: d.closed}
	d.decided = true
	s.setClosed(d, closed)
	after := facts.Namespace{Closed: d.closed}

	if first {
		s.listener.KeyChanged(d.reconcileKey)
	}

	s.listener.NamespaceChanged(d.namespace, &before, &after)
}

// forget takes out what a closed access has brought, unless it is still seen for another reconcile key.
func (s *Store) forget(closed *access) {
	for _, of := range s.accesses {
		if d := of[closed.namespace]; d != nil && d != closed && d.isOpen() {
			return
		}
	}

	s.projected.forget(closed.namespace)
}

// inAccessible returns the namespaces that may be seen for a reconcile key, and whether all of them are decided.
func (s *Store) inAccessible(reconcileKey scope.Key) (map[string]facts.Namespace, bool) {
	out := map[string]facts.Namespace{}
	if reconcileKey.Family == scope.NamespaceScopes {
		out[reconcileKey.Namespace] = facts.Namespace{}
	}

	for name, d := range s.accesses[reconcileKey] {
		if !d.decided {
			return nil, false
		}

		out[name] = facts.Namespace{Closed: d.closed}
	}

	return out, true
}
