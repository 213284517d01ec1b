package controllers

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
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
}

// Start makes the scope, once it is known whether there is one. If it cannot, because of a missing right, a quota or a webhook,
// it logs that once and tries again: other scopes are served meanwhile.
func (d *defaultScope) Start(ctx context.Context) error {
	// Without its definition nothing can be made; the rest is served meanwhile.
	if !d.scopes.waitFor(ctx, d.namespace, &operatorv1.NamespaceScope{}) {
		return nil
	}

	logged := ""
	backoff := wait.Backoff{Duration: time.Second, Factor: 2, Steps: 10, Cap: time.Minute}

	// It ends with the context, which is no failure.
	_ = backoff.DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		err := d.make(ctx)
		if err != nil && err.Error() != logged {
			logged = err.Error()
			log.FromContext(ctx).Error(err, "Cannot make the default scope, and tries again; make one, or give --default-scope=false",
				"namespace", d.namespace)
		}

		return err == nil, nil
	})

	return nil
}

func (d *defaultScope) make(ctx context.Context) error {
	some, err := namespacescope.HasScope(ctx, d.scopes, d.namespace)
	if err != nil || some {
		return err
	}

	_, err = d.applier.CreateOnce(ctx, apply.Own(), &operatorv1.NamespaceScope{
		ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: DefaultScopeName},
		Spec:       operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{d.namespace}},
	})

	return err
}

func addDefaultScope(m manager.Manager, scopes *ownKinds, applier *apply.Applier, s Settings) error {
	if !s.DefaultScope || len(s.Namespaces) > 0 && !slices.Contains(s.Namespaces, s.Namespace) {
		return nil
	}

	return addTo(m, &defaultScope{scopes: scopes, applier: applier, namespace: s.Namespace}, "the default scope")
}
