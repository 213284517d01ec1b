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
)

// readyPrefix begins the line by which devcluster says that the cluster is ready.
const readyPrefix = "ready: KUBECONFIG="

// stage is a cluster with Ambit on it.
type stage struct {
	screen *screen
	// root is the folder of the repository, folder one for everything that is written.
	root, folder string
	// end ends everything, with a reason.
	end context.CancelCauseFunc

	// kubeconfig is that of a cluster administrator.
	kubeconfig       string
	cluster, manager *process
}

// perform sets the stage, and plays or serves on it.
func (s *stage) perform(ctx context.Context, serve bool) error {
	if err := s.startCluster(ctx); err != nil {
		return err
	}

	k := &kubectl{stage: s}
	if err := s.install(ctx, k); err != nil {
		return err
	}

	if serve {
		return s.serve(ctx)
	}

	return perform(ctx, s, k)
}

func (s *stage) startCluster(ctx context.Context) error {
	s.screen.say("Starting an embedded Kubernetes...")

	var complaints bytes.Buffer

	//nolint:noctx // It ends by its lifeline, in its own time; a context would kill it.
	command := exec.Command(s.program("devcluster"), "run", "--dir", filepath.Join(s.folder, "cluster"), "--until-stdin-closes")
	command.Stderr = &complaints

	// A pipe of our own: exec's would be closed as soon as the program ends, perhaps before its last line was read.
	output, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("starting the cluster: %w", err)
	}
	defer output.Close()

	command.Stdout = writer

	s.cluster, err = start("the cluster", command, func(err error) {
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

// clear stops the manager and then the cluster.
func (s *stage) clear() error {
	var errs []error

	for _, p := range []*process{s.manager, s.cluster} {
		if p != nil {
			errs = append(errs, p.stop())
		}
	}

	return errors.Join(errs...)
}

// showLogs says where the logs are, and shows the end of the manager's.
func (s *stage) showLogs() {
	s.screen.say("\nThe logs are in %s; nothing is left running.", s.folder)

	log, err := os.ReadFile(s.managerLog())
	if err != nil || len(log) == 0 {
		return
	}

	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	s.screen.say("The last lines of %s:", s.managerLog())
	s.screen.block(strings.Join(lines[max(0, len(lines)-15):], "\n"))
}

func (s *stage) program(name string) string { return filepath.Join(s.root, "bin", name) }

func (s *stage) managerLog() string { return filepath.Join(s.folder, "manager.log") }

// environment is that of the programs: without a KUBECONFIG, which could lead to somebody's cluster, and with a home
// folder that goes away afterwards.
func (s *stage) environment(more ...string) []string {
	var out []string

	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "KUBECONFIG=") && !strings.HasPrefix(variable, "HOME=") {
			out = append(out, variable)
		}
	}

	return append(append(out, "HOME="+s.folder), more...)
}
