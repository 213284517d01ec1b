package reading

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	namespacescopev1alpha1 "github.com/ambit-k8s/ambit/api/namespacescope/v1alpha1"
	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/snapshot"
)

// Naming is how a command is told which scope is meant, for errors that say so.
type Naming struct {
	// Before is what stands before the name.
	Before string
	// WithoutOne is what to do where there is no scope.
	WithoutOne string
}

// FindScope finds the scope of a namespace that is meant, among those of both groups. A group that the cluster does not know has
// no scopes.
func FindScope(ctx context.Context, c client.Reader, namespace string, wanted grant.Wanted, by Naming) (*scope.Scope, error) {
	var scopes []scope.Scope

	known := false

	for _, group := range grant.Groups() {
		if wanted.Group != "" && wanted.Group != group {
			continue
		}

		found, err := ScopesOf(ctx, c, namespace, group)

		switch {
		case meta.IsNoMatchError(err):
			continue
		case apierrors.IsForbidden(err):
			return nil, fmt.Errorf("you may not list the NamespaceScopes of namespace %s in group %s; ask its administrator for the "+
				"role view, name the scope and the other group: %sGROUP/NAME, or %s", namespace, group, by.Before, by.WithoutOne)
		case err != nil:
			return nil, fmt.Errorf("listing the NamespaceScopes of namespace %s: %w", namespace, command.OneLine(err))
		}

		known = true

		scopes = append(scopes, found...)
	}

	if !known {
		return nil, snapshot.ErrNotInstalled
	}

	s, err := grant.Choose(scopes, namespace, wanted)

	switch {
	case errors.Is(err, grant.ErrNoScope):
		return nil, fmt.Errorf("%w; create it first, or %s", err, by.WithoutOne)
	case errors.Is(err, grant.ErrTwoGroups):
		return nil, fmt.Errorf("%w; give %sGROUP/NAME", err, by.Before)
	case errors.Is(err, grant.ErrSeveralScopes), errors.Is(err, grant.ErrScopeNotThere):
		return nil, fmt.Errorf("%w; give %sNAME", err, by.Before)
	default:
		return s, err
	}
}

// ScopesOf are the NamespaceScopes of a namespace, or without one of the whole cluster, that are of one of the groups.
func ScopesOf(ctx context.Context, c client.Reader, namespace, group string) ([]scope.Scope, error) {
	var list client.ObjectList = &operatorv1.NamespaceScopeList{}
	if group == namespacescopev1alpha1.GroupVersion.Group {
		list = &namespacescopev1alpha1.NamespaceScopeList{}
	}

	if err := c.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err //nolint:wrapcheck // Whoever asks says what was being done.
	}

	var scopes []scope.Scope

	for _, obj := range snapshot.Objects(list) {
		if s, is := compile.AnyNamespaceScope(obj); is {
			scopes = append(scopes, s)
		}
	}

	return scopes, nil
}
