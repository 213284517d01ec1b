package apply_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/embedded"
)

// writers are the functions that may write to a cluster. Those of this package get their client from "as", which checks
// the identity; those of the controller write Ambit's own status and finalizers; those of the command line write with the
// caller's own rights. Reviews and dry runs only ask. The default scope is made as Ambit itself, for the administrator who
// installed it; so is the index that the guard reads, because nobody else may write it. An InstallPlan is made by Ambit itself,
// too: it says what is to be done as whom, and does nothing. The key of names is a Secret of Ambit's own.
var writers = []string{
	"internal/apply create", "internal/apply patch", "internal/apply delete", "internal/apply empty", "internal/apply hold",
	"internal/apply insist",
	"internal/apply review", "internal/apply dryRun",
	"internal/apply applyList", "internal/apply deleteList", "internal/apply annotate", "internal/apply evict",
	"internal/apply applyInjection", "internal/apply patchObject",
	"internal/apply put", "internal/apply CreateOnce", "internal/apply Replace", "internal/apply serverSideApply", "internal/apply Try", "internal/apply Remove",
	"internal/apply tryList",
	"internal/apply merge", "internal/apply Convert", "internal/apply putAggregated", "internal/apply countAsApplied",
	"internal/cli/authorize applyGrant", "internal/cli/authorize changeMembers", "internal/cli/authorize ensureAccount",
	"internal/cli/authorize takeBack",
	"internal/cli/connect UserName",
	"internal/controllers write", "internal/controllers/status Write",
	"internal/cli/plan dryRun", "internal/cli/plan proposeDeletion", "internal/snapshot HeldIn", "internal/cli/why askAPIServer",
	"internal/cli/operators askForAPIs", "internal/cli/imports create", "internal/cli/imports stop",
	// The lease, by which one manager works.
	"internal/cli/manager Create", "internal/cli/manager Update",
	// The page refuses every write but a review and, where it plans, a dry run (TestDryRunsKeepNothing).
	"internal/follow Create", "internal/follow Patch", "internal/follow Delete", "internal/follow may",
	"internal/controllers/namespacescope hold", "internal/controllers/namespacescope letGo",
	// Two questions about who reads metrics.
	"internal/scrape review",
}

// forbidden are packages by which a write could go around the applier.
var forbidden = []string{"k8s.io/client-go/kubernetes", "k8s.io/client-go/dynamic"}

// TestNothingElseWrites walks through the code of the program. Every call that can write takes a context first and has
// the name of a verb; each of them must be in one of the functions above.
func TestNothingElseWrites(t *testing.T) {
	t.Parallel()

	found := map[string]struct{}{}

	for path, file := range program(t) {
		for _, spec := range file.Imports {
			for _, pkg := range forbidden {
				if strings.Trim(spec.Path.Value, `"`) == pkg {
					t.Errorf("%s imports %s, with which it could write past the applier", path, pkg)
				}
			}
		}

		for _, decl := range file.Decls {
			function, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}

			for range writes(function) {
				found[filepath.Dir(path)+" "+function.Name.Name] = struct{}{}
			}
		}
	}

	got := slices.Sorted(maps.Keys(found))
	want := slices.Sorted(slices.Values(writers))

	if !slices.Equal(got, want) {
		t.Errorf("these functions write to the cluster:\n%s\nthese may:\n%s",
			strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestNoMergePatchWithoutAVersion walks through the code of the program, too. A merge patch that was made by comparing two
// objects replaces whole lists, and the object may be another one by now: the version has to go along.
func TestNoMergePatchWithoutAVersion(t *testing.T) {
	t.Parallel()

	versioned := 0

	for path, file := range program(t) {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}

			switch call.Sel.Name {
			case "MergeFrom", "StrategicMergeFrom", "NewMergePatch":
				t.Errorf("%s makes a patch with %s, which says nothing of the version", path, call.Sel.Name)
			case "MergeFromWithOptimisticLock":
				versioned++
			}

			return true
		})
	}

	if versioned < 4 {
		t.Errorf("found only %d patches", versioned)
	}
}

// program parses all files that end up in the ambit binary.
func program(t *testing.T) map[string]*ast.File {
	t.Helper()

	files := map[string]*ast.File{}
	root := embedded.Root()

	for _, dir := range []string{"api", "cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, _ fs.DirEntry, err error) error {
			name, relErr := filepath.Rel(root, path)
			if err != nil || relErr != nil {
				return fmt.Errorf("walking: %w (%w)", err, relErr)
			}

			tests := strings.HasPrefix(name, "internal/embedded") || strings.HasPrefix(name, "internal/testcluster") ||
				strings.HasPrefix(name, "internal/testbed")
			if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || tests {
				return nil
			}

			file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
			files[name] = file

			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	if len(files) < 20 {
		t.Fatalf("found only %d files", len(files))
	}

	return files
}

// writes yields the calls in a function that can write: a verb's name, and a context as the first argument.
func writes(function *ast.FuncDecl) func(func(*ast.CallExpr) bool) {
	verbs := []string{"Create", "Update", "Patch", "Delete", "DeleteAllOf", "Apply", "Evict", "Post", "Put"}

	return func(yield func(*ast.CallExpr) bool) {
		ast.Inspect(function, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}

			selector, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(verbs, selector.Sel.Name) || isApplier(selector.X) {
				return true
			}

			if first, ok := call.Args[0].(*ast.Ident); ok && strings.Contains(strings.ToLower(first.Name), "ctx") {
				return yield(call)
			}

			return true
		})
	}
}

// isApplier says whether a call goes to the applier, which is where all writes should go.
func isApplier(x ast.Expr) bool {
	field, ok := x.(*ast.SelectorExpr)

	return ok && field.Sel.Name == "Applier"
}
