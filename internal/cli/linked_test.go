package cli_test

import (
	"bytes"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/cli"
)

// TestLinkerDropsWhatNobodyCalls holds off two things that make the program, and so the manager's resident memory, a fifth
// larger. A reachable call of a method by a computed name, as text/template and html/template make it, keeps every exported
// method of every type: SwaggerDoc of Kubernetes' types is one that nobody calls. And cli-runtime's FilenameParam keeps
// kustomize.
func TestLinkerDropsWhatNobodyCalls(t *testing.T) {
	t.Parallel()

	// With cgo, the linker keeps whatever a plugin could call. The program is built without.
	if info, ok := debug.ReadBuildInfo(); ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "1"}) {
		t.Skip("this test was linked with cgo, the program is not")
	}

	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}

	program, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}

	// The command line is part of this test's program, which names its functions. What is looked for must not be a constant here.
	linked := func(name ...string) bool { return bytes.Contains(program, []byte(strings.Join(name, "."))) }

	if cli.NewRoot(os.Stdout, os.Stderr) == nil || !linked("github.com/ambit-k8s/ambit/internal/cli", "NewRoot") {
		t.Fatal("the names of functions are not where they are looked for")
	}

	if linked("k8s.io/api/core/v1.PodSpec", "SwaggerDoc") {
		t.Error("methods that nobody calls are linked: go build -ldflags=-dumpdep ./cmd/ambit names with <ReflectMethod> why")
	}

	if linked("sigs.k8s.io/kustomize/api/krusty", "MakeKustomizer") {
		t.Error("kustomize is linked: read files by internal/cli/files")
	}
}
