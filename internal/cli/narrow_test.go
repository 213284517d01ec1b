package cli_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/cli"
)

// asFunction is what kustomize hands to a function, with the line DATA of its configuration.
const asFunction = `apiVersion: config.kubernetes.io/v1
kind: ResourceList
functionConfig:
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: narrow}
  data:
    members: shop
    DATA
items:
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRole
  metadata: {name: op}
  rules: [{apiGroups: [""], resources: [secrets], verbs: [get, list]}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: ClusterRoleBinding
  metadata: {name: op}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: op}
  subjects: [{kind: ServiceAccount, name: op, namespace: ops}]
`

// TestNarrowAsAFunctionTakesTheWordsOfItsFlags holds that the configuration of a kustomize function means what the flags of the
// same names mean, in every form in which a flag takes yes and no, and that nothing which it may not mean is taken for no: the
// output would have no fence, or warnings that nobody wanted to pass.
func TestNarrowAsAFunctionTakesTheWordsOfItsFlags(t *testing.T) {
	t.Setenv("KUBECONFIG", "")

	for line, want := range map[string]struct {
		code   int
		fenced bool
		says   string
	}{
		`fence: "true"`:        {cli.ExitDone, true, ""},
		`fence: true`:          {cli.ExitDone, true, ""},
		`fence: "True"`:        {cli.ExitDone, true, ""},
		`fence: "1"`:           {cli.ExitDone, true, ""},
		"fence: |\n      true": {cli.ExitDone, true, ""},
		`fence: "false"`:       {cli.ExitDone, false, ""},
		`fence: "yes"`:         {cli.ExitUsage, false, "yes"},
		`fence: "on"`:          {cli.ExitUsage, false, "on"},
		`fence: ""`:            {cli.ExitUsage, false, "fence"},
		`fence-allow: status`:  {cli.ExitUsage, false, "--fence"},
		"fence: \"true\"\n    fence-allow: status":   {cli.ExitDone, true, ""},
		"fence: \"true\"\n    fence-allow: whatever": {cli.ExitUsage, false, "whatever"},
		`strict: "True"`: {cli.ExitFailed, false, "decision"},
		`strict: "yes"`:  {cli.ExitUsage, false, "yes"},
		`as: elsewhere`:  {cli.ExitUsage, false, "elsewhere"},
		`member: shop`:   {cli.ExitUsage, false, "member"},
	} {
		t.Run(line, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "list.yaml")

			text := strings.ReplaceAll(asFunction, "DATA", line)
			if strings.HasPrefix(line, "strict") {
				text = strings.ReplaceAll(text, "members: shop", "account: ops/op") // Without members there is a warning.
			}

			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}

			var out, errOut bytes.Buffer

			code := cli.Run(t.Context(), []string{"narrow", "--offline", "-f", file}, &out, &errOut)
			if code != want.code || !strings.Contains(errOut.String(), want.says) {
				t.Errorf("exit %d, and not %d: %s", code, want.code, errOut.String())
			}

			if is := strings.Contains(out.String(), "kind: ValidatingAdmissionPolicy\n"); is != want.fenced {
				t.Errorf("it has a fence: %t\n%s", is, out.String())
			}
		})
	}
}

// TestNarrowTakesNoFunctionConfigBesideFlags holds that whoever wrote the input does not say how to narrow where a flag does.
func TestNarrowTakesNoFunctionConfigBesideFlags(t *testing.T) {
	t.Setenv("KUBECONFIG", "")

	file := filesFor(t)("list.yaml", strings.ReplaceAll(asFunction, "DATA", "keep: '* *'"))

	for _, flag := range []string{"--members=bank", "--strict", "--fence=false", "--as=scope"} {
		var out, errOut bytes.Buffer

		code := cli.Run(t.Context(), []string{"narrow", "--offline", "-f", file, flag}, &out, &errOut)
		if name, _, _ := strings.Cut(flag, "="); code != cli.ExitUsage || out.Len() > 0 || !strings.Contains(errOut.String(), name) {
			t.Errorf("%s: exit %d: %s%s", flag, code, out.String(), errOut.String())
		}
	}
}

