// Package test runs the built programs the way users do.
package test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/ambit-k8s/ambit/devcluster/internal/process"
)

// patience bounds every wait. It is far above what anything takes, for
// machines that are busy with other things.
const patience = 2 * time.Minute

// bin returns the folder of the built programs.
func bin(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("DEVCLUSTER_BIN")
	if folder == "" {
		folder = filepath.Join("..", "..", "bin")
	}
	folder, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"devcluster", "k8s/kubernetes", "k8s/kwok", "k8s/kubectl"} {
		if _, err := os.Stat(filepath.Join(folder, program)); err != nil {
			t.Fatalf("%v; build the programs with: make devcluster", err)
		}
	}
	return folder
}

// result is how a program ended.
type result struct {
	stdout, stderr string
	code           int
}

// execute runs one of the built programs and waits for it.
func execute(t *testing.T, program string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	return executeIn(ctx, t, program, args...)
}

func executeIn(ctx context.Context, t *testing.T, program string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, filepath.Join(bin(t), program), args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("running %s %v: %v", program, args, err)
	}
	return result{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
}

// succeed runs a program that must succeed and returns its output.
func succeed(t *testing.T, program string, args ...string) string {
	t.Helper()
	got := execute(t, program, args...)
	if got.code != 0 {
		t.Fatalf("%s %v ended with %d\n%s%s", program, args, got.code, got.stdout, got.stderr)
	}
	return got.stdout
}

// up starts a cluster that is stopped at the end of the test at the latest.
func up(t *testing.T, dir string, flags ...string) {
	t.Helper()
	t.Cleanup(func() {
		// The context of the test has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if got := executeIn(ctx, t, "devcluster", "down", "--dir", dir); got.code != 0 {
			t.Errorf("stopping the cluster: %s", got.stderr)
		}
	})
	succeed(t, "devcluster", append([]string{"up", "--dir", dir}, flags...)...)
}

// kubectl runs kubectl as the administrator of a cluster.
func kubectl(t *testing.T, dir string, args ...string) result {
	t.Helper()
	return execute(t, "k8s/kubectl", append([]string{"--kubeconfig", filepath.Join(dir, "kubeconfig")}, args...)...)
}

func mustKubectl(t *testing.T, dir string, args ...string) string {
	t.Helper()
	got := kubectl(t, dir, args...)
	if got.code != 0 {
		t.Fatalf("kubectl %v ended with %d\n%s%s", args, got.code, got.stdout, got.stderr)
	}
	return got.stdout
}

// applyText applies a manifest.
func applyText(t *testing.T, dir, manifest string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.json")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	mustKubectl(t, dir, "apply", "-f", file)
}

// state is what status -o json says.
type state struct {
	Phase      string           `json:"phase"`
	Reason     string           `json:"reason"`
	PID        int              `json:"pid"`
	Server     string           `json:"server"`
	Components []componentState `json:"components"`
}

type componentState struct {
	Name     string `json:"name"`
	PID      int    `json:"pid"`
	Restarts int    `json:"restarts"`
}

func status(t *testing.T, dir string) state {
	t.Helper()
	got := execute(t, "devcluster", "status", "--dir", dir, "--output", "json")
	var s state
	if err := json.Unmarshal([]byte(got.stdout), &s); err != nil {
		t.Fatalf("reading the status: %v\n%s%s", err, got.stdout, got.stderr)
	}
	return s
}

// component is what the status says of a component, if anything.
func component(t *testing.T, dir, name string) componentState {
	t.Helper()
	for _, c := range status(t, dir).Components {
		if c.Name == name {
			return c
		}
	}
	return componentState{}
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %s in vain: %s", patience, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

var startedPID = regexp.MustCompile(`msg=started component=\S+ pid=(\d+)`)

// started returns the processes which the log says were started.
func started(t *testing.T, dir string) []int {
	t.Helper()
	var pids []int
	for _, match := range startedPID.FindAllStringSubmatch(read(t, filepath.Join(dir, "logs", "devcluster.log")), -1) {
		pid, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// running tells whether a process runs. One that has ended and whose parent
// has not noticed yet does not.
func running(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	zombie, err := process.IsZombie(pid)
	if err != nil {
		return !errors.Is(err, os.ErrNotExist)
	}
	return !zombie
}

// requireGone fails the test if a process still runs.
func requireGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		if running(pid) {
			t.Errorf("process %d is still there", pid)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
