package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// readyPrefix begins the line by which devcluster says that the cluster is ready.
const readyPrefix = "ready: KUBECONFIG="

// shownLines and shownColumns are how much of a log is shown when something went wrong.
const (
	shownLines   = 15
	shownColumns = 250
)

// stage is a cluster with Ambit on it.
type stage struct {
	screen *screen
	// dir is one for everything that is written.
	dir string
	// end ends everything, with a reason.
	end context.CancelCauseFunc

	// kubeconfig is that of a cluster administrator.
	kubeconfig       string
	cluster, manager *embedded.Process
	// kubelet runs the one operator of the play that is real.
	kubelet *embedded.Kubelet
}

// perform sets the stage, and plays or serves on it.
func (s *stage) perform(ctx context.Context, serve bool) error {
	if err := s.startCluster(ctx); err != nil {
		return err
	}

	k := &kubectl{stage: s}

	if serve {
		if err := s.install(ctx, k); err != nil {
			return err
		}

		return s.serve(ctx)
	}

	if err := s.install(ctx, k, "--restart-interval="+restartInterval.String()); err != nil {
		return err
	}

	return perform(ctx, s, k)
}

func (s *stage) startCluster(ctx context.Context) error {
	s.screen.sayf("Starting an embedded Kubernetes...")

	var complaints bytes.Buffer

	// Without a context: it ends by its lifeline, in its own time, and a context would kill it.
	command := exec.Command(embedded.Program("devcluster"),
		"run", "--dir", filepath.Join(s.dir, "cluster"), "--until-stdin-closes")
	command.Stderr = &complaints

	// A pipe of our own: exec's would be closed as soon as the program ends, perhaps before its last line was read.
	output, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting the cluster: %w", err)
	}
	defer output.Close() //nolint:errcheck // It was read to where it matters.

	command.Stdout = writer

	s.cluster, err = embedded.StartProcess("the cluster", command, func(err error) {
		s.end(errors.Join(err, errors.New(strings.TrimSpace(complaints.String()))))
	})
	if err := errors.Join(err, writer.Close()); err != nil {
		return err
	}

	context.AfterFunc(ctx, func() { _ = output.Close() })

	line, err := bufio.NewReader(output).ReadString('\n')

	kubeconfig, ready := strings.CutPrefix(strings.TrimSpace(line), readyPrefix)
	if !ready {
		return fmt.Errorf("the cluster did not start: it said %q: %w", line, err)
	}

	s.kubeconfig = kubeconfig

	return nil
}

// clear stops the operator, the manager and then the cluster.
func (s *stage) clear() error {
	var errs []error

	if s.kubelet != nil {
		errs = append(errs, s.kubelet.Stop())
	}

	for _, p := range []*embedded.Process{s.manager, s.cluster} {
		if p != nil {
			errs = append(errs, p.Stop())
		}
	}

	return errors.Join(errs...)
}

// lastLogged is the end of the manager's log.
func (s *stage) lastLogged() string {
	log, err := os.ReadFile(s.managerLog())
	if err != nil || len(log) == 0 {
		return "(none)"
	}

	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	lines = lines[max(0, len(lines)-shownLines):]

	for i, line := range lines {
		lines[i] = line[:min(len(line), shownColumns)]
	}

	return strings.Join(lines, "\n")
}

func (s *stage) managerLog() string { return filepath.Join(s.dir, "manager.log") }

// environment is that of the programs: without a KUBECONFIG, which could lead to somebody's cluster, and with an operator
// namespace folder that goes away afterwards.
func (s *stage) environment(more ...string) []string {
	var out []string

	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "KUBECONFIG=") && !strings.HasPrefix(variable, "HOME=") {
			out = append(out, variable)
		}
	}

	return append(append(out, "HOME="+s.dir), more...)
}
