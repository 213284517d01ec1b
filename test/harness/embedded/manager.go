package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// Namespace and ServiceAccount are where and as whom config installs Ambit.
const (
	Namespace      = "ambit-system"
	ServiceAccount = "ambit"
)

// tokenLife is how long a manager's token is good for; longer than any test or demo.
const tokenLife = 24 * time.Hour

// Install applies a profile, such as cluster, as a user would.
func Install(ctx context.Context, c *Cluster, profile string) error {
	_, err := c.Kubectl(ctx, "apply", "--server-side", "--force-conflicts", "-k", filepath.Join(Root(), "config", profile))

	return err
}

// ConfigFor returns the config of a client that is a service account, with a token of its own.
func ConfigFor(ctx context.Context, admin *rest.Config, namespace, account string) (*rest.Config, error) {
	token, err := tokenFor(ctx, admin, namespace, account, nil)
	if err != nil {
		return nil, err
	}

	config := rest.AnonymousClientConfig(admin)
	config.BearerToken, config.WrapTransport = token, admin.WrapTransport

	return config, nil
}

// Kubeconfig writes a kubeconfig that authenticates as Ambit, with a token from the API server, and returns its path. dir is
// where it is put.
func Kubeconfig(ctx context.Context, admin *rest.Config, dir string) (string, error) {
	return kubeconfigFor(ctx, admin, dir, Namespace, ServiceAccount, nil)
}

// kubeconfigFor does so for any service account; with a pod, the token is bound to it, as those that a kubelet mounts are.
func kubeconfigFor(ctx context.Context, admin *rest.Config, dir, namespace, account string, pod *corev1.Pod) (string, error) {
	token, err := tokenFor(ctx, admin, namespace, account, pod)
	if err != nil {
		return "", err
	}

	name := account
	if pod != nil {
		name = pod.Name
	}

	config := api.NewConfig()
	config.Clusters["embedded"] = &api.Cluster{
		Server: admin.Host, CertificateAuthority: admin.CAFile, CertificateAuthorityData: admin.CAData,
	}
	config.AuthInfos[account] = &api.AuthInfo{Token: token}
	config.Contexts["embedded"] = &api.Context{Cluster: "embedded", AuthInfo: account, Namespace: namespace}
	config.CurrentContext = "embedded"

	path := filepath.Join(dir, namespace+"-"+name+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return "", fmt.Errorf("writing a kubeconfig: %w", err)
	}

	return path, nil
}

func tokenFor(ctx context.Context, admin *rest.Config, namespace, account string, pod *corev1.Pod) (string, error) {
	clients, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return "", fmt.Errorf("making a client: %w", err)
	}

	spec := authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenLife.Seconds()))}
	if pod != nil {
		spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID}
	}

	token, err := clients.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account,
		&authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("asking for a token of service account %s/%s: %w", namespace, account, err)
	}

	return token.Status.Token, nil
}

// Manager is "ambit manager" as a process of its own, with the rights of the installed service account: no image can run
// on the embedded cluster's nodes, which only play at running pods.
type Manager struct {
	// Kubeconfig is the kubeconfig of the service account, and Log the file that the manager logs into.
	Kubeconfig, Log string

	program   string
	arguments []string
	// past is how long the log was when the manager was started last.
	past    int64
	command *exec.Cmd
	done    chan error
}

// NewManager prepares a manager for a cluster on which a profile is installed. dir is where its log and its kubeconfig are
// put. program is the path of the ambit binary. arguments are further ones for "ambit manager".
func NewManager(ctx context.Context, admin *rest.Config, dir, program string, arguments ...string) (*Manager, error) {
	kubeconfig, err := Kubeconfig(ctx, admin, dir)
	if err != nil {
		return nil, err
	}

	return &Manager{
		Kubeconfig: kubeconfig, Log: filepath.Join(dir, "ambit.log"), program: program,
		arguments: append([]string{
			"manager", "--kubeconfig", kubeconfig,
			"--metrics-bind-address=127.0.0.1:0", "--metrics-secure=false", "--health-probe-bind-address=0",
		}, arguments...),
	}, nil
}

// asInstalled is an environment without what tells how garbage is collected: memory is a part of what Ambit promises.
func asInstalled(environment []string) []string {
	return slices.DeleteFunc(environment, func(variable string) bool { return strings.HasPrefix(variable, "GOGC=") })
}

// Start starts the manager and does not wait for anything. A manager that was stopped can be started again; its log goes
// on.
func (m *Manager) Start() error {
	log, err := os.OpenFile(m.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the manager's log: %w", err)
	}
	defer log.Close() //nolint:errcheck // The manager has a handle of its own.

	if m.past, err = log.Seek(0, io.SeekEnd); err != nil {
		return fmt.Errorf("looking how long the manager's log is: %w", err)
	}

	//nolint:noctx,gosec // Stop and Kill end it, and it runs what this repository built.
	m.command = exec.Command(m.program, m.arguments...)
	m.command.Env = append(asInstalled(os.Environ()), "OPERATOR_NAMESPACE="+Namespace)
	m.command.Stdout, m.command.Stderr = log, log
	// Ctrl-C on a terminal is for this process; on Linux the kernel ends the manager should this process be killed.
	m.command.SysProcAttr = managerAttributes()

	if err := m.command.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", m.program, err)
	}

	command, done := m.command, make(chan error, 1)
	m.done = done

	go func() { done <- command.Wait() }()

	return nil
}

// Works returns nil once the log says that one of the controllers works, since the manager was started last.
func (m *Manager) Works(controller string) error {
	log, err := os.ReadFile(m.Log)
	if err != nil {
		return fmt.Errorf("reading the manager's log: %w", err)
	}

	if works := fmt.Sprintf(`"Starting workers" controller=%q`, controller); !strings.Contains(string(log[m.past:]), works) {
		return fmt.Errorf("the manager's log does not say %s", works)
	}

	return nil
}

// PID is the process of the running manager, 0 while it does not run.
func (m *Manager) PID() int {
	if m.command == nil {
		return 0
	}

	return m.command.Process.Pid
}

// Stop asks the manager to end and waits for it.
func (m *Manager) Stop() error { return m.end(syscall.SIGTERM) }

// Kill ends the manager at once, at whatever line it is.
func (m *Manager) Kill() error { return m.end(syscall.SIGKILL) }

// Restart stops the manager and starts it with further arguments.
func (m *Manager) Restart(arguments ...string) error {
	if err := m.Stop(); err != nil {
		return err
	}

	m.arguments = append(m.arguments, arguments...)

	return m.Start()
}

func (m *Manager) end(signal os.Signal) error {
	if m.command == nil {
		return nil
	}

	if err := m.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending the manager: %w", err)
	}

	err := <-m.done
	m.command = nil

	var exit *exec.ExitError
	if errors.As(err, &exit) && !exit.Exited() {
		return nil // By the signal, as asked.
	}

	return err
}
