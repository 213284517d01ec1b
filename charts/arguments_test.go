package charts

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/cli"
)

// TestManagerTakesWhatTheChartRenders: a manager that refuses its arguments is only seen not to start. The chart refuses before
// what the manager would, and nothing that the manager takes.
func TestManagerTakesWhatTheChartRenders(t *testing.T) {
	t.Setenv("OPERATOR_NAMESPACE", "elsewhere")

	long := strings.Repeat("a", 64)

	for _, row := range []struct {
		values  []string
		refused string
	}{
		{[]string{`profile="cluster"`}, ""},
		{[]string{`profile="delegated"`}, ""},
		{[]string{`profile="namespaced"`}, ""},
		{[]string{`defaultServiceAccount="a.b-c"`}, ""},
		{[]string{`defaultServiceAccount="a..b"`}, "defaultServiceAccount"},
		{[]string{`defaultServiceAccount="A"`}, "defaultServiceAccount"},
		{[]string{`operatorGroups.olmNamespaces=["olm","operators"]`}, ""},
		{[]string{`operatorGroups.olmNamespaces=[]`}, ""},
		{[]string{`operatorGroups.olmNamespaces=[""]`}, "olmNamespaces"},
		{[]string{`operatorGroups.olmNamespaces=["a.b"]`}, "olmNamespaces"},
		{[]string{`operatorGroups.olmNamespaces=["` + long[1:] + `"]`}, ""},
		{[]string{`operatorGroups.olmNamespaces=["` + long + `"]`}, "olmNamespaces"},
		{[]string{`metrics={"certificate":{"secretName":"c"}}`}, ""},
		{[]string{`profile="namespaced"`, `namespacedInstalls.enabled=true`}, ""},
		{[]string{`profile="namespaced"`, `namespacedInstalls={"enabled":true,"serviceAccounts":["installer","ambit"]}`},
			"Ambit's own account, which no OperatorGroup may name"},
		{[]string{`extraArgs=["--restart-interval=1m30s","--follow-grace=0","--finish-grace=0.5h"]`}, ""},
		{[]string{`extraArgs=["--restart-interval","30s","--default-scope"]`}, ""},
		{[]string{`extraArgs=["--restart-interval=-1s"]`}, "--restart-interval=-1s"},
		{[]string{`extraArgs=["--restart-interval=30"]`}, "--restart-interval=30"},
		{[]string{`extraArgs=["--restart-interval=9999999h"]`}, "--restart-interval=9999999h"},
		{[]string{`extraArgs=["--restart-interval=604800s","--follow-grace=86400000ms"]`}, ""},
		{[]string{`extraArgs=["--restart-interval"]`}, "--restart-interval without a value"},
		{[]string{`extraArgs=["--follow-grace","soon"]`}, "--follow-grace=soon"},
		{[]string{`extraArgs=["--finish-grace=-1s"]`}, "--finish-grace=-1s"},
		{[]string{`extraArgs=["--concurrent-writes=1"]`}, ""},
		{[]string{`extraArgs=["--concurrent-writes=1000"]`}, ""},
		{[]string{`extraArgs=["--concurrent-writes=0"]`}, "--concurrent-writes=0"},
		{[]string{`extraArgs=["--concurrent-writes=1001"]`}, "--concurrent-writes=1001"},
		{[]string{`extraArgs=["--default-scope=true"]`}, ""},
		{[]string{`extraArgs=["--default-scope=perhaps"]`}, "--default-scope=perhaps"},
		{[]string{`extraArgs=["--default-scope","false"]`}, "extraArgs has false"},
		{[]string{`extraArgs=["--restart-intervall=30s"]`}, "--restart-intervall"},
		{[]string{`extraArgs=["-v=4"]`}, "-v=4"},
		{[]string{`extraArgs=["restart-interval=30s"]`}, "extraArgs has restart-interval=30s"},
		{[]string{`extraArgs=["--"]`}, "no flag of the manager"},
		{[]string{`extraArgs=["--operator-groups=enabled"]`}, ""},
		{[]string{`extraArgs=["--operator-groups","enabled"]`}, "operatorGroups.enabled"},
		{[]string{`extraArgs=["--operator-groups=off"]`}, "operatorGroups.enabled"},
		{[]string{`profile="namespaced"`, `extraArgs=["--namespaces=team-a,team-b"]`}, ""},
		{[]string{`profile="namespaced"`, `extraArgs=["--namespaces=team-a, team-b"]`}, "--namespaces=team-a, team-b"},
		{[]string{`profile="namespaced"`, `extraArgs=["--namespaces=` + long + `"]`}, "--namespaces=" + long},
		{[]string{`extraArgs=["--namespaces=team-a"]`}, "set profile=namespaced"},
	} {
		rendered, err := render(t, row.values...)

		switch {
		case row.refused != "" && err == nil:
			t.Errorf("the values %s were taken", row.values)
		case row.refused != "" && !strings.Contains(rendered, row.refused):
			t.Errorf("the values %s were refused without a word of %s: %s", row.values, row.refused, rendered)
		case row.refused == "" && err != nil:
			t.Errorf("the values %s were refused: %s", row.values, rendered)
		}

		if err == nil {
			takesArguments(t, row.values, rendered)
		}
	}
}

// takesArguments fails if the manager refuses the arguments that the chart gives it. It ends right after, for want of a cluster.
func takesArguments(t *testing.T, values []string, rendered string) {
	t.Helper()

	args := []string{}

	arguments, _ := at(object(t, rendered, "Deployment", "ambit"), "spec/template/spec/containers/0/args").([]any)
	for _, a := range arguments {
		text, _ := a.(string)
		args = append(args, strings.ReplaceAll(text, "$(OPERATOR_NAMESPACE)", "elsewhere"))
	}

	var out bytes.Buffer

	args = append(args, "--kubeconfig="+filepath.Join(t.TempDir(), "none"))
	if code := cli.Run(t.Context(), args, &out, &out); code != 1 {
		t.Errorf("with the values %s, the manager ends with exit code %d: %s", values, code, out.String())
	}
}
