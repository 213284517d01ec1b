// Package testcluster gives tests a real API server.
//
// Tests use the cluster whose kubeconfig the environment variable KUBECONFIG_TEST names. Without it, each test binary takes one
// of those that make test started, or else starts an embedded Kubernetes of its own, which ends with the binary.
package testcluster

import (
	"os"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

const kubeconfigTest = "KUBECONFIG_TEST"

// disposable is the environment variable that says that the cluster which KUBECONFIG_TEST names is thrown away or put back after
// the tests.
const disposable = "AMBIT_TEST_DISPOSABLE"

// Config returns the configuration of a client with every right on the test cluster, and without a rate limit of its own.
func Config(t testing.TB) *rest.Config {
	t.Helper()

	cfg, err := embedded.ConfigOf(Kubeconfig(t))
	if err != nil {
		t.Fatal(err)
	}

	return cfg
}

// Kubeconfig returns the path of the kubeconfig that Config reads, for programs that want a file.
func Kubeconfig(t testing.TB) string {
	t.Helper()

	if named() {
		return os.Getenv(kubeconfigTest)
	}

	path, err := ownCluster()
	if err != nil {
		t.Fatalf("starting a test cluster: %v", err)
	}

	return path
}

// Disposable is the environment of tests that use a cluster which is thrown away or reset after them.
func Disposable(kubeconfig string) []string {
	return []string{kubeconfigTest + "=" + kubeconfig, disposable + "=true"}
}

// Kept says whether others use the cluster later, so that tests have to leave it as they found it.
func Kept() bool { return named() && os.Getenv(disposable) == "" }

// named says whether the environment names a cluster.
func named() bool { return os.Getenv(kubeconfigTest) != "" }

// Kubectl returns the path of the kubectl that belongs to the embedded Kubernetes.
func Kubectl() string { return embedded.Program("k8s/kubectl") }

// Root returns the folder of the repository.
func Root() string { return embedded.Root() }
