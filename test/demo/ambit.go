package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/util/wait"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// install installs Ambit as anybody would, and runs its manager.
func (s *stage) install(ctx context.Context, k *kubectl, flags ...string) error {
	s.screen.sayf("Installing Ambit:")
	s.screen.command("kubectl apply --server-side -k config/cluster")

	out, err := k.run(ctx, "apply", "--server-side", "-k", "config/cluster")
	if err != nil {
		return err
	}

	s.screen.block(fmt.Sprintf("%d objects applied", strings.Count(out, "\n")))

	w, err := newWorld(s.kubeconfig)
	if err != nil {
		return err
	}

	if err := w.waitUntilServed(ctx); err != nil {
		return err
	}

	kubeconfig, err := embedded.Kubeconfig(ctx, w.config, s.dir)
	if err != nil {
		return err
	}

	return s.startManager(kubeconfig, flags)
}

// waitUntilServed waits until the API server knows NamespaceScopes.
func (w *world) waitUntilServed(ctx context.Context) error {
	var last error

	err := wait.PollUntilContextTimeout(ctx, pause, patience, true, func(ctx context.Context) (bool, error) {
		last = w.List(ctx, &operatorv1.NamespaceScopeList{})

		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("waiting until NamespaceScopes are served: %w (%w)", err, last)
	}

	return nil
}

// startManager runs the manager here, because no container runs on the nodes of the embedded cluster.
func (s *stage) startManager(kubeconfig string, flags []string) error {
	log, err := os.Create(s.managerLog())
	if err != nil {
		return fmt.Errorf("writing the manager's log: %w", err)
	}
	defer log.Close() //nolint:errcheck // The manager has a handle of its own.

	command := embedded.WithLifeline(embedded.Program("ambit"), append([]string{
		"manager", "--kubeconfig=" + kubeconfig, "--metrics-bind-address=127.0.0.1:0", "--metrics-secure=false",
		"--health-probe-bind-address=0",
	}, flags...)...)
	command.Env = s.environment("OPERATOR_NAMESPACE=" + embedded.Namespace)
	command.Stdout, command.Stderr = log, log

	if s.manager, err = embedded.StartProcess("the manager", command, func(err error) { s.end(err) }); err != nil {
		return err
	}

	s.screen.command(strings.Join(append([]string{"ambit manager"}, flags...), " "))
	s.screen.block("The cluster is real, its nodes are not: no container runs there, not even Ambit's. So the\n" +
		"manager runs here, logged in as the service account " + embedded.Namespace + "/" + embedded.ServiceAccount +
		": it may do what the\ninstalled Ambit may do, and nothing more.")

	return nil
}
