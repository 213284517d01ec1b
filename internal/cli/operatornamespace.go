package cli

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// connect reaches the cluster with the caller's rights.
func connect(cluster genericclioptions.RESTClientGetter) (*session, *rest.Config, error) {
	config, err := cluster.ToRESTConfig()
	if err != nil {
		return nil, nil, noCluster(err)
	}

	// The API server warns about the finalizer's name at every write of a scope; the name is IBM's.
	config.WarningHandler = rest.NoWarnings{}
	config.UserAgent = "ambit/" + Version
	config.QPS = -1 // The API server's own fairness is the limit.

	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, nil, fmt.Errorf("starting: %w", err)
	}

	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, nil, fmt.Errorf("reaching the cluster: %w", oneLineError{err})
	}

	return &session{Client: c}, config, nil
}

// operatorNamespace reads what a plan needs to know of the scope's namespace.
func (w *session) operatorNamespace(ctx context.Context) (*grant.OperatorNamespace, error) {
	h := &grant.OperatorNamespace{}

	var forbidden []string

	for _, what := range []struct {
		resource string
		list     client.ObjectList
	}{
		{"roles", &h.Roles},
		{"rolebindings", &h.RoleBindings},
		{"serviceaccounts", &h.Accounts},
		{"pods", &h.Pods},
		{"deployments", &h.Deployments},
		{"statefulsets", &h.StatefulSets},
		{"daemonsets", &h.DaemonSets},
		{"jobs", &h.Jobs},
		{"cronjobs", &h.CronJobs},
	} {
		err := w.List(ctx, what.list, client.InNamespace(w.to))

		switch {
		case apierrors.IsForbidden(err):
			forbidden = append(forbidden, what.resource)
		case err != nil:
			return nil, fmt.Errorf("listing the %s of namespace %s: %w", what.resource, w.to, oneLineError{err})
		}
	}

	if len(forbidden) > 0 {
		return nil, fmt.Errorf("what the scope needs is unknown, because you may not list %s in namespace %s; "+
			"let somebody run this who may, such as an administrator of both namespaces", strings.Join(forbidden, ", "), w.to)
	}

	return h, nil
}

// planFrom plans as the manager does, from what was read.
func (w *session) planFrom(ctx context.Context, h *grant.OperatorNamespace, s *scope.Scope) (*plan.ScopePlan, error) {
	p := h.Plan(*s)

	missing, err := w.missingClusterRoles(ctx, p)
	if err != nil || len(missing) == 0 {
		return p, err
	}

	h.NoClusterRoles = missing

	return h.Plan(*s), nil
}
