package apply_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// writers are all functions of the program that may write to a cluster, or ask it something by a write that it does not keep: the
// applier, what is Ambit's own besides, what somebody calls with rights of their own, and what only asks.
var writers = []struct {
	reason    string
	functions []string
}{
	{"the applier, which gets every client from as, where the identity is checked", []string{
		"internal/apply (*Applier).CreateOnce", "internal/apply (*Applier).Replace", "internal/apply (*Applier).Remove",
		"internal/apply (*Applier).create", "internal/apply (*Applier).patch", "internal/apply (*Applier).delete",
		"internal/apply (*Applier).empty", "internal/apply (*Applier).insist",
		"internal/apply (*Applier).release",
		"internal/apply (*Applier).applyList", "internal/apply (*Applier).deleteList", "internal/apply takeOff",
		"internal/apply (*Applier).put", "internal/apply countAsApplied", "internal/apply serverSideApply",
		"internal/apply (*Applier).merge", "internal/apply putAggregated", "internal/apply (*Applier).Convert",
		"internal/apply (*run).annotate", "internal/apply (*run).evict", "internal/apply (*run).send",
	}},
	{"statuses, which are Ambit's own", []string{"internal/controllers/generic WriteStatus"}},
	{"the finalizer of scopes, which is Ambit's own", []string{
		"internal/controllers/namespacescope (*Reconciler).hold", "internal/controllers/namespacescope (*Reconciler).letGo",
	}},
	{"the lease by which one manager works", []string{
		"internal/cli/manager (*lock).Create", "internal/cli/manager (*lock).Update",
		"internal/cli/manager (*versionedLeases).Create", "internal/cli/manager (*versionedLeases).Update",
	}},
	{"the index that the guard reads, which nobody else may write", []string{"internal/controllers (*groupIndex).write"}},

	{"the command line, with the rights of whoever calls it", []string{
		"internal/cli/authorize (*session).applyGrant", "internal/cli/authorize (*session).changeMembers",
		"internal/cli/authorize (*session).ensureAccount", "internal/cli/authorize (*session).takeBack",
		"internal/cli/authorize (*session).release",
		"internal/cli/imports create", "internal/cli/imports stop",
	}},
	{"the clients of the page, which refuse all but reviews and, where it plans, dry runs (TestDryRunsKeepNothing)", []string{
		"internal/follow (*DryRuns).Create", "internal/follow (*DryRuns).Patch", "internal/follow (*DryRuns).Delete",
		"internal/follow (*Gate).Create",
	}},
	{"whether the API server is ready", []string{"internal/controllers (*answered).isReady"}},
	{"reviews and dry runs, which only ask", []string{
		"internal/apply (*Applier).Try", "internal/apply (*Applier).review", "internal/apply (*Applier).askWhoIsAsking",
		"internal/apply dryRun", "internal/apply tryList",
		"internal/cli/command UserName", "internal/cli/served (*OperatorsOptions).askForAPIs", "internal/cli/plan (*proposer).dryRun",
		"internal/cli/plan (*proposer).proposeDeletion", "internal/cli/why askAPIServer", "internal/follow (*Gate).may",
		"internal/scrape review", "internal/snapshot HeldIn", "internal/snapshot (*Reader).mayActAs",
	}},
}

// TestChokePoint: nothing but these functions writes, and each of them does.
func TestChokePoint(t *testing.T) {
	t.Parallel()

	var want []string
	for _, group := range writers {
		want = append(want, group.functions...)
	}

	slices.Sort(want)

	got := map[string]struct{}{}
	for _, pkg := range program(t) {
		maps.Copy(got, pkg.writes())
	}

	if found := slices.Sorted(maps.Keys(got)); !slices.Equal(found, want) {
		t.Errorf("these functions write to the cluster, and may not:\n%s\nthese may, and do not:\n%s",
			without(found, want), without(want, found))
	}
}

func without(a, b []string) string {
	rest := slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })

	return strings.Join(rest, "\n")
}

