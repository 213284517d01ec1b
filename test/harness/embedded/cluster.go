// Package embedded runs the embedded Kubernetes, and Ambit on it, for tests, the benchmark and the demo. It needs what
// "make build" and "make devcluster-k8s" build.
package embedded

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// readyPrefix begins the line by which devcluster says that the cluster is ready.
const readyPrefix = "ready: KUBECONFIG="

// runAndRemove runs a cluster and removes its folder afterwards. A shell does it, because this process may be gone by then.
const runAndRemove = `"$@"; code=$?; rm -rf "$0"; exit $code`

// otherKubernetes is the environment variable that names a folder with the programs of another version of Kubernetes, as
// hack/test-kubernetes.sh sets it.
const otherKubernetes = "AMBIT_KUBERNETES"

// stopTimeout is how long a cluster may take to stop.
const stopTimeout = 30 * time.Second

// Cluster is an embedded Kubernetes that lives no longer than this process: it ends when its standard input does, which
// the kernel closes even if this process is killed.
type Cluster struct {
	// Dir is a folder for files of whoever uses the cluster, and is removed with it. Kubeconfig is a kubeconfig of cluster-admin.
	Dir, Kubeconfig string

	// home is the folder that devcluster runs the cluster in.
	home    string
	command *exec.Cmd
	stdin   io.Closer
	// auditLog is where the API server notes who asked for what. What stands before auditStart is from earlier users of the cluster,
	// and is skipped.
	auditLog   string
	auditStart int64
	// release gives back the lock on a cluster of a pool; nil for a cluster of its own.
	release func() error
}

// Root returns the folder of the repository: the nearest one with a go.mod, from the working directory upwards; the
// working directory itself where there is none.
func Root() string {
	start, err := os.Getwd()
	if err != nil {
		return "."
	}

	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}

		if dir == filepath.Dir(dir) {
			return start
		}
	}
}

// Program is the path of a program in bin, such as ambit or k8s/kubectl.
func Program(name string) string { return filepath.Join(Root(), "bin", filepath.FromSlash(name)) }

// Start starts a cluster in a new folder below the system's temporary one and waits until it is ready. arguments are
// further ones for "devcluster run".
func Start(ctx context.Context, arguments ...string) (*Cluster, error) {
	return start(ctx, func(string) []string { return arguments })
}

// start is Start with arguments that depend on the cluster's folder.
func start(ctx context.Context, arguments func(dir string) []string) (*Cluster, error) {
	for _, name := range []string{"devcluster", "k8s/kubectl"} {
		if _, err := os.Stat(Program(name)); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s is missing; run `make build devcluster-k8s`", Program(name))
		}
	}

	dir, err := os.MkdirTemp("", "ambit-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the cluster: %w", err)
	}

	c := &Cluster{Dir: dir, home: dir}
	if err := c.start(ctx, arguments(dir)); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the embedded Kubernetes: %w", err), c.Stop())
	}

	return c, nil
}

func (c *Cluster) start(ctx context.Context, arguments []string) error {
	var complaints bytes.Buffer

	if dir := os.Getenv(otherKubernetes); dir != "" {
		arguments = append([]string{"--k8s-dir", dir}, arguments...)
	}

	arguments = append([]string{"-c", runAndRemove, c.Dir, Program("devcluster"), "run", "--dir", c.Dir, "--until-stdin-closes"},
		arguments...)
	//nolint:noctx,gosec // It ends by its standard input, and runs what this repository built.
	c.command = exec.Command("/bin/sh", arguments...)
	c.command.Stderr = &complaints
	// Ctrl-C on a terminal is for this process, which then stops the cluster in its own time.
	c.command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}

	stdin, err := c.command.StdinPipe()
	if err != nil {
		return fmt.Errorf("connecting to it: %w", err)
	}

	stdout, err := c.command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("connecting to it: %w", err)
	}

	if err := c.command.Start(); err != nil {
		return fmt.Errorf("running %s: %w", c.command.Path, err)
	}

	c.stdin = stdin
	abort := context.AfterFunc(ctx, func() { _ = stdin.Close() })

	defer abort()

	line, err := bufio.NewReader(stdout).ReadString('\n')
	if kubeconfig, ready := strings.CutPrefix(line, readyPrefix); ready {
		c.Kubeconfig = strings.TrimSpace(kubeconfig)

		return nil
	}

	if ctx.Err() != nil {
		return fmt.Errorf("waiting for it: %w", context.Cause(ctx))
	}

	return errors.Join(fmt.Errorf("it said %q: %s", line, strings.TrimSpace(complaints.String())), err)
}

// Stop ends the cluster, or the lease of it, and removes its folder.
func (c *Cluster) Stop() error {
	var errs []error

	if c.stdin != nil {
		_ = c.stdin.Close() // It may have been closed by the end of a context.

		kill := time.AfterFunc(stopTimeout, func() { _ = c.command.Process.Kill() })
		errs = append(errs, c.command.Wait())

		kill.Stop()
	}

	if c.release != nil {
		errs = append(errs, c.release())
	}

	return errors.Join(append(errs, os.RemoveAll(c.Dir))...)
}

// OpenAuditLog opens the audit log of a cluster that Lease returned, at the first request that was made since.
func (c *Cluster) OpenAuditLog() (*os.File, error) {
	log, err := os.Open(c.auditLog)
	if err != nil {
		return nil, fmt.Errorf("opening the audit log: %w", err)
	}

	if _, err := log.Seek(c.auditStart, io.SeekStart); err != nil {
		return nil, errors.Join(fmt.Errorf("finding byte %d of the audit log: %w", c.auditStart, err), log.Close())
	}

	return log, nil
}

// Services is the socket at which the API server asks for the Services of the cluster.
func (c *Cluster) Services() string { return ServicesIn(c.home) }

// ServicesIn is the same for a cluster in a folder.
func ServicesIn(home string) string { return filepath.Join(home, "services.sock") }

// Config returns how to reach the cluster as cluster-admin, without a limit on the client's own rate.
func (c *Cluster) Config() (*rest.Config, error) { return ConfigOf(c.Kubeconfig) }

// ConfigOf is the same for a cluster with a kubeconfig.
func ConfigOf(kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", kubeconfig, err)
	}

	config.QPS = -1
	config.Wrap(untilStored)

	return config, nil
}

// Kubectl runs kubectl as cluster-admin and returns what it printed.
func (c *Cluster) Kubectl(ctx context.Context, arguments ...string) (string, error) {
	arguments = append([]string{"--kubeconfig", c.Kubeconfig}, arguments...)
	//nolint:gosec // It runs what this repository built.
	out, err := exec.CommandContext(ctx, Program("k8s/kubectl"), arguments...).CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("kubectl %s: %w: %s", strings.Join(arguments[2:], " "), err, bytes.TrimSpace(out))
	}

	return string(out), nil
}

// devcluster runs a verb of devcluster about the cluster and returns what it printed.
func (c *Cluster) devcluster(ctx context.Context, verb string, arguments ...string) ([]byte, error) {
	arguments = append([]string{verb, "--dir", c.home}, arguments...)
	//nolint:gosec // It runs what this repository built.
	out, err := exec.CommandContext(ctx, Program("devcluster"), arguments...).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("devcluster %s of the cluster in %s: %w: %s", verb, c.home, err, bytes.TrimSpace(out))
	}

	return out, nil
}

// Restart restarts a component, such as kube-apiserver, by a signal (TERM or KILL), and waits until it is back.
func (c *Cluster) Restart(ctx context.Context, component, signal string) error {
	_, err := c.devcluster(ctx, "restart", "--signal", signal, component)

	return err
}
