package cli_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/cli"
)

func TestExitCodes(t *testing.T) {
	t.Setenv("OPERATOR_NAMESPACE", "")
	t.Setenv("KUBECONFIG", "")

	nowhere := filepath.Join(t.TempDir(), "kubeconfig")

	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
		says   string
	}{
		"nothing":          {"without a verb it explains itself", nil, cli.ExitDone, ""},
		"help":             {"so it does when asked", []string{"manager", "--help"}, cli.ExitDone, ""},
		"unknown verb":     {"a verb that does not exist is wrong usage", []string{"frobnicate"}, cli.ExitUsage, "frobnicate"},
		"unknown topic":    {"also where one asks for help", []string{"help", "frobnicate"}, cli.ExitUsage, "frobnicate"},
		"unknown subtopic": {"or for more of it", []string{"help", "plan", "frobnicate"}, cli.ExitUsage, "ambit plan"},
		"known topic":      {"which is there for what does exist", []string{"help", "completion", "bash"}, cli.ExitDone, ""},
		"unknown shell":    {"and for completion", []string{"completion", "frobnicate"}, cli.ExitUsage, "frobnicate"},
		"shells":           {"which lists the shells", []string{"completion"}, cli.ExitDone, ""},
		"shell and more":   {"each by itself", []string{"completion", "bash", "x"}, cli.ExitUsage, `"x"`},
		"unknown flag":     {"so is a flag", []string{"manager", "--frobnicate"}, cli.ExitUsage, "manager --help"},
		"bad value":        {"so is a value that is none", []string{"manager", "--restart-interval=soon"}, cli.ExitUsage, "soon"},
		"bad interval":     {"so is one out of range", []string{"manager", "--restart-interval=-1s"}, cli.ExitUsage, "0 or more"},
		"too many":         {"at either end", []string{"manager", "--concurrent-writes=0"}, cli.ExitUsage, "1 to 1000"},
		"bad groups": {
			"so is a word that is none of the three",
			[]string{"manager", "--operator-groups=maybe"}, cli.ExitUsage, "maybe",
		},
		"empty name": {"a namespace has a name", []string{"manager", "--namespaces=a,,b"}, cli.ExitUsage, "--namespaces"},
		"name with a space": {
			"that no space begins",
			[]string{"manager", "--namespaces=a, b"}, cli.ExitUsage, `--namespaces has " b"`,
		},
		"bad namespace of OLM": {
			"also that of OLM",
			[]string{"manager", "--olm-namespaces=olm,OLM"}, cli.ExitUsage, `--olm-namespaces has "OLM"`,
		},
		"bad account": {
			"an account is one of the scope's namespace",
			[]string{"manager", "--default-service-account=ops/deputy"}, cli.ExitUsage, "--default-service-account",
		},
		"bad namespace": {
			"and it is one that a namespace can have",
			[]string{"plan", "-f", "x", "-n", "Bad_Name"}, cli.ExitUsage, "Bad_Name",
		},
		"standard input twice": {
			"read once, it is empty", []string{"plan", "-f", "-", "-f", "-"}, cli.ExitUsage, "standard input",
		},
		"standard input twice in one flag": {
			"however it is written", []string{"serve", "-f", "-,-"}, cli.ExitUsage, "standard input",
		},
		"standard input twice to ask about": {
			"the second one would count as nothing", []string{"preflight", "-f", "-", "-f", "-"}, cli.ExitUsage, "standard input",
		},
		"standard input twice to import": {
			"in every command", []string{"import", "-f", "-", "-f", "-"}, cli.ExitUsage, "standard input",
		},
		"argument":              {"the manager takes no arguments", []string{"manager", "x"}, cli.ExitUsage, "x"},
		"no operator namespace": {"so has a scope", []string{"manager", "--default-scope"}, cli.ExitUsage, "OPERATOR_NAMESPACE"},
		"scope without a namespace": {
			"also where some are served", []string{"manager", "--default-scope", "--namespaces=a"}, cli.ExitUsage, "OPERATOR_NAMESPACE",
		},
		"no namespace": {"a lease has to be somewhere", []string{"manager", "--leader-elect"}, cli.ExitUsage,
			"OPERATOR_NAMESPACE"},
		"no such config": {
			"a cluster that is not there is a failure",
			[]string{"manager", "--kubeconfig", nowhere}, cli.ExitFailed, nowhere,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out, errOut bytes.Buffer

			code := cli.Run(t.Context(), tc.args, &out, &errOut)
			if code != tc.code {
				t.Errorf("%s: exit %d, want %d; it said %q", tc.reason, code, tc.code, errOut.String())
			}

			said := errOut.String()
			if code != cli.ExitDone && (strings.Count(said, "\n") != 1 || !strings.Contains(said, tc.says)) {
				t.Errorf("%s: an error is one line that names %q: %q", tc.reason, tc.says, said)
			}

			if code == cli.ExitDone && !strings.Contains(out.String(), "Usage:") {
				t.Errorf("%s: no help: %q", tc.reason, out.String())
			}
		})
	}
}
