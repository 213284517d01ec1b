package writer_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// deciders are the functions that make an identity, or what decides about it: a manager from what it was told, the command line
// from what it reads of a manager, and the simulation for want of either. Besides, Ambit itself looks at what it is about to
// write, asks what the account of an operator holds, and how slow the API server is.
var deciders = []string{
	"internal/apply Own writer.Own", "internal/apply askWhoIsAsking Own", "internal/apply readerBeside Own",
	"internal/controllers writers writer.Manager", "internal/predict Writers writer.Manager",
	"internal/simulation New writer.Manager",
	"internal/controllers/group confine writer.ServiceAccount",
	// These are about no scope: InstallPlans, the list of APIs, the default scope and the key of names are Ambit's own.
	"internal/controllers/catalog create apply.Own", "internal/controllers/group reportGroup apply.Own",
	"internal/controllers make apply.Own", "internal/controllers makeKey apply.Own",
}

// TestNobodyElseDecidesWhoWrites walks through the code of the program.
func TestNobodyElseDecidesWhoWrites(t *testing.T) {
	t.Parallel()

	root, found := embedded.Root(), map[string]struct{}{}

	err := filepath.WalkDir(filepath.Join(root, "internal"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}

		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}

		dir, err := filepath.Rel(root, filepath.Dir(path))

		for _, decl := range file.Decls {
			if f, is := decl.(*ast.FuncDecl); is && dir != "internal/writer" {
				for _, what := range decides(f, dir) {
					found[dir+" "+f.Name.Name+" "+what] = struct{}{}
				}
			}
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	want := slices.Sorted(slices.Values(deciders))
	if got := slices.Sorted(maps.Keys(found)); !slices.Equal(got, want) {
		t.Errorf("functions that decide who writes:\n got %q\nwant %q", got, want)
	}
}

// decides are the identities, and the managers that decide about them, that a function makes.
func decides(f *ast.FuncDecl, dir string) []string {
	var out []string

	ast.Inspect(f.Body, func(n ast.Node) bool {
		var made ast.Node

		switch n := n.(type) {
		case *ast.CallExpr:
			made = n.Fun
		case *ast.CompositeLit:
			made = n.Type
		default:
			return true
		}

		switch made := made.(type) {
		case *ast.Ident:
			if dir == "internal/apply" && made.Name == "Own" {
				out = append(out, made.Name)
			}
		case *ast.SelectorExpr:
			from, is := made.X.(*ast.Ident)
			what := made.Sel.Name

			if is && (from.Name == "writer" && slices.Contains([]string{"Own", "ServiceAccount", "Manager"}, what) ||
				from.Name == "apply" && what == "Own") {
				out = append(out, from.Name+"."+what)
			}
		}

		return true
	})

	return out
}
