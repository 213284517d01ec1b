package consent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// DefaultScope is the name of the scope that is meant when none is named.
const DefaultScope = "namespacescope"

// What can be wrong with the choice of a scope.
var (
	ErrNoScope        = errors.New("there is no NamespaceScope")
	ErrSeveralScopes  = errors.New("there are several NamespaceScopes")
	ErrScopeNotThere  = errors.New("there is no such NamespaceScope")
	errScopeGoingAway = errors.New("the NamespaceScope is being deleted")
)

// Choose picks the scope that is meant: the one that is named, else the one called namespacescope, else the only one.
func Choose(scopes []operatorv1.NamespaceScope, to, name string) (*operatorv1.NamespaceScope, error) {
	names := make([]string, 0, len(scopes))
	wanted := name

	for i := range scopes {
		names = append(names, scopes[i].Name)
	}

	slices.Sort(names)

	if wanted == "" {
		wanted = DefaultScope
	}

	if i := slices.IndexFunc(scopes, func(s operatorv1.NamespaceScope) bool { return s.Name == wanted }); i >= 0 {
		return alive(&scopes[i])
	}

	switch {
	case len(scopes) == 0:
		return nil, fmt.Errorf("%w in namespace %s", ErrNoScope, to)
	case name != "":
		return nil, fmt.Errorf("%w %s in namespace %s; there is %s", ErrScopeNotThere, name, to, strings.Join(names, ", "))
	case len(scopes) > 1:
		return nil, fmt.Errorf("%w in namespace %s and none is called %s; choose one of %s",
			ErrSeveralScopes, to, DefaultScope, strings.Join(names, ", "))
	default:
		return alive(&scopes[0])
	}
}

func alive(nss *operatorv1.NamespaceScope) (*operatorv1.NamespaceScope, error) {
	if nss.DeletionTimestamp != nil {
		return nil, fmt.Errorf("%w: %s/%s", errScopeGoingAway, nss.Namespace, nss.Name)
	}

	return nss, nil
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