// TestChokePointSeesEveryWrite holds the test above against writes of many forms.
func TestChokePointSeesEveryWrite(t *testing.T) {
	t.Parallel()

	const (
		method, function = "internal/somewhere (*thing).do", "internal/somewhere do"
		receiver         = "type thing struct { client.Client; Applier client.Client; other struct { c client.Writer } }\n" +
			"func (x *thing) do(background context.Context, o client.Object) { %s }"
	)

	for _, tc := range []struct{ reason, source, want string }{
		{"a write", "func do(c client.Client, ctx context.Context, o client.Object) { c.Create(ctx, o) }", function},
		{"whatever the context is called", fmt.Sprintf(receiver, "x.Client.Update(background, o)"), method},
		{"where the context is made", fmt.Sprintf(receiver, "x.Client.Delete(context.TODO(), o)"), method},
		{"by an embedded client", fmt.Sprintf(receiver, "x.Patch(background, o, nil)"), method},
		{"by a client in a field that is called as the applier", fmt.Sprintf(receiver, "x.Applier.Create(background, o)"), method},
		{"by a part of a client", fmt.Sprintf(receiver, "x.other.c.DeleteAllOf(background, o)"), method},
		{"of a status", fmt.Sprintf(receiver, "x.Status().Update(background, o)"), method},
		{"of a subresource", fmt.Sprintf(receiver, `x.SubResource("eviction").Create(background, o, o)`), method},
		{"later", fmt.Sprintf(receiver, "f := x.Create; f(background, o)"), method},
		{"in a function in a function", fmt.Sprintf(receiver, "func() { x.Create(background, o) }()"), method},
		{"by the method of a type", fmt.Sprintf(receiver, "client.Client.Create(x, background, o)"), method},
		{
			"in a function that belongs to nobody",
			"var f = func(c client.Client, o client.Object) error { return c.Create(context.TODO(), o) }", "internal/somewhere f",
		},
		{
			"by an interface that only says what it can do",
			"type w interface { Create(context.Context, client.Object, ...client.CreateOption) error }\n" +
				"func do(x w, o client.Object) { x.Create(context.TODO(), o) }", function,
		},
		{"by somebody else's function", "func do(c client.Client, o client.Object) { " +
			"controllerutil.CreateOrUpdate(context.TODO(), c, o, nil) }", function},
		{"by a client of another library", "func do(c dynamic.Interface) { " +
			"c.Resource(schema.GroupVersionResource{}).Create(context.TODO(), nil, metav1.CreateOptions{}) }", function},
		{"by REST", "func do(c rest.Interface) { c.Post() }", function},
		{"by REST, with any verb", `func do(c rest.Interface) { c.Verb("PUT") }`, function},
		{"by HTTP", `func do() { http.NewRequest("POST", "/", nil) }`, function},
		{"no write, but a read", fmt.Sprintf(receiver, "x.Get(background, client.ObjectKeyFromObject(o), o)"), ""},
		{"no write to a cluster", `func do(m *sync.Map) { m.Delete(1); os.Create(""); slices.Delete([]int{}, 0, 0) }`, ""},
		{
			"no write of one's own, but one by the applier",
			"func do(a *apply.Applier, o client.Object) { a.CreateOnce(context.TODO(), apply.Own(), o) }", "",
		},
	} {
		pkg, err := parsed(t, "internal/somewhere", map[string]string{"a.go": header + tc.source})
		if err != nil {
			t.Errorf("%s: %v", tc.reason, err)

			continue
		}

		if got := strings.Join(slices.Sorted(maps.Keys(pkg.writes())), ", "); got != tc.want {
			t.Errorf("%s: it is seen in %q, want %q", tc.reason, got, tc.want)
		}
	}
}

// header imports whatever a source may use.
const header = `package somewhere

import (
	"context"
	"net/http"
	"os"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/ambit-k8s/ambit/internal/apply"
)

var (
	_ context.Context
	_ http.Client
	_ os.File
	_ = slices.Max[[]int]
	_ sync.Map
	_ metav1.Object
	_ schema.ObjectKind
	_ dynamic.Interface
	_ rest.Config
	_ client.Client
	_ controllerutil.OperationResult
	_ apply.Applier
)

`

// TestNoMergePatchWithoutAVersion walks through the code of the program, too. A merge patch that was made by comparing two
// objects replaces whole lists, and the object may be another one by now: the version has to go along.
func TestNoMergePatchWithoutAVersion(t *testing.T) {
	t.Parallel()

	versioned := 0

	for _, pkg := range program(t) {
		for id, used := range pkg.info.Uses {
			switch used.Name() {
			case "MergeFrom", "StrategicMergeFrom", "NewMergePatch":
				t.Errorf("%s makes a patch with %s, which says nothing of the version", pkg.files.Position(id.Pos()), used.Name())
			case "MergeFromWithOptimisticLock":
				versioned++
			}
		}
	}

	if versioned < 4 {
		t.Errorf("found only %d patches", versioned)
	}
}

const module = "github.com/ambit-k8s/ambit/"

// checked is a package of the program, with what its names mean.
type checked struct {
	folder string
	files  *token.FileSet
	parsed []*ast.File
	info   *types.Info
}

// writes are the functions that refer to something by which a cluster is written to.
func (p *checked) writes() map[string]struct{} {
	found := map[string]struct{}{}

	for _, file := range p.parsed {
		for _, decl := range file.Decls {
			ast.Inspect(decl, func(n ast.Node) bool {
				id, is := n.(*ast.Ident)
				if !is {
					return true
				}

				if f, is := p.info.Uses[id].(*types.Func); is && canWrite(f) {
					found[p.folder+" "+nameOf(decl, id)] = struct{}{}
				}

				return true
			})
		}
	}

	return found
}

