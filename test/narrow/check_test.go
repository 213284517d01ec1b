package narrow_test

import (
	"strings"
	"testing"
)

// TestCheckAsksTheCluster holds that the rules of a role that is not in the files are those of the cluster's, and that a role
// that the cluster does not have either may give anything.
func TestCheckAsksTheCluster(t *testing.T) {
	w := begin(t)
	ops := w.Namespace("ops")
	old := write(w, strings.ReplaceAll(mighty, `["*"], resources: ["*"]`, `[""], resources: [pods]`))

	for role, want := range map[string]string{
		"system:node-proxier": "endpointslices",
		"of-" + ops:           "anything",
	} {
		young := write(w, strings.ReplaceAll(mighty, "kind: ClusterRole, name: OPS", "kind: ClusterRole, name: "+role))

		out, errOut, code := ambit(w, "narrow", "--check", old, "-f", young)
		if code != 3 || !strings.Contains(out, want) || (want != "anything") == strings.Contains(out, "anything") {
			t.Errorf("of %s, exit %d\n%s\n%s", role, code, out, errOut)
		}
	}
}
