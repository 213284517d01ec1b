// Package live_test runs a real operator that follows its scope, with the token of its pod's service account, beside Ambit.
package live_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// grace is shorter than the default, because nobody wants to wait; longer than what an operator needs that lives.
const grace = 30 * time.Second

// suite is what the tests share, one after the other: one of them kills Ambit.
var suite struct {
	bed *testbed.Bed
	// operator is the program of examples/greeting.
	operator string
}

func TestMain(m *testing.M) {
	flag.Parse()

	if err := flag.Set("test.parallel", "1"); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}

	log.SetLogger(logr.Discard()) // What clients log is told by the errors that they return.

	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)

		code = 1
	}

	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	defer cancel()

	bed, err := testbed.Start(ctx, "cluster", "--restart-interval=1s", "--follow-grace="+grace.String())
	if err != nil {
		return 1, err
	}

	defer func() {
		if stopped := bed.Stop(); err == nil {
			err = stopped
		}
	}()

	suite.bed, suite.operator = bed, filepath.Join(bed.Cluster.Dir, "greeting")

	build := exec.CommandContext(ctx, "go", "build", "-o", suite.operator, "./greeting")
	build.Dir = filepath.Join(embedded.Root(), "examples")

	if out, err := build.CombinedOutput(); err != nil {
		return 1, fmt.Errorf("building the operator: %w: %s", err, out)
	}

	return m.Run(), nil
}