// TestNarrowReadsItsInputOnce holds that what has to be compared is not the standard input twice: read once, it is empty the
// second time, and nothing is no more than anything.
func TestNarrowReadsItsInputOnce(t *testing.T) {
	t.Setenv("KUBECONFIG", "")

	file := filepath.Join(t.TempDir(), "op.yaml")
	if err := os.WriteFile(file, []byte(checked), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, flags := range [][]string{
		{"--check", "-"}, {"--check", "-", "-f", "-"}, {"-f", "-", "-f", "-"}, {"-f", "-,-"}, {"--check", "-", "-f", file, "-f", "-"},
	} {
		var out, errOut bytes.Buffer

		code := cli.Run(t.Context(), append([]string{"narrow", "--offline"}, flags...), &out, &errOut)
		if code != cli.ExitUsage || !strings.Contains(errOut.String(), "standard input") {
			t.Errorf("%s: exit %d: %s%s", fmt.Sprint(flags), code, out.String(), errOut.String())
		}
	}
}

// TestNarrowCheckOfNothing holds that a check fails where the new version holds no object: what should have made it has failed,
// and a pipeline must not take that for a version which asks for nothing more. As a filter the command passes nothing on.
func TestNarrowCheckOfNothing(t *testing.T) {
	t.Setenv("KUBECONFIG", "")

	file := filesFor(t)

	old := file("old.yaml", checked)

	for name, text := range map[string]string{
		"nothing": "", "comments": "# nothing\n---\n# more\n", "an error": "Error: chart not found\n", "no object": "a: b\n",
		"a list of nothing": "kind: List\napiVersion: v1\nitems: []\n",
	} {
		young := file("new.yaml", text)

		for _, tc := range []struct {
			code int
			args []string
		}{
			{cli.ExitFailed, []string{"--check", old, "-f", young}}, {cli.ExitFailed, []string{"--check", young, "-f", young}},
			{cli.ExitMissing, []string{"--check", young, "-f", old}}, {cli.ExitDone, []string{"-f", young}},
		} {
			var out, errOut bytes.Buffer

			code := cli.Run(t.Context(), append([]string{"narrow", "--offline"}, tc.args...), &out, &errOut)
			if code != tc.code || code == cli.ExitFailed && !strings.Contains(errOut.String(), "no object in the new version") {
				t.Errorf("%s: %q: exit %d: %s%s", name, tc.args, code, out.String(), errOut.String())
			}
		}
	}
}

// TestNarrowNamesWhatToDelete holds that what users copy deletes what it says, also where the manifests call a binding like a
// flag, or by a name that no terminal shows.
func TestNarrowNamesWhatToDelete(t *testing.T) {
	t.Setenv("KUBECONFIG", "")

	for name, want := range map[string]string{
		"--all":    "kubectl delete clusterrolebinding -- --all\n",
		`o\u200bp`: "kubectl delete --raw '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/o%E2%80%8Bp'\n",
	} {
		text := strings.ReplaceAll(strings.ReplaceAll(asFunction, "DATA", `fence: "false"`), "{name: op}", `{name: "`+name+`"}`)
		text = strings.ReplaceAll(text, "kind: ClusterRole, name: op}", `kind: ClusterRole, name: "`+name+`"}`)

		file := filepath.Join(t.TempDir(), "list.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}

		var out, errOut bytes.Buffer

		code := cli.Run(t.Context(), []string{"narrow", "--offline", "-f", file}, &out, &errOut)
		if code != cli.ExitDone || !strings.Contains(errOut.String(), want) {
			t.Errorf("%s: exit %d: %s", name, code, errOut.String())
		}
	}
}
