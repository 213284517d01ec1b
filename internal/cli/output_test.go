package cli_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/cli"
)

// TestEveryCommandHasTheSameForms holds that -o takes table, json and yaml wherever there is an -o, and that what it does not
// take is refused in one line that says what it takes.
func TestEveryCommandHasTheSameForms(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "kubeconfig"))
	t.Setenv("HOME", t.TempDir())

	commands := map[string][]string{
		"authorize": {"member", "--to", "ops"}, "revoke": {"member", "--to", "ops"}, "preflight": {}, "plan": {"-f", "x.yaml"},
		"why": {"ops/op", "-n", "member"}, "tree": {}, "matrix": {}, "operators": {}, "import": {"csv/op"},
		"who-can": {"get", "secrets", "-n", "member"},
	}
	// What it writes are manifests, and what is checked has forms of its own.
	others := []string{"narrow"}

	for _, c := range cli.NewRoot(nil, nil).Commands() {
		if arguments, known := commands[c.Name()]; !slices.Contains(others, c.Name()) && (c.Flags().Lookup("output") != nil) != known {
			t.Errorf("%s has an -o or has none, and is asked with %v", c.Name(), arguments)
		}
	}

	for name, arguments := range commands {
		for _, form := range []string{"table", "json", "yaml", "wide", "name"} {
			var out, errOut bytes.Buffer

			args := slices.Concat([]string{name}, arguments, []string{"-s", "http://127.0.0.1:1", "-o", form})
			code := cli.Run(t.Context(), args, &out, &errOut)
			said := errOut.String()

			if form != "wide" && form != "name" {
				if code != cli.ExitFailed || strings.Contains(said, "--output") {
					t.Errorf("%s -o %s: exit %d, %q", name, form, code, said)
				}

				continue
			}

			if code != cli.ExitUsage || out.Len() > 0 || strings.Count(said, "\n") != 1 ||
				!strings.HasPrefix(said, `error: --output is "`+form+`"; give `) ||
				!strings.Contains(said, "table") || !strings.Contains(said, "json") || !strings.Contains(said, "yaml") {
				t.Errorf("%s -o %s: exit %d, %q %q", name, form, code, out.String(), said)
			}
		}
	}
}

func TestATakeOverHasNoForms(t *testing.T) {
	for _, form := range []string{"json", "yaml"} {
		var out, errOut bytes.Buffer

		code := cli.Run(t.Context(), []string{"import", "--take-over", "-s", "http://127.0.0.1:1", "-o", form}, &out, &errOut)
		if code != cli.ExitUsage || !strings.Contains(errOut.String(), "leave out --output") {
			t.Errorf("-o %s: exit %d, %q", form, code, errOut.String())
		}
	}
}

// TestNothingPrintsInAnotherWay walks the code of the commands: what they print is a terminal.Text, or goes through the writer
// that escapes, and nothing opens another way to a terminal.
func TestNothingPrintsInAnotherWay(t *testing.T) {
	t.Parallel()

	var files []string

	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".go" && !strings.HasSuffix(path, "_test.go") {
			files = append(files, path)
		}

		return err
	})
	if err != nil || len(files) < 10 {
		t.Fatal(files, err)
	}

	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}

		ast.Inspect(file, func(n ast.Node) bool {
			selector, is := n.(*ast.SelectorExpr)
			if !is {
				return true
			}

			of, is := selector.X.(*ast.Ident)
			if name := selector.Sel.Name; is && (of.Name == "fmt" && strings.Contains(name, "rint") && !strings.HasPrefix(name, "S") ||
				of.Name == "os" && (name == "Stdout" || name == "Stderr") || of.Name == "tabwriter") {
				t.Errorf("%s uses %s.%s; print by output.Say or a terminal.Builder", path, of.Name, name)
			}

			return true
		})
	}
}
