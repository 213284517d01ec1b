// Package cli_test runs the command line on a real API server, beside a manager: what it says has to be what happens.
package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// beds are the clusters that the tests share.
var beds testbed.Beds

func TestMain(m *testing.M) { os.Exit(beds.Run(m)) }

// run runs the command line as cluster-admin, in this process.
func run(w *testbed.World, arguments ...string) (out, errOut string, code int) {
	w.Helper()

	var stdout, stderr bytes.Buffer

	arguments = append(arguments, "--kubeconfig", w.Cluster.Kubeconfig)
	code = cli.Run(w.Context(), arguments, &stdout, &stderr)

	return stdout.String(), stderr.String(), code
}

// file writes a file for a test.
func file(w *testbed.World, name, content string) string {
	w.Helper()

	path := filepath.Join(w.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		w.Fatal(err)
	}

	return path
}
