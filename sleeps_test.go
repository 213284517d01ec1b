package ambit

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// longestSleep is the longest pause of a fixed length in a test, such as that between two looks.
const longestSleep = 300 * time.Millisecond

// TestTestsDoNotSleep: tests wait for what happens, not for a time, which is too short on a busy machine and wasted on another
// one. The clock of a synctest bubble costs nothing.
func TestTestsDoNotSleep(t *testing.T) {
	t.Parallel()

	files := token.NewFileSet()
	seen := 0

	for _, folder := range foldersOfTests(t) {
		for _, pkg := range parsed(t, files, folder) {
			seen += len(pkg)

			for _, at := range sleepsOf(files, pkg) {
				t.Errorf("%s sleeps for more than %s: have it wait for what happens", files.Position(at), longestSleep)
			}
		}
	}

	if seen < 100 {
		t.Errorf("only %d files were found", seen)
	}
}

// TestSleepsAreFound holds what TestTestsDoNotSleep takes for a sleep.
func TestSleepsAreFound(t *testing.T) {
	t.Parallel()

	const source = `package p

import ("testing"; "testing/synctest"; "time")

const grace = 2 * time.Second

func f(t *testing.T) {
	time.Sleep(300 * time.Millisecond)
	time.Sleep(301 * time.Millisecond) // found
	for ; ; time.Sleep(grace / 2) {} // found
	<-time.After(time.Second) // found
	select {
	case <-time.After(time.Second):
	}
	synctest.Test(t, func(t *testing.T) { time.Sleep(time.Hour) })
	func() { const settle = 500 * time.Millisecond; time.Sleep(settle) }() // found
}
`

	files := token.NewFileSet()

	file, err := parser.ParseFile(files, "p_test.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}

	var got, want []int

	for _, at := range sleepsOf(files, []*ast.File{file}) {
		got = append(got, files.Position(at).Line)
	}

	for i, line := range strings.Split(source, "\n") {
		if strings.HasSuffix(line, "// found") {
			want = append(want, i+1)
		}
	}

	if !slices.Equal(got, want) {
		t.Errorf("sleeps are in the lines %v, want %v", got, want)
	}
}

// foldersOfTests are those of the repository that have tests, in all of its modules.
func foldersOfTests(t *testing.T) []string {
	t.Helper()

	folders := map[string]bool{}

	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{"bin", "dist", "node_modules", ".git"}, d.Name()):
			return filepath.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			folders[filepath.Dir(path)] = true
		}

		return nil
	})
	if err != nil {
		t.Fatal(err)
	}

	return slices.Sorted(maps.Keys(folders))
}

// parsed are the files of a folder, by their package: p or p_test.
func parsed(t *testing.T, files *token.FileSet, folder string) map[string][]*ast.File {
	t.Helper()

	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}

	packages := map[string][]*ast.File{}

	for _, path := range paths {
		file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}

		packages[file.Name.Name] = append(packages[file.Name.Name], file)
	}

	return packages
}

// sleepsOf finds where the tests of one package sleep for a constant time that is too long.
func sleepsOf(files *token.FileSet, pkg []*ast.File) []token.Pos {
	values := types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	config := types.Config{Importer: units{}, Error: func(error) {}}
	_, _ = config.Check("p", files, pkg, &values) // What does not resolve has no constant value.

	var found []token.Pos

	look := func(e ast.Expr, function string) {
		call, is := e.(*ast.CallExpr)
		if !is || !isCall(call, "time", function) || len(call.Args) != 1 {
			return
		}

		value := values.Types[call.Args[0]].Value
		if value == nil {
			return
		}

		if n, exact := constant.Int64Val(constant.ToInt(value)); exact && time.Duration(n) > longestSleep {
			found = append(found, call.Pos())
		}
	}

	// What a select waits for may be the end of its patience.
	selected := map[ast.Node]bool{}

	for _, file := range pkg {
		if !strings.HasSuffix(files.Position(file.Pos()).Filename, "_test.go") {
			continue
		}

		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CommClause:
				selected[n.Comm] = true
			case *ast.UnaryExpr:
				look(n.X, "After")
			case *ast.CallExpr:
				look(n, "Sleep")

				return !isCall(n, "synctest", "Test")
			}

			return !selected[n]
		})
	}

	return found
}

func isCall(call *ast.CallExpr, pkg, function string) bool {
	called, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return false
	}

	of, is := called.X.(*ast.Ident)

	return is && of.Name == pkg && called.Sel.Name == function
}

// units imports packages of which nothing is known but the units of time.
type units struct{}

func (units) Import(path string) (*types.Package, error) {
	pkg := types.NewPackage(path, filepath.Base(path))
	pkg.MarkComplete()

	if path != "time" {
		return pkg, nil
	}

	duration := types.NewNamed(types.NewTypeName(token.NoPos, pkg, "Duration", nil), types.Typ[types.Int64], nil)
	pkg.Scope().Insert(duration.Obj())

	for name, unit := range map[string]time.Duration{
		"Nanosecond": time.Nanosecond, "Microsecond": time.Microsecond, "Millisecond": time.Millisecond,
		"Second": time.Second, "Minute": time.Minute, "Hour": time.Hour,
	} {
		pkg.Scope().Insert(types.NewConst(token.NoPos, pkg, name, duration, constant.MakeInt64(int64(unit))))
	}

	return pkg, nil
}
