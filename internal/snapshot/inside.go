package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// ErrElsewhere is returned where it depends on objects that are not in a namespace whether a scope reaches it.
var ErrElsewhere = errors.New("whether a scope reaches the namespace depends on others")

// Reaching says which scopes a namespace has to do with: those that select it, that selected it before, that are declared there,
// or whose marks objects there bear. With these come the others of their operator namespaces, which are planned with them.
func (r *Reader) Reaching(
	ctx context.Context, scopes []scope.Scope, namespace string, there ...client.Object,
) ([]bool, error) {
	chosen, err := r.labelsOf(ctx, namespace)
	if err != nil {
		return nil, err
	}

	out, concerned := make([]bool, len(scopes)), map[string]bool{}

	for i := range scopes {
		s := &scopes[i]
		if s.Members.Everywhere && s.Members.Unconfirmed {
			return nil, ErrElsewhere
		}

		marked := func(obj client.Object) bool { return read.IsMarkedFor(obj, s) }
		if out[i] = reaches(s, namespace, chosen) || slices.ContainsFunc(there, marked); out[i] && !s.Explicit() {
			concerned[s.Key.Namespace] = true
		}
	}

	for i := range scopes {
		out[i] = out[i] || !scopes[i].Explicit() && concerned[scopes[i].Key.Namespace]
	}

	return out, nil
}

func reaches(s *scope.Scope, namespace string, of labels.Set) bool {
	m := &s.Members

	return m.Everywhere || m.Cluster || m.Kept || s.Mirrors(namespace) ||
		slices.Contains(m.Named, namespace) || slices.Contains(s.Reported, namespace) || slices.Contains(s.Failed, namespace) ||
		m.Selector != nil && of != nil && m.Selector.Matches(of)
}

// labelsOf are those of a namespace; nil where it is not there, or may not be looked up.
func (r *Reader) labelsOf(ctx context.Context, name string) (labels.Set, error) {
	ns := &corev1.Namespace{}

	switch err := r.Get(ctx, client.ObjectKey{Name: name}, ns); {
	case err == nil:
		if ns.Labels == nil {
			return labels.Set{}, nil // It has none, which a selector can ask for.
		}

		return ns.Labels, nil
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return nil, nil //nolint:nilnil // As documented; a refusal is remembered when the namespace's facts are read.
	default:
		return nil, fmt.Errorf("looking for namespace %s: %w", name, err)
	}
}

// FactsIn reads what is known of one namespace, and of the operator namespaces of these scopes: what other members hold is not
// read, and nothing is listed in the whole cluster that is in namespaces.
func (r *Reader) FactsIn(ctx context.Context, scopes []scope.Scope, namespace string) (*Snapshot, error) {
	s := r.newSnapshot(scopes)

	names := append([]string{namespace}, operatorNamespacesOf(scopes)...)
	names = slices.Compact(slices.Sorted(slices.Values(names)))

	if err := r.lookUp(ctx, s, names); err != nil {
		return nil, err
	}

	jobs := append(r.besides(ctx, s, scopes),
		func() error { return r.rbacIn(ctx, s, names, &rbacv1.RoleList{}, "roles") },
		func() error { return r.rbacIn(ctx, s, names, &rbacv1.RoleBindingList{}, "rolebindings") })

	return s, r.Each(ctx, "reading the namespace", len(jobs), func(i int) error { return jobs[i]() })
}
