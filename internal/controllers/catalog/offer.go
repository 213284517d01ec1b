package catalog

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// offer asks for a plan of each namespace with Subscriptions when something about the global catalogs has changed.
func (r *Reconciler) offer(ctx context.Context, found *resources) error {
	if found.namespace != r.AmbitNamespace {
		return nil
	}

	var now strings.Builder

	for _, s := range found.sources {
		reason, _ := s.Problem()
		fmt.Fprintf(&now, "%s %s %s %s %t\n", s.Name, s.UID, reason, s.Seen.ResourceVersion, s.known)
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	if r.offered == now.String() {
		return nil
	}

	list := scope.NewOLMList(subscriptionKind)
	if err := r.Cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Subscriptions: %w", err)
	}

	for i := range list.Items {
		r.Changes.KeyChanged(scope.Catalogs.In(list.Items[i].GetNamespace()))
	}

	r.offered = now.String()

	return nil
}
