package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	claimed = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")
	defined = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
)

// TestClaimsHaveTheirTests holds that every test that a page names exists, and that every attack is on the page about security.
func TestClaimsHaveTheirTests(t *testing.T) {
	t.Parallel()

	tests := testsIn(t, root)

	for _, page := range markdownFiles(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}

		for _, m := range claimed.FindAllStringSubmatch(string(text), -1) {
			if !tests[m[1]] {
				t.Errorf("%s names %s, which is no test", page, m[1])
			}
		}
	}

	text, err := os.ReadFile("security.md")
	if err != nil {
		t.Fatal(err)
	}

	attacks := testsIn(t, filepath.Join(root, "test", "attacks"))
	if len(attacks) < 15 {
		t.Errorf("found only %d attacks", len(attacks))
	}

	for name := range attacks {
		if name != "TestMain" && !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/security.md does not say what %s holds", name)
		}
	}
}

func testsIn(t *testing.T, dir string) map[string]bool {
	t.Helper()

	found := map[string]bool{}

	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "bin" || d.Name() == ".git"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}

		text, err := os.ReadFile(path)
		for _, m := range defined.FindAllStringSubmatch(string(text), -1) {
			found[m[1]] = true
		}

		return err
	})
	if err != nil {
		t.Fatal(err)
	}

	return found
}
