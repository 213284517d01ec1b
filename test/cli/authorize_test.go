package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli"
)

// TestAuthorizationForPrograms holds that what is granted and what is taken back can be kept in a repository: it comes out alone,
// and can be applied as it is.
func TestAuthorizationForPrograms(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")
	ops, member := w.Namespace("ops"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets")
	w.ScopeCalled(ops, "namespacescope", operatorv1.NamespaceScopeSpec{})

	answer := func(verb string, more ...string) (string, string) {
		t.Helper()

		out, errOut, code := run(w, append([]string{verb, member, "--to", ops}, more...)...)
		if code != cli.ExitDone {
			t.Fatalf("%s %v: exit code %d: %s%s", verb, more, code, out, errOut)
		}

		return out, errOut
	}

	usual, _ := answer("authorize", "--dry-run=server")
	if table, _ := answer("authorize", "--dry-run=server", "-o", "table"); table != usual || !strings.Contains(table, "may, in") {
		t.Errorf("a table is what people get: %s", table)
	}

	granted, said := answer("authorize", "-o", "yaml")
	if got := objectsIn(w, granted); len(got) != 2 || !strings.Contains(said, "Granted.") {
		t.Errorf("got %v of %s, and beside it %s", got, granted, said)
	}

	for _, form := range []string{"yaml", "json"} {
		taken, said := answer("revoke", "-o", form)
		if !strings.Contains(said, "taken back") || !strings.Contains(said, "Done: ") || strings.Contains(taken, "resourceVersion") ||
			strings.Contains(taken, "managedFields") {
			t.Errorf("-o %s: got %s, and beside it %s", form, taken, said)
		}

		if form == "json" && !json.Valid([]byte(taken)) {
			t.Errorf("it is no JSON: %s", taken)
		}

		// Applied, it is the grant again.
		if out, err := w.Cluster.Kubectl(t.Context(), "apply", "-f", file(w, "taken."+form, taken)); err != nil {
			t.Fatalf("%v: %s", err, out)
		}

		if again, _ := answer("revoke", "--dry-run=server"); strings.Count(again, ": to be taken back") != 2 {
			t.Errorf("-o %s: got %s", form, again)
		}
	}
}
