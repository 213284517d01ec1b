package grant

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// DefaultScope is the name of the scope that is meant when none is named.
const DefaultScope = "namespacescope"

// What can be wrong with the choice of a scope.
var (
	ErrNoScope       = errors.New("there is no NamespaceScope")
	ErrSeveralScopes = errors.New("there are several NamespaceScopes")
	ErrTwoGroups     = errors.New("there are two NamespaceScopes")
	ErrScopeNotThere = errors.New("there is no such NamespaceScope")
)

// Groups are the API groups that have NamespaceScopes, the usual one first.
func Groups() []string {
	return []string{operatorv1.GroupVersion.Group, namespacescopev1alpha1.GroupVersion.Group}
}

// Wanted is a scope as --scope names it: NAME, or GROUP/NAME. An empty field was not given.
type Wanted struct{ Group, Name string }

// ParseWanted reads the value of --scope. It does not look at the name.
func ParseWanted(value string) (Wanted, error) {
	group, name, found := strings.Cut(value, "/")
	if !found {
		return Wanted{Name: value}, nil
	}

	if !slices.Contains(Groups(), group) {
		return Wanted{}, fmt.Errorf("%q is no group of NamespaceScopes; there is %s", group, strings.Join(Groups(), " and "))
	}

	return Wanted{group, name}, nil
}

// Owner is the wanted scope in a namespace, whether or not it exists. Without a group, it is of the usual one; without a name,
// there is none.
func (w Wanted) Owner(namespace string) scope.Owner {
	if w.Name == "" {
		return scope.Owner{}
	}

	return scope.Owner{Group: cmp.Or(w.Group, Groups()[0]), Kind: "NamespaceScope", Namespace: namespace, Name: w.Name}
}

// Means says whether a scope is one that is wanted.
func (w Wanted) Means(owner scope.Owner) bool {
	return (w.Group == "" || w.Group == owner.Group) && (w.Name == "" || w.Name == owner.Name)
}

// Choose picks the scope that is meant: the one that is named, else the one called namespacescope, else the only one. Only the
// user can choose between two with one name, of two groups. A scope that is being deleted counts: it may still need a grant, to
// remove what it projected.
func Choose(scopes []scope.Scope, to string, wanted Wanted) (*scope.Scope, error) {
	name := cmp.Or(wanted.Name, DefaultScope)

	meant := collect.Filter(collect.Pointers(scopes), func(s *scope.Scope) bool {
		return wanted.Means(s.Owner) && s.Owner.Name == name
	})
	if len(meant) == 1 {
		return meant[0], nil
	}

	names := toChooseFrom(scopes)

	switch {
	case len(meant) > 1:
		return nil, fmt.Errorf("%w called %s in namespace %s; choose one of %s/%s and %s/%s",
			ErrTwoGroups, name, to, meant[0].Owner.Group, name, meant[1].Owner.Group, name)
	case len(scopes) == 0 && wanted.Group != "":
		return nil, fmt.Errorf("%w of %s in namespace %s", ErrNoScope, wanted.Group, to)
	case len(scopes) == 0:
		return nil, fmt.Errorf("%w in namespace %s", ErrNoScope, to)
	case wanted.Name != "":
		return nil, fmt.Errorf("%w %s in namespace %s; there is %s",
			ErrScopeNotThere, Short(wanted.Owner(to)), to, names)
	case len(scopes) > 1:
		return nil, fmt.Errorf("%w in namespace %s and none is called %s; choose one of %s",
			ErrSeveralScopes, to, DefaultScope, names)
	default:
		return &scopes[0], nil
	}
}

// toChooseFrom returns the names of scopes, each so that it alone is meant by it.
func toChooseFrom(scopes []scope.Scope) string {
	names := make([]string, len(scopes))

	for i := range scopes {
		owner := scopes[i].Owner
		isTwice := slices.ContainsFunc(scopes, func(s scope.Scope) bool {
			return s.Owner.Name == owner.Name && s.Owner.Group != owner.Group
		})

		names[i] = Short(owner)
		if isTwice {
			names[i] = owner.Group + "/" + owner.Name
		}
	}

	slices.Sort(names)

	return strings.Join(names, ", ")
}

// With returns the members with a namespace added, and whether that changes anything.
func With(members []string, namespace string) ([]string, bool) {
	if slices.Contains(members, namespace) {
		return members, false
	}

	return append(slices.Clone(members), namespace), true
}

// Without returns the members with a namespace taken out, and whether that changes anything.
func Without(members []string, namespace string) ([]string, bool) {
	left := slices.DeleteFunc(slices.Clone(members), func(m string) bool { return m == namespace })

	return left, len(left) < len(members)
}
