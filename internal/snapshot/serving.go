package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/read"
)

// Serving is whether OLM's kinds are the manager's to serve.
type Serving struct {
	// Ours says that they are, and Known whether that is known. What is not known is not ours.
	Ours, Known bool
	// Why says why they are not; empty where they are.
	Why string
	// Revokes says that the manager takes back what it made for them where they are not its to serve.
	Revokes bool
}

// ServesInstalls says whether OLM's kinds are the manager's to serve, as the manager finds out, with what the caller may list.
func (r *Reader) ServesInstalls(ctx context.Context, m *predict.Manager) (Serving, error) {
	serving := cmp.Or(read.Serving(m.OperatorGroups), read.ServeAuto)

	// Whether OLM serves them cannot be read there, so the administrator has to say it.
	if len(m.Namespaces) > 0 && serving != read.ServeAlways {
		return Serving{Known: true, Why: "this Ambit serves single namespaces, and no OperatorGroups"}, nil
	}

	ownership := read.NewOwnership(nil, serving, m.OLMNamespaces...)

	err := ownership.Look(func(namespace string) ([]appsv1.Deployment, bool, error) {
		var found appsv1.DeploymentList

		listed, err := r.Need(ctx, &found, "deployments", namespace)

		return found.Items, listed == Complete, err
	})
	if err != nil {
		return Serving{}, fmt.Errorf("looking for OLM's own controllers: %w", err)
	}

	out := Serving{Revokes: len(m.Namespaces) == 0}
	out.Ours, out.Known = ownership.Ours()

	switch running := ownership.Controllers(); {
	case out.Ours:
	case serving == read.ServeNever:
		out.Why = "this Ambit is told by --operator-groups=disabled to leave OperatorGroups alone"
	case len(running) > 0:
		out.Why = fmt.Sprintf("OLM's own controller %s runs, so Ambit leaves OperatorGroups and what they install to it", running[0])
	default:
		out.Why = fmt.Sprintf("whether OLM's own controllers run, to which Ambit would leave OperatorGroups and what they install, is "+
			"unknown: you may not list deployments in namespace %s", strings.Join(ownership.Unlisted(), ", nor in "))
	}

	return out, nil
}
