// Package ambit checks what stands at the root of the repository.
package ambit

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestToolsArePinned: every tool that the Makefile builds comes from a module of tools/, whose version is written down there with
// a checksum. Two versions of one tool, such as Helm 3 and Helm 4, have names of their own.
func TestToolsArePinned(t *testing.T) {
	t.Parallel()

	makefile, err := os.ReadFile("Makefile")
	if err != nil {
		t.Fatal(err)
	}

	recipe := regexp.MustCompile(`(?m)^\$\(TOOLS\)/([^:\s]+): (\S+\.mod) (\S+\.sum)\n\t@hack/build-tool\.sh \$@ (\S+)`)
	built := recipe.FindAllStringSubmatch(string(makefile), -1)
	names := map[string]string{}

	for _, m := range built {
		name, module, sums, program := m[1], m[2], m[3], m[4]

		if other, twice := names[name]; twice {
			t.Errorf("%s is %s as well as %s", name, other, program)
		}

		names[name] = program
		version := pinned(t, module, program)

		sum, err := os.ReadFile(filepath.Clean(sums))
		if err != nil || version == "" || !strings.Contains(string(sum), version+" h1:") {
			t.Errorf("%s builds %s, and %s pins %q (%v)", name, program, module, version, err)
		}
	}

	if len(built) < 6 || names["helm"] == "" || names["helm4"] == "" {
		t.Errorf("of the Makefile, only these are known: %v", names)
	}
}

// pinned is the module that a program is of, with its version, as a go.mod requires it.
func pinned(t *testing.T, module, program string) string {
	t.Helper()

	content, err := os.ReadFile(filepath.Clean(module))
	if err != nil {
		t.Fatal(err)
	}

	found := ""

	for line := range strings.Lines(string(content)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) < 2 || !strings.HasPrefix(fields[1], "v") {
			continue
		}

		// The longest path is the module: others may be the beginning of it.
		if of := fields[0]; (program == of || strings.HasPrefix(program, of+"/")) && len(of) > strings.Index(found, " ") {
			found = of + " " + fields[1]
		}
	}

	return found
}
