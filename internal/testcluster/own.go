package testcluster

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// readyPrefix begins the line by which devcluster says that the cluster is ready.
const readyPrefix = "ready: KUBECONFIG="

// runAndRemove runs a cluster and removes its folder afterwards. A shell does it, because the test binary, which is the
// reason for both to end, is gone by then.
const runAndRemove = `"$1" run --dir "$2" --until-stdin-closes; rm -rf "$2"`

// lifeline is the writing end of the cluster's standard input. Nothing is ever written. The kernel closes it when the
// test binary ends, however it ends, and that stops the cluster; the variable keeps the garbage collector from doing so
// earlier.
var lifeline io.Closer //nolint:unused // being held is its use

// ownCluster starts a cluster that lives as long as this process, at the first call, and returns its kubeconfig.
var ownCluster = sync.OnceValues(func() (string, error) {
	program := filepath.Join(Root(), "bin", "devcluster")
	for _, path := range []string{program, Kubectl()} {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("%s is missing; run `make build devcluster-k8s`, or `make test` for everything", path)
		}
	}

	dir, err := os.MkdirTemp("", "ambit-test-")
	if err != nil {
		return "", err
	}

	cmd := exec.Command("/bin/sh", "-c", runAndRemove, "sh", program, dir)
	// Ctrl-C is for the tests. It ends the cluster by way of the lifeline, after which the shell still has work to do.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}

	var complaints bytes.Buffer

	cmd.Stderr = &complaints

	if lifeline, err = cmd.StdinPipe(); err != nil {
		return "", err
	}

	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}

	if err := cmd.Start(); err != nil {
		return "", err
	}

	line, err := bufio.NewReader(stdout).ReadString('\n')
	if kubeconfig, ready := strings.CutPrefix(line, readyPrefix); ready {
		return strings.TrimSpace(kubeconfig), nil
	}

	return "", errors.Join(fmt.Errorf("%s said %q", program, line), err, cmd.Wait(), errors.New(complaints.String()))
})
