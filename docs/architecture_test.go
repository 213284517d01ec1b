package docs_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// tableRow is one of ARCHITECTURE.md's table of packages: the layer, which stands in its first row only, and the packages.
	tableRow = regexp.MustCompile(`(?m)^\|([^|]*)\|([^|]*)\|`)
	quoted   = regexp.MustCompile("`([^`]+)`")
	// impure is what reads the cluster, or anything else that could answer otherwise the next time.
	impure = regexp.MustCompile(`^(k8s\.io/client-go|sigs\.k8s\.io/controller-runtime|context|os|net/http|net$|syscall)(/|$)`)
)

// layers are the rows of ARCHITECTURE.md about packages: which layer each is in.
func layers(t *testing.T) map[string]string {
	t.Helper()

	text, err := os.ReadFile(filepath.Join(root, "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}

	_, packages, _ := strings.Cut(string(text), "## Every package")
	packages, _, _ = strings.Cut(packages, "\n## ")
	out, layer := map[string]string{}, ""

	for _, row := range tableRow.FindAllStringSubmatch(packages, -1) {
		if first := strings.TrimSpace(row[1]); first != "" {
			layer = first
		}

		for _, name := range quoted.FindAllStringSubmatch(row[2], -1) {
			out[name[1]] = layer
		}
	}

	return out
}

// sources calls a function with each file of Go below internal, and its package's path from there.
func sources(t *testing.T, each func(path, name string)) {
	t.Helper()

	files, internal := 0, filepath.Join(root, "internal")

	err := filepath.WalkDir(internal, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}

		files++

		name, err := filepath.Rel(internal, filepath.Dir(path))
		if err == nil {
			each(path, filepath.ToSlash(name))
		}

		return err
	})
	if err != nil || files == 0 {
		t.Fatal(files, err)
	}
}

// TestEveryPackageIsDescribed checks that ARCHITECTURE.md describes each package.
func TestEveryPackageIsDescribed(t *testing.T) {
	described := layers(t)

	sources(t, func(_, name string) {
		if described[name] == "" {
			t.Errorf("ARCHITECTURE.md does not describe internal/%s", name)
		}
	})
}

// TestPurePackagesAreAloneWithTheirData holds that what decides has no way to the cluster.
func TestPurePackagesAreAloneWithTheirData(t *testing.T) {
	const here = "github.com/ambit-k8s/ambit/internal/"

	pure, layer := 0, layers(t)
	isPure := func(name string) bool { return layer[name] == "data" || layer[name] == "pure" }

	sources(t, func(path, name string) {
		if !isPure(name) || strings.HasSuffix(path, "_test.go") {
			return
		}

		pure++

		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}

		for _, spec := range file.Imports {
			imported := strings.Trim(spec.Path.Value, `"`)
			if own, is := strings.CutPrefix(imported, here); impure.MatchString(imported) || is && !isPure(own) {
				t.Errorf("%s imports %s; let its callers read what it needs", path, imported)
			}
		}
	})

	if pure == 0 {
		t.Error("ARCHITECTURE.md names no pure package")
	}
}
