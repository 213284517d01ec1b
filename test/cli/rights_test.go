package cli_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/cli"
	"github.com/ambit-k8s/ambit/internal/testbed"
)

// as runs the command line as somebody with fewer rights.
func as(w *testbed.World, user string, arguments ...string) (out, errOut string, code int) {
	w.Helper()

	return run(w, append(arguments, "--as", user)...)
}

// TestWhatCannotBeToldIsNoAnswer holds that bindings that nobody let the caller read are no reason to say no.
func TestWhatCannotBeToldIsNoAnswer(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, m := w.Namespace("ops"), w.Namespace("m")
	w.Operator(ops, "op")
	w.Grant(m, "secrets", ops, "op", "get secrets")

	question := []string{"why", ops + "/op", "-n", m, "--verb", "get", "--resource", "secrets"}

	if out, errOut, code := as(w, "stranger", question...); code != cli.ExitFailed || !strings.HasPrefix(out, "Cannot be told: ") ||
		!strings.Contains(errOut, "you may not list rolebindings in namespace "+m) {
		t.Errorf("a stranger: exit code %d: %s%s", code, out, errOut)
	}

	out, errOut, code := as(w, "stranger", append(question, "-o", "json")...)
	data := map[string]any{}

	if err := json.NewDecoder(bytes.NewBufferString(out)).Decode(&data); err != nil || code != cli.ExitFailed {
		t.Fatalf("a stranger: exit code %d: %v: %s%s", code, err, out, errOut)
	}

	if allowed, is := data["allowed"]; !is || allowed != nil {
		t.Errorf("allowed is %v, want null: %s", allowed, out)
	}

	if out, errOut, code := run(w, question...); code != cli.ExitDone {
		t.Errorf("cluster-admin: exit code %d: %s%s", code, out, errOut)
	}
}
