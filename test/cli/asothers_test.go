package cli_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/cli"
	cliplan "github.com/ambit-k8s/ambit/internal/cli/plan"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestNobodyLearnsMoreByAs holds that commands say by --as what the one who is named would learn, and not what whoever gives the
// flag would: what an account holds is asked as that account only where the one who is named may act as it.
func TestNobodyLearnsMoreByAs(t *testing.T) {
	w := beds.Begin(t, "cluster", "--restart-interval=1s")

	for may, rules := range map[bool][]string{
		false: {"patch namespacescopes"}, true: {"patch namespacescopes", "impersonate serviceaccounts"},
	} {
		ops, m := w.Namespace("ops"), w.Namespace("m")
		w.Operator(ops, "op", "get secrets")
		w.Make(testbed.Account(ops, "delegate"))

		user, scope := looker(w, ops, rules...), scopeOf(ops, m, "  serviceAccountName: delegate\n")
		path := file(w, "scope.yaml", scope)
		want, says := cli.ExitFailed, "you may not impersonate service account "+ops+"/delegate"

		if may {
			want, says = cli.ExitMissing, ""
		}

		out, errOut, code := as(w, user, "preflight", "-f", path)
		if code != want || !strings.Contains(errOut, says) {
			t.Errorf("a scope, may %v: exit code %d, nothing of %q: %s%s", may, code, says, out, errOut)
		}

		roles := file(w, "role.yaml", objectOf("rbac.authorization.k8s.io/v1", "Role", ops, "new"))

		out, errOut, code = as(w, user, "preflight", "-f", roles, "--service-account", ops+"/delegate")
		if code != want || !strings.Contains(errOut, strings.TrimSuffix(says, " "+ops+"/delegate")) {
			t.Errorf("an object, may %v: exit code %d, nothing of %q: %s%s", may, code, says, out, errOut)
		}

		out, errOut, _ = as(w, user, "plan", "-f", path, "-o", "json")

		d := &cliplan.Data{}
		if err := json.Unmarshal([]byte(out), d); err != nil {
			t.Fatalf("%v: %s%s", err, out, errOut)
		}

		is := slices.ContainsFunc(d.NotRead, func(s string) bool {
			return strings.Contains(s, "you may not impersonate user system:serviceaccount:"+ops+":delegate")
		})
		if is == may || !may && len(d.Grants) > 0 {
			t.Errorf("a plan, may %v: it says %q and grants %v", may, d.NotRead, d.Grants)
		}
	}

	path := file(w, "object.yaml", objectOf("v1", "ConfigMap", w.Namespace("of"), "one"))
	for _, who := range []string{"--for-user", "--for-group"} {
		out, errOut, code := as(w, "stranger", "preflight", "-f", path, who, "system:masters")
		if code != cli.ExitFailed || !strings.Contains(errOut, "you may not impersonate") {
			t.Errorf("%s: exit code %d: %s%s", who, code, out, errOut)
		}
	}
}
