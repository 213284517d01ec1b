package writer

import (
	"fmt"

	"github.com/ambit-k8s/ambit/internal/scope"
)

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

// Own is Ambit itself. Manager decides who writes for what.
func Own() Identity { return Identity{own: true} }

// ServiceAccount is a delegate: the API server checks every write against what that account may do. Manager decides who writes
// for what.
func ServiceAccount(namespace, name string) Identity {
	if namespace == "" || name == "" {
		return nobody(fmt.Sprintf("service account %q of namespace %q is none", name, namespace))
	}

	return Identity{user: scope.AccountUser(namespace, name)}
}

// nobody is an identity that is refused, and says why there is none.
func nobody(why string) Identity { return Identity{why: why} }

// IsOwn says whether the identity is Ambit itself, at least in the operator namespace.
func (i Identity) IsOwn() bool { return i.own }

// IsNobody says whether nobody writes.
func (i Identity) IsNobody() bool { return !i.own && i.user == "" }

// User is the user that is impersonated; empty where Ambit writes as itself, or nobody does.
func (i Identity) User() string { return i.user }

// Why says why nobody writes; empty when somebody does, and where there is nothing to say.
func (i Identity) Why() string { return i.why }

// InMembers is who writes in members.
func (i Identity) InMembers() Identity {
	if i.inMembers == "" {
		return i
	}

	return Identity{user: i.inMembers, granted: true}
}

// IsGranted says whether the user stands for Ambit in members.
func (i Identity) IsGranted() bool { return i.granted }

// Alone is the identity reduced to who writes, which is all that tells clients apart.
func (i Identity) Alone() Identity { return Identity{own: i.own, user: i.user} }

// String names the identity for people.
func (i Identity) String() string {
	namespace, name, is := scope.AccountOfUser(i.user)

	switch {
	case i.own:
		return "Ambit itself"
	case is:
		return "service account " + namespace + "/" + name
	default:
		return "nobody"
	}
}
