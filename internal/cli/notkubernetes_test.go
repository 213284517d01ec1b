package cli_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/cli"
)

// TestWhatIsNoAPIServerSaysNothing holds that the 404 of something else than an API server, such as that of a proxy for a path
// that is misspelt, is no answer: that nothing is there, or that Ambit is not installed.
func TestWhatIsNoAPIServerSaysNothing(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()

	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\n"+
		"contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n", server.URL)

	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, line := range []string{
		"tree", "operators -n a", "why a/b -n c", "who-can get pods -n a", "authorize a --to b", "revoke a --to b --grant-only",
		"import csv/x -n a", "preflight -n a",
	} {
		var out, errOut bytes.Buffer

		code := cli.Run(t.Context(), append(strings.Fields(line), "--kubeconfig", path), &out, &errOut)
		if code != cli.ExitFailed || out.String() != "" || !strings.Contains(errOut.String(), "what it serves") {
			t.Errorf("%s: exit code %d: %s%s", line, code, out.String(), errOut.String())
		}
	}
}
