package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

const (
	ambitNamespace = "ambit-system"
	ambitAccount   = "ambit"
	// tokenLife outlives every make run.
	tokenLife = 30 * 24 * time.Hour
	// restartInterval is shorter than the default, because nobody wants to watch a play pause.
	restartInterval = time.Second
)

// install installs Ambit as anybody would, and runs its manager.
func (s *stage) install(ctx context.Context, k *kubectl) error {
	s.screen.say("Installing Ambit:")
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

	kubeconfig, err := s.logIn(ctx, w)
	if err != nil {
		return err
	}

	return s.startManager(kubeconfig)
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

// logIn writes a kubeconfig with a token of Ambit's own service account.
func (s *stage) logIn(ctx context.Context, w *world) (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ambitNamespace, Name: ambitAccount}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(tokenLife.Seconds())),
	}}

	if err := w.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("asking for a token of %s/%s: %w", ambitNamespace, ambitAccount, err)
	}

	path := filepath.Join(s.folder, "manager.kubeconfig")
	if err := clientcmd.WriteToFile(tokenConfig(w.config, request.Status.Token), path); err != nil {
		return "", fmt.Errorf("writing a kubeconfig for the manager: %w", err)
	}

	return path, nil
}

func tokenConfig(admin *rest.Config, token string) clientcmdapi.Config {
	return clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"embedded": {
			Server: admin.Host, CertificateAuthorityData: admin.CAData, CertificateAuthority: admin.CAFile,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{ambitAccount: {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"embedded": {Cluster: "embedded", AuthInfo: ambitAccount}},
		CurrentContext: "embedded",
	}
}

// startManager runs the manager here, because no container runs on the nodes of the embedded cluster.
func (s *stage) startManager(kubeconfig string) error {
	log, err := os.Create(s.managerLog())
	if err != nil {
		return fmt.Errorf("writing the manager's log: %w", err)
	}
	defer log.Close()

	//nolint:noctx // It ends by its lifeline, after which it may finish what it does.
	command := exec.Command("/bin/sh", "-c", withLifeline, "sh", s.program("ambit"), "manager",
		"--kubeconfig="+kubeconfig, "--restart-interval="+restartInterval.String(),
		"--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=0")
	command.Env = s.environment("OPERATOR_NAMESPACE=" + ambitNamespace)
	command.Stdout, command.Stderr = log, log

	if s.manager, err = start("the manager", command, func(err error) { s.end(err) }); err != nil {
		return err
	}

	s.screen.command("ambit manager --restart-interval=" + restartInterval.String())
	s.screen.block("The cluster is real, its nodes are not: no container runs there, not even Ambit's. So the\n" +
		"manager runs here, logged in as the service account " + ambitNamespace + "/" + ambitAccount +
		": it may do what the\ninstalled Ambit may do, and nothing more.")

	return nil
}