// canWrite says whether a function may write to a cluster: one that talks to servers by itself, or that has a verb in its name
// and takes a context. Those of the program itself are looked into instead, where it is known which one is called. A library that
// is handed a configuration and writes by itself is not seen: the recorder of events is the only one.
func canWrite(f *types.Func) bool {
	if f.Pkg() == nil {
		return false
	}

	signature := f.Signature()
	known := signature.Recv() == nil || !types.IsInterface(signature.Recv().Type())

	switch path := f.Pkg().Path(); {
	case strings.HasPrefix(path, module) && (known || strings.Contains(signature.String(), module)):
		return false // What takes types of the program is in the program, too.
	case path == "sigs.k8s.io/controller-runtime/pkg/handler":
		return false // It is told of what others wrote.
	case path == "k8s.io/client-go/rest":
		return slices.Contains([]string{"Post", "Put", "Patch", "Delete", "Verb"}, f.Name())
	case path == "net/http":
		return slices.Contains([]string{"NewRequest", "NewRequestWithContext", "Post", "PostForm", "Do"}, f.Name())
	}

	takesContext := signature.Params().Len() > 0 && signature.Params().At(0).Type().String() == "context.Context"

	return takesContext && slices.ContainsFunc([]string{"Create", "Update", "Patch", "Delete", "Apply", "Evict", "Post", "Put"},
		func(verb string) bool { return strings.HasPrefix(f.Name(), verb) })
}

// nameOf is the name of the declaration in which something is: of a function with its receiver, of others what they declare.
func nameOf(decl ast.Decl, at *ast.Ident) string {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil {
			return decl.Name.Name
		}

		receiver := types.ExprString(decl.Recv.List[0].Type)
		if strings.HasPrefix(receiver, "*") {
			receiver = "(" + receiver + ")"
		}

		return receiver + "." + decl.Name.Name
	case *ast.GenDecl:
		for _, spec := range decl.Specs {
			if value, is := spec.(*ast.ValueSpec); is && value.Pos() <= at.Pos() && at.Pos() < value.End() {
				return value.Names[0].Name
			}
		}
	}

	return "?"
}

// listed is what go list says of a package.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// packages are those that the program is made of, and whatever they import.
var packages = sync.OnceValues(func() (map[string]listed, error) {
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles",
		"./cmd/ambit", "k8s.io/client-go/dynamic", "sigs.k8s.io/controller-runtime/pkg/controller/controllerutil")
	list.Dir, list.Stderr = embedded.Root(), os.Stderr

	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing packages: %w", err)
	}

	all := map[string]listed{}

	for from := json.NewDecoder(bytes.NewReader(out)); ; {
		var one listed
		if err := from.Decode(&one); errors.Is(err, io.EOF) { //nolint:musttag // As the go command names its fields.
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading the list of packages: %w", err)
		}

		all[one.ImportPath] = one
	}
})

// program are all packages that end up in the ambit binary.
var programOnce = sync.OnceValues(func() ([]*checked, error) {
	all, err := packages()
	if err != nil {
		return nil, err
	}

	var out []*checked

	for path, one := range all {
		folder, of := strings.CutPrefix(path, module)
		if !of {
			continue
		}

		sources := map[string]string{}

		for _, name := range one.GoFiles {
			text, err := os.ReadFile(filepath.Join(one.Dir, name))
			if err != nil {
				return nil, fmt.Errorf("reading a package: %w", err)
			}

			sources[name] = string(text)
		}

		pkg, err := check(all, folder, sources)
		if err != nil {
			return nil, err
		}

		out = append(out, pkg)
	}

	return out, nil
})

func program(t *testing.T) []*checked {
	t.Helper()

	all, err := programOnce()
	if err != nil {
		t.Fatal(err)
	}

	if len(all) < 20 {
		t.Fatalf("found only %d packages", len(all))
	}

	return all
}

func parsed(t *testing.T, folder string, sources map[string]string) (*checked, error) {
	t.Helper()

	all, err := packages()
	if err != nil {
		t.Fatal(err)
	}

	return check(all, folder, sources)
}

// check parses a package and finds what its names mean, with what the compiler said of those that it imports.
func check(all map[string]listed, folder string, sources map[string]string) (*checked, error) {
	pkg := &checked{folder: folder, files: token.NewFileSet(), info: &types.Info{Uses: map[*ast.Ident]types.Object{}}}

	for _, name := range slices.Sorted(maps.Keys(sources)) {
		file, err := parser.ParseFile(pkg.files, filepath.Join(folder, name), sources[name], 0)
		if err != nil {
			return nil, fmt.Errorf("parsing: %w", err)
		}

		pkg.parsed = append(pkg.parsed, file)
	}

	config := types.Config{Importer: importer.ForCompiler(pkg.files, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(all[path].Export)
	})}
	if _, err := config.Check(module+folder, pkg.files, pkg.parsed, pkg.info); err != nil {
		return nil, fmt.Errorf("checking types: %w", err)
	}

	return pkg, nil
}
