package apply

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// serviceAccountPrefix begins the user name of every service account.
const serviceAccountPrefix = "system:serviceaccount:"

// ErrNoIdentity is returned for a write without an identity. Ambit never takes its own instead (GHSA-4xh5-jcj2-ch8q in
// flux-operator: with an empty user no impersonation headers were sent, and the controller acted as itself).
var ErrNoIdentity = errors.New("a write needs an identity")

// Identity is who a write is made as. The zero value is nobody and is refused.
type Identity struct {
	own  bool
	user string
	// why says why it is nobody.
	why string
	// inMembers is the user instead of Ambit itself in members; empty when it is Ambit itself there, too.
	inMembers string
	// granted says that the user stands for Ambit in members.
	granted bool
}

// Own is Ambit itself.
func Own() Identity { return Identity{own: true} }

// OwnWith is Ambit itself in an operator namespace, and in members a service account of that namespace, to which their owners
// granted: what they granted for another operator namespace is of no use to it.
func OwnWith(namespace, name string) Identity {
	return Identity{own: true, inMembers: scope.AccountUser(namespace, name)}
}

// member is who writes in members.
func (i Identity) member() Identity {
	if i.inMembers == "" {
		return i
	}

	return Identity{user: i.inMembers, granted: true}
}

// ServiceAccount is a delegate: the API server checks every write against what that account may do.
func ServiceAccount(namespace, name string) (Identity, error) {
	if namespace == "" || name == "" {
		return Identity{}, fmt.Errorf("%w: service account %q in namespace %q", ErrNoIdentity, name, namespace)
	}

	return Identity{user: scope.AccountUser(namespace, name)}, nil
}

// Nobody is an identity that is refused, and says why there is none.
func Nobody(why string) Identity { return Identity{why: why} }

// IdentityError is ErrNoIdentity with the reason.
type IdentityError struct{ Why string }

// Error says why there is no identity, and what to do.
func (e *IdentityError) Error() string { return e.Why }

// Is says that this is an ErrNoIdentity.
func (e *IdentityError) Is(target error) bool { return target == ErrNoIdentity }

// IsOwn says whether the identity is Ambit itself.
func (i Identity) IsOwn() bool { return i.own }

// String names the identity for users.
func (i Identity) String() string {
	switch {
	case i.own:
		return "Ambit itself"
	case i.user != "":
		return "service account " + strings.Replace(strings.TrimPrefix(i.user, serviceAccountPrefix), ":", "/", 1)
	default:
		return "nobody"
	}
}

// as returns the client that writes with an identity. It is the only way to a client that writes for a scope.
func (a *Applier) as(id Identity) (client.Client, error) {
	if !id.own && id.user == "" {
		if id.why != "" {
			return nil, &IdentityError{Why: id.why}
		}

		return nil, ErrNoIdentity
	}

	id = Identity{own: id.own, user: id.user} // Who writes is all that tells clients apart.

	return a.clients.get(id, func() (client.Client, error) { return a.connect(id) })
}

// impersonating returns what makes the client of an identity: one that impersonates it.
func impersonating(with *rest.Config, options client.Options) func(Identity) (client.Client, error) {
	return func(id Identity) (client.Client, error) {
		config := rest.CopyConfig(with)
		if !id.own {
			config.Impersonate = rest.ImpersonationConfig{UserName: id.user}
		}

		// A pace of its own for each: whoever has the API server refuse an account slows down nobody else.
		config.Wrap(newGate)

		c, err := client.New(config, options)
		if err != nil {
			return nil, fmt.Errorf("making a client that acts as %s: %w", id, err)
		}

		return c, nil
	}
}
