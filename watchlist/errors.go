package watchlist

import (
	"errors"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ErrNotInScope is what a read returns for a namespace that is not in the list:
//
//	if errors.Is(err, watchlist.ErrNotInScope) { … }
//
// It is not a NotFound, because the object may well exist. It is terminal for controller-runtime, so that a reconciler that
// returns it is not called again for what it no longer serves.
var ErrNotInScope = errors.New("the namespace is not in scope")

func notInScope(namespace string) error {
	return reconcile.TerminalError(fmt.Errorf("namespace %s: %w", namespace, ErrNotInScope)) //nolint:wrapcheck // it is the wrap
}
