package embedded

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// builtAmbit is the environment variable that names an ambit that is built already, as hack/test.sh sets it: linking one takes
// seconds, and a run of all tests starts dozens of clusters.
const builtAmbit = "AMBIT_TEST_PROGRAM"

// BuildAmbit returns the path of an ambit of the present source: the one that AMBIT_TEST_PROGRAM names, else a new one in dir.
func BuildAmbit(ctx context.Context, dir string) (string, error) {
	if path := os.Getenv(builtAmbit); path != "" {
		return path, nil
	}

	path := filepath.Join(dir, "ambit")
	//nolint:gosec // It builds this repository.
	build := exec.CommandContext(ctx, "go", "build", "-o", path, "./cmd/ambit")
	build.Dir = Root()

	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building ambit: %w: %s", err, out)
	}

	return path, nil
}
