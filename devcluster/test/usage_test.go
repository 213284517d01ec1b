package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestForeignFolderIsRefused(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	if err := os.WriteFile(precious, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, verb := range []string{"up", "run", "down", "status"} {
		got := execute(t, "devcluster", verb, "--dir", dir)
		if got.code != 1 || !strings.Contains(got.stderr, "was not made by devcluster") {
			t.Errorf("%s ended with %d and said %q", verb, got.code, got.stderr)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the folder was changed: %v (%v)", entries, err)
	}
}

func TestMissingProgramsAreNamed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cluster")
	got := execute(t, "devcluster", "up", "--dir", dir, "--k8s-dir", t.TempDir())
	if got.code != 1 || !strings.Contains(got.stderr, "make devcluster-k8s") {
		t.Errorf("up ended with %d and said %q", got.code, got.stderr)
	}
}

func TestWrongUsage(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{},
		{"fly"},
		{"up"},
		{"up", "--dir", dir, "extra"},
		{"up", "--dir", dir, "--nodes", "-1"},
		{"run", "--dir", dir, "--no-such-flag"},
		{"restart", "--dir", dir},
		{"restart", "--dir", dir, "no-such-component"},
		{"restart", "--dir", dir, "--signal", "HUP", "etcd"},
		{"status", "--dir", dir, "--output", "xml"},
	} {
		if got := execute(t, "devcluster", args...); got.code != 2 || got.stderr == "" {
			t.Errorf("%v ended with %d and said %q", args, got.code, got.stderr)
		}
	}
}
