package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// buildBinary builds Ambit for a platform and returns the program. What the environment would change in it is set here:
// no cgo, no paths, no note of the version control, no identifier that depends on the folder.
func buildBinary(ctx context.Context, r *Release, p Platform) ([]byte, error) {
	folder, err := os.MkdirTemp("", "ambit-release-")
	if err != nil {
		return nil, fmt.Errorf("making a folder to build in: %w", err)
	}
	defer os.RemoveAll(folder) //nolint:errcheck // A folder of temporary files.

	program := filepath.Join(folder, "ambit")
	//nolint:gosec // The version was checked, and the platforms are ours.
	cmd := exec.CommandContext(ctx, "go", "build", "-mod=readonly", "-trimpath", "-buildvcs=false",
		"-ldflags=-s -w -buildid= -X github.com/ambit-k8s/ambit/internal/cli.Version="+r.Version,
		"-o", program, "./cmd/ambit")
	cmd.Dir = r.Root
	cmd.Env = append(cleanEnvironment(), "CGO_ENABLED=0", "GOFLAGS=", "GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off",
		"GOOS="+p.OS, "GOARCH="+p.Arch, "GOAMD64=v1", "GOARM64=v8.0", "GOPPC64=power8")

	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("building for %s: %w\n%s", p, err, out)
	}

	content, err := os.ReadFile(program)
	if err != nil {
		return nil, fmt.Errorf("reading what was built for %s: %w", p, err)
	}

	return content, nil
}

// cleanEnvironment is ours without what says how Go builds. Where its caches are, and how modules are fetched, may stay.
func cleanEnvironment() []string {
	var kept []string

	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		switch name {
		case "GOPATH", "GOROOT", "GOCACHE", "GOMODCACHE", "GOTMPDIR", "GOTOOLCHAIN",
			"GOPROXY", "GOPRIVATE", "GONOPROXY", "GONOSUMDB", "GOSUMDB", "GOAUTH", "GOVCS":
			kept = append(kept, variable)
		default:
			if !strings.HasPrefix(name, "GO") && !strings.HasPrefix(name, "CGO") {
				kept = append(kept, variable)
			}
		}
	}

	return kept
}
