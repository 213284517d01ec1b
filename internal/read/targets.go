package read

import (
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// installer is the account that installs in a namespace, and what looks into targets as that account.
type installer struct {
	user   string
	client client.WithWatch
}

// readerOf is who looks into a target; nil for Ambit itself, which looks into the namespace of the group.
func (i installer) readerOf(target, namespace string) client.WithWatch {
	if target == namespace {
		return nil
	}

	return i.client
}

// Targets is Members for what is installed in a namespace: it says which namespaces have to be seen for that, and as which
// account of the namespace all but itself are looked into. What their owners granted lets that account in and nobody else;
// without an account only the namespace itself is seen.
func (w *Watches) Targets(namespace, account string, targets []string) error {
	if !w.namespaced {
		return nil
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	if w.running == nil {
		return nil // Nothing is known yet, so this is asked again.
	}

	key, is := scope.Installs.In(namespace), installer{}

	if account != "" {
		is.user = scope.AccountUser(namespace, account)
	}

	w.store.mu.Lock()
	defer w.store.mu.Unlock()

	if was := w.installers[namespace]; was.user != is.user {
		if is.user != "" && w.mayRead == nil {
			var err error
			if is.client, err = w.Impersonate(is.user); err != nil {
				return fmt.Errorf("making the client that looks into the targets of namespace %s: %w", namespace, err)
			}
		}

		w.installers[namespace] = is
		w.members(key, []string{namespace}) // What only the earlier account could read is forgotten.
	}

	if account == "" {
		targets = slices.DeleteFunc(slices.Clone(targets), func(name string) bool { return name != namespace })
	}

	w.members(key, targets)

	return nil
}
