package controllers

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/controllers/namespacescope"
)

// DefaultScopeName is the name of the scope that Ambit makes at the start, with --default-scope.
const DefaultScopeName = "namespacescope"

// defaultScope makes a scope in Ambit's own namespace, with that namespace as its only member, if there is none. It is made
// here and not by the manifests, because one kubectl apply cannot make a kind and an object of it.
type defaultScope struct {
	scopes    *ownKinds
	applier   *apply.Applier
	namespace string
	// others says that further namespaces are served, too.
	others bool
}

// Start makes the scope, once it is known whether there is one. If it cannot, it logs that and ends the manager: what was
// installed would do nothing. Where Ambit has no right to make it and serves other namespaces, too, it goes on serving those.
func (d *defaultScope) Start(ctx context.Context) error {
	// Without its definition nothing can be made; the rest is served meanwhile.
	if !d.scopes.waitFor(ctx, d.namespace, &operatorv1.NamespaceScope{}) {
		return nil
	}

	some, err := namespacescope.HasScope(ctx, d.scopes, d.namespace)
	if err != nil || some {
		return err
	}

	nss := &operatorv1.NamespaceScope{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: DefaultScopeName},
		Spec:       operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{d.namespace}},
	}

	_, err = d.applier.CreateOnce(ctx, apply.Own(), nss)
	if apierrors.IsForbidden(err) && d.others {
		log.FromContext(ctx).Error(err, "May not make the default scope; make one, or give --default-scope=false",
			"namespace", d.namespace)

		return nil
	}

	if err != nil {
		return fmt.Errorf("making the default scope: %w", err)
	}

	return nil
}

func addDefaultScope(m manager.Manager, scopes *ownKinds, applier *apply.Applier, s Settings) error {
	if !s.DefaultScope || len(s.Namespaces) > 0 && !slices.Contains(s.Namespaces, s.Namespace) {
		return nil
	}

	if err := m.Add(&defaultScope{
		scopes: scopes, applier: applier, namespace: s.Namespace, others: len(s.Namespaces) > 1,
	}); err != nil {
		return fmt.Errorf("adding the default scope: %w", err)
	}

	return nil
}
