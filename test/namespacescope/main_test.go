// Package namespacescope_test describes how a NamespaceScope behaves on a real API server, with the program that users
// run, under the rights that it is installed with.
package namespacescope_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/testcluster"
)

const (
	ambitNamespace = "ambit-system"
	ambitAccount   = "ambit"
	scopeLabel     = "ambit.dev/scope"
)

// system is what all tests share: the cluster, and the one manager that serves it.
type system struct {
	client client.WithWatch
	config *rest.Config
	folder string
	log    journal

	manager *exec.Cmd
	exited  chan error

	mu         sync.Mutex
	namespaces []client.Object
}

var shared struct {
	once sync.Once
	*system
}

// TestMain stops the manager after the last test, and fails when anything is left of the scopes that the tests made.
func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for the cluster more than they compute. By default only as many run at once as there are cores.
	if f := flag.Lookup("test.parallel"); f != nil && f.Value.String() == f.DefValue {
		_ = flag.Set("test.parallel", "24")
	}

	code := m.Run()

	if s := shared.system; s != nil {
		if err := s.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL:", err)

			code = max(code, 1)
		}
	}

	os.Exit(code)
}

// theSystem installs Ambit and starts its manager at the first call.
func theSystem(t *testing.T) *system {
	t.Helper()

	shared.once.Do(func() {
		s := &system{config: testcluster.Config(t)}

		testcluster.InstallCRDs(t, s.config)

		if err := s.start(testcluster.Kubeconfig(t)); err != nil {
			t.Fatalf("starting the manager: %v", err)
		}

		shared.system = s
	})

	if shared.system == nil {
		t.Fatal("the manager could not be started; see the first test")
	}

	return shared.system
}

func (s *system) start(kubeconfig string) error {
	scheme := clientgoscheme.Scheme
	if err := operatorv1.AddToScheme(scheme); err != nil {
		return err
	}

	var err error
	if s.client, err = client.NewWithWatch(s.config, client.Options{Scheme: scheme}); err != nil {
		return err
	}

	if s.folder, err = os.MkdirTemp("", "ambit-namespacescope-"); err != nil {
		return err
	}

	program := filepath.Join(s.folder, "ambit")
	if err := run(exec.Command("go", "build", "-o", program, "./cmd/ambit")); err != nil {
		return err
	}

	// Conflicts are forced because other packages of tests may install the same files at the same time.
	install := exec.Command(testcluster.Kubectl(), "--kubeconfig", kubeconfig,
		"apply", "--server-side", "--force-conflicts", "-k", "config/cluster")
	if err := run(install); err != nil {
		return err
	}

	if err := s.refusals(); err != nil {
		return err
	}

	credentials, err := s.credentials()
	if err != nil {
		return err
	}

	return s.run(program, credentials)
}

func run(c *exec.Cmd) error {
	c.Dir = testcluster.Root()

	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", c, err, out)
	}

	return nil
}

// credentials writes a kubeconfig for Ambit's own service account, so that the tests see what its RBAC lets it do.
func (s *system) credentials() (string, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ambitNamespace, Name: ambitAccount}}
	token := &authenticationv1.TokenRequest{}

	if err := s.client.SubResource("token").Create(context.Background(), account, token); err != nil {
		return "", fmt.Errorf("asking for a token of the manager's account: %w", err)
	}

	path := filepath.Join(s.folder, "kubeconfig")

	return path, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"c": {
			Server:                   s.config.Host,
			CertificateAuthorityData: s.config.CAData,
			CertificateAuthority:     s.config.CAFile,
		}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"a": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "a"}},
		CurrentContext: "x",
	}, path)
}

func (s *system) run(program, kubeconfig string) error {
	s.manager = exec.Command(program, "manager", "--kubeconfig", kubeconfig,
		"--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=0")
	s.manager.Env = append(os.Environ(), "OPERATOR_NAMESPACE="+ambitNamespace)
	s.manager.Stdout, s.manager.Stderr = &s.log, &s.log

	if err := s.manager.Start(); err != nil {
		return err
	}

	s.exited = make(chan error, 1)
	go func() { s.exited <- s.manager.Wait() }()

	return nil
}

// finally has a namespace deleted after the last test. Before that it would keep Kubernetes' own controllers busy, which
// the tests wait for.
func (s *system) finally(ns client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.namespaces = append(s.namespaces, ns)
}

// stop waits until the scopes of all tests are gone, and ends the manager. What bears Ambit's label after that was left
// behind.
func (s *system) stop() error {
	defer os.RemoveAll(s.folder)

	var left []string

	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(interval) {
		if left = s.leftovers(); len(left) == 0 {
			break
		}
	}

	for _, ns := range s.namespaces {
		if err := s.client.Delete(context.Background(), ns); client.IgnoreNotFound(err) != nil {
			return err
		}
	}

	_ = s.manager.Process.Signal(os.Interrupt)

	select {
	case err := <-s.exited:
		if err != nil {
			return fmt.Errorf("the manager ended with: %w\n%s", err, s.log.about("panic", "fatal", "error:"))
		}
	case <-time.After(20 * time.Second):
		_ = s.manager.Process.Kill()

		return fmt.Errorf("the manager did not end when asked to\n%s", s.log.about(""))
	}

	if len(left) > 0 {
		return fmt.Errorf("left behind: %s\n%s", strings.Join(left, ", "), s.log.about(left...))
	}

	return nil
}

func (s *system) leftovers() []string {
	var left []string

	for what, list := range map[string]client.ObjectList{
		"NamespaceScope": &operatorv1.NamespaceScopeList{},
		"Role":           &rbacv1.RoleList{}, "RoleBinding": &rbacv1.RoleBindingList{},
	} {
		var marked []client.ListOption
		if what != "NamespaceScope" {
			marked = append(marked, client.HasLabels{scopeLabel})
		}

		if err := s.client.List(context.Background(), list, marked...); err != nil {
			return []string{err.Error()}
		}

		for _, obj := range objectsOf(list) {
			left = append(left, fmt.Sprintf("%s %s", what, client.ObjectKeyFromObject(obj)))
		}
	}

	return left
}

// journal is the manager's log.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()

	return j.text.Write(p)
}

// about returns the lines that mention one of the words.
func (j *journal) about(words ...string) string {
	j.mu.Lock()
	defer j.mu.Unlock()

	var lines []string

	for line := range strings.Lines(j.text.String()) {
		for _, w := range words {
			if strings.Contains(line, w) {
				lines = append(lines, line)

				break
			}
		}
	}

	return strings.Join(lines, "")
}
