package test

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestUpAndDown(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	up(t, dir)
	s := status(t, dir)
	if s.Phase != "running" || len(s.Components) != 5 {
		t.Fatalf("status says %+v", s)
	}
	pids := append(started(t, dir), s.PID)
	if len(pids) != 6 {
		t.Fatalf("the log tells of processes %v, want five and the supervisor", pids)
	}

	for _, pid := range pids {
		if !running(pid) {
			t.Errorf("process %d does not run", pid)
		}
	}

	second := execute(t, "devcluster", "up", "--dir", dir)
	if second.code != 1 || !strings.Contains(second.stderr, "already running in "+dir) ||
		!strings.Contains(second.stderr, "devcluster down --dir "+dir) {
		t.Errorf("a second up ended with %d and said %q", second.code, second.stderr)
	}

	succeed(t, "devcluster", "down", "--dir", dir)
	requireGone(t, pids)
	address := strings.TrimPrefix(s.Server, "https://")
	if connection, err := net.DialTimeout("tcp", address, time.Second); err == nil {
		_ = connection.Close()
		t.Errorf("something still listens on %s", address)
	}
	for _, name := range []string{"kubeconfig", "pki", "data", "config", "control"} {
		if exists(filepath.Join(dir, name)) {
			t.Errorf("%s is still there", name)
		}
	}
	if !exists(filepath.Join(dir, "logs", "kube-apiserver.log")) {
		t.Error("the logs are gone")
	}
	if got := execute(t, "devcluster", "status", "--dir", dir); got.code != 1 || !strings.Contains(got.stdout, "stopped") {
		t.Errorf("after down, status ended with %d and said %q", got.code, got.stdout)
	}
	succeed(t, "devcluster", "down", "--dir", dir)
}

func TestKilledSupervisorLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	up(t, dir)
	s := status(t, dir)
	pids := started(t, dir)
	if err := syscall.Kill(s.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, pid := range append(pids, s.PID) {
		eventually(t, "a process ends with its supervisor", func() bool { return !running(pid) })
	}
	if got := status(t, dir); got.Phase != "failed" || !strings.Contains(got.Reason, "killed") {
		t.Errorf("after kill -9, status says %+v", got)
	}
	up(t, dir)
	if got := status(t, dir); got.Phase != "running" {
		t.Errorf("after up, status says %+v", got)
	}
}

func TestComponentThatDiesStopsTheCluster(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	up(t, dir)
	// Not one that may have ended because the API server was restarted.
	succeed(t, "devcluster", "restart", "--dir", dir, "kube-apiserver")
	before := kill(t, dir, "kube-scheduler")
	eventually(t, "the scheduler is started again", func() bool {
		now := component(t, dir, "kube-scheduler")
		return now.PID != 0 && now.PID != before && now.Restarts == 1
	})
	pids := started(t, dir)
	kill(t, dir, "kube-scheduler")
	eventually(t, "the cluster stops", func() bool { return status(t, dir).Phase == "failed" })
	if got := status(t, dir); !strings.Contains(got.Reason, "kube-scheduler ended unexpectedly") {
		t.Errorf("the reason is %q", got.Reason)
	}
	for _, pid := range pids {
		eventually(t, "the other processes end", func() bool { return !running(pid) })
	}
}

// kill ends a component at once, and returns which process it was.
func kill(t *testing.T, dir, name string) int {
	t.Helper()
	pid := component(t, dir, name).PID
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	return pid
}

// fakePrograms returns a folder of programs in which etcd is a script.
func fakePrograms(t *testing.T, script string) string {
	t.Helper()
	folder := t.TempDir()
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"} {
		if err := os.Symlink(filepath.Join(bin(t), "k8s", name), filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "etcd"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestFailedStartLeavesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		script string
		flags  []string
		want   string
	}{
		"ends": {
			script: "echo warming up; echo 'Error: the disk is on fire' >&2; echo bye; exit 3\n",
			want:   "etcd did not start (exit code 3): Error: the disk is on fire; its log is ",
		},
		"hangs": {
			script: "sleep 1000 &\nwait\n",
			flags:  []string{"--start-timeout", "2s"},
			want:   "etcd was not ready after 2s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "cluster")
			programs := fakePrograms(t, test.script)
			got := execute(t, "devcluster", append([]string{"up", "--dir", dir, "--k8s-dir", programs}, test.flags...)...)
			log := filepath.Join(dir, "logs", "etcd.log")
			if got.code != 1 || !strings.Contains(got.stderr, test.want) || !strings.Contains(got.stderr, log) {
				t.Errorf("up ended with %d and said %q", got.code, got.stderr)
			}
			if strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("up said more than one line: %q", got.stderr)
			}
			requireGone(t, started(t, dir))
			if !exists(log) || exists(filepath.Join(dir, "data")) {
				t.Error("want the log of etcd kept and the data removed")
			}
		})
	}
}

func TestWithoutControllers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	up(t, dir, "--controllers=false")
	if s := status(t, dir); s.Phase != "running" || len(s.Components) != 2 {
		t.Errorf("status says %+v", s)
	}
	succeed(t, "devcluster", "save", "--dir", dir)
	mustKubectl(t, dir, "create", "namespace", "stays")
	mustKubectl(t, dir, "delete", "namespace", "stays", "--wait=false")
	if got := mustKubectl(t, dir, "get", "namespace", "stays", "-o", "jsonpath={.status.phase}"); got != "Terminating" {
		t.Errorf("a deleted namespace is %q", got)
	}
	succeed(t, "devcluster", "reset", "--dir", dir)
	if got := kubectl(t, dir, "get", "namespace", "stays"); !strings.Contains(got.stderr, "not found") {
		t.Errorf("after a reset it is still there: %s", got.stdout)
	}
}

func TestRunEndsWithItsInput(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("a-long-name-", 10), "cluster")
	cmd := exec.Command(filepath.Join(bin(t), "devcluster"), "run", "--dir", dir, "--nodes", "1", "--until-stdin-closes")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if want := "ready: KUBECONFIG=" + filepath.Join(dir, "kubeconfig") + "\n"; err != nil || line != want {
		t.Fatalf("it said %q (%v), want %q", line, err, want)
	}
	if got := status(t, dir); got.Phase != "running" {
		t.Errorf("status says %+v", got)
	}
	pids := started(t, dir)
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	requireGone(t, pids)
}

func TestInterruptedUpLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	cmd := exec.Command(filepath.Join(bin(t), "devcluster"), "up", "--dir", dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(dir, "logs", "devcluster.log")
	eventually(t, "a component starts", func() bool { return exists(log) && len(started(t, dir)) > 0 })
	// Not even an up that cannot clean up leaves anything.
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	eventually(t, "the cluster stops", func() bool { return status(t, dir).Phase == "failed" })
	for _, pid := range started(t, dir) {
		eventually(t, "its processes end", func() bool { return !running(pid) })
	}
}
