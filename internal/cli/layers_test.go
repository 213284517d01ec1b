package cli_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestVerbsStandAlone holds that what verbs share is below all of them: no verb imports another, but the page, which answers as
// they do.
func TestVerbsStandAlone(t *testing.T) {
	t.Parallel()

	const here = "github.com/ambit-k8s/ambit/internal/cli/"

	shared := []string{"command", "files", "output", "reading"}
	files := 0

	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		dir := filepath.ToSlash(filepath.Dir(path))
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") || dir == "." || dir == "serve" {
			return err
		}

		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}

		files++

		for _, spec := range file.Imports {
			imported, is := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), here)
			if is && !slices.Contains(shared, imported) {
				t.Errorf("%s imports the verb %s; move what they share to where all verbs find it", path, imported)
			}
		}

		return nil
	})
	if err != nil || files < 30 {
		t.Fatal(files, err)
	}
}
