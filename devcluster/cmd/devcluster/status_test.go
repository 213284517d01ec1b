package main

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/ambit-k8s/ambit/devcluster/internal/workdir"
)

// A supervisor that ends closes its socket before it lets go of the folder. Whoever asks in between is told how it ended.
func TestStatusOfAClusterThatEnds(t *testing.T) {
	dir, err := workdir.Open(filepath.Join(t.TempDir(), "cluster"))
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Prepare(); err != nil {
		t.Fatal(err)
	}
	lock, err := dir.TryLock()
	if err != nil {
		t.Fatal(err)
	}
	path, err := dir.NewSocket()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if connection, err := listener.Accept(); err == nil {
			_ = connection.Close()
		}
		time.Sleep(100 * time.Millisecond)
		_ = dir.SaveState(workdir.State{Phase: workdir.Failed, Reason: "etcd ended"})
		_ = lock.Release()
	}()

	if got, err := status(t.Context(), dir.Root()); err != nil || got.Phase != workdir.Failed || got.Reason != "etcd ended" {
		t.Errorf("got %+v, %v", got, err)
	}
	_ = listener.Close()
}
