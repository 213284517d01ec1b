package authorize_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/cli"
)

func TestAuthorizationWithoutACluster(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "kubeconfig"))
	t.Setenv("HOME", t.TempDir())

	for name, tc := range map[string]struct {
		reason string
		flags  []string
	}{
		"no answer":  {"nothing listens there", []string{"-s", "http://127.0.0.1:1"}},
		"no file":    {"a file that is named has to be there", []string{"--kubeconfig", filepath.Join(t.TempDir(), "x")}},
		"no context": {"so has a context", []string{"--context", "x"}},
		"namespace":  {"the namespace may be said twice", []string{"-s", "http://127.0.0.1:1", "-n", "member"}},
	} {
		for _, verb := range []string{"authorize", "revoke"} {
			t.Run(name+"/"+verb, func(t *testing.T) {
				var out, errOut bytes.Buffer

				args := append([]string{verb, "member", "--to", "ops"}, tc.flags...)
				code := cli.Run(t.Context(), args, &out, &errOut)
				said := errOut.String()

				if code != cli.ExitFailed || strings.Count(said, "\n") != 1 || !strings.Contains(said, "give --kubeconfig") {
					t.Errorf("%s: exit %d, %q", tc.reason, code, said)
				}
			})
		}
	}
}
