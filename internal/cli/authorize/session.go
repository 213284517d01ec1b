package authorize

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// session is the cluster as the caller may see and change it.
type session struct {
	client.Client

	namespace, to string
	// dry says that the API server keeps no write, and only says whether it would accept it.
	dry bool
}

// trying is the session in which everything is a dry run.
func (w *session) trying() *session {
	return &session{Client: client.NewDryRunClient(w.Client), namespace: w.namespace, to: w.to, dry: true}
}

// connect connects, and makes sure that namespaces are there. Those that are being deleted are, to whoever takes something back:
// what was granted there holds until it is gone, and may be what keeps the namespace.
func (o *GrantOptions) connect(ctx context.Context, revokes bool, namespaces ...string) (*session, error) {
	c, _, err := command.Connect(o.Cluster)
	if err != nil {
		return nil, err
	}

	w := &session{Client: client.WithFieldOwner(c, grant.FieldManager), namespace: o.Namespace, to: o.To}

	for _, name := range namespaces {
		if err := w.mustExist(ctx, name, revokes); err != nil {
			return nil, err
		}
	}

	return w, nil
}

// mustExist fails for a namespace that is not there. A caller without the right to see it learns from their first read or write
// in it whether it exists.
func (w *session) mustExist(ctx context.Context, name string, revokes bool) error {
	ns := &corev1.Namespace{}

	err := w.Get(ctx, client.ObjectKey{Name: name}, ns)

	switch {
	case apierrors.IsNotFound(err):
		return w.missing(name, revokes)
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return fmt.Errorf("looking for namespace %s: %w", name, command.OneLine(err))
	case ns.DeletionTimestamp != nil && !revokes:
		return fmt.Errorf("namespace %s is being deleted; wait until it is gone and create it again", name)
	default:
		return nil
	}
}

// missing is the error for a namespace that is not there. Grants to one outlive it.
func (w *session) missing(name string, revokes bool) error {
	next := "create it first, or correct the name"

	switch {
	case revokes && name == w.namespace:
		next = "so nothing is granted there; correct the name"
	case revokes:
		next = "take back what it was granted with --grant-only, or correct the name"
	}

	return fmt.Errorf("namespace %s does not exist; %s", name, next)
}

// plan reads the scope's namespace, and plans as the manager does.
func (w *session) plan(ctx context.Context, s *scope.Scope) (*plan.ScopePlan, error) {
	f, err := reading.ReadNamespace(ctx, w.Client, w.to)
	if err != nil {
		return nil, err
	}

	f.Namespaces = map[string]facts.Namespace{w.namespace: {}}

	return reading.PlanOne(ctx, w.Client, f, s)
}
