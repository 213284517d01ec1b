package apply

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/writer"
)

// ErrNoIdentity is returned for a write without an identity. Ambit never takes its own instead (GHSA-4xh5-jcj2-ch8q in
// flux-operator: with an empty user no impersonation headers were sent, and the controller acted as itself).
var ErrNoIdentity = errors.New("a write needs an identity")

// Identity is who a write is made as, as package writer says. The zero value is nobody and is refused.
type Identity = writer.Identity

// Own is Ambit itself, for what it looks at before it writes, and for what is its own and no scope's.
func Own() Identity { return writer.Own() }

// IdentityError is ErrNoIdentity with the reason.
type IdentityError struct{ Why string }

// Error says why there is no identity, and what to do.
func (e *IdentityError) Error() string { return e.Why }

// Is says that this is an ErrNoIdentity.
func (e *IdentityError) Is(target error) bool { return target == ErrNoIdentity }

// as returns the client that writes with an identity. It is the only way to a client that writes for a scope.
func (a *Applier) as(id Identity) (client.Client, error) {
	switch why := id.Why(); {
	case !id.IsNobody():
	case why != "":
		return nil, &IdentityError{Why: why}
	default:
		return nil, ErrNoIdentity
	}

	a.connecting.Lock()
	defer a.connecting.Unlock()

	id = id.Alone()
	if kept, is := a.clients.Get(id); is {
		return kept.(client.Client), nil //nolint:forcetypeassert // Nothing else is in it.
	}

	made, err := a.connect(id)
	if err == nil {
		a.clients.Add(id, made)
	}

	return made, err
}

// maxClients bounds the clients that are kept. Whoever may write scopes decides how many accounts they name; making a client
// again costs no request.
const maxClients = 100

// impersonating returns what makes the client of an identity: one that impersonates it.
func impersonating(with *rest.Config, options client.Options) func(Identity) (client.Client, error) {
	return func(id Identity) (client.Client, error) {
		config := rest.CopyConfig(with)
		if !id.IsOwn() {
			config.Impersonate = rest.ImpersonationConfig{UserName: id.User()}
		}

		// A pace of its own for each: whoever has the API server refuse an account slows down nobody else.
		config.Wrap(newGate)
		config.Wrap(newBoundedReviews)

		c, err := client.New(config, options)
		if err != nil {
			return nil, fmt.Errorf("making a client that acts as %s: %w", id, err)
		}

		return c, nil
	}
}
