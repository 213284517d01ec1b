package faults_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestClusterThatWentBack restores a backup of etcd, so that a manager knows later versions than there are. It is the last test:
// what others have seen of the cluster is no longer so.
func TestClusterThatWentBack(t *testing.T) {
	kill(t)

	w := newWorld(t, "wentback", 1, 2)
	m := replica(t)

	if err := m.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = m.Kill() })
	w.scope(w.members...)
	w.settled()

	// Nobody can renew a lease while a backup is made, which takes as long as the disk does.
	if err := m.Stop(); err != nil {
		t.Fatal(err)
	}

	backup := filepath.Join(t.TempDir(), "etcd")
	if err := suite.cluster.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}

	if err := m.Start(); err != nil {
		t.Fatal(err)
	}

	w.scope()
	w.settled()

	for i := range 100 {
		w.create(&corev1.ConfigMap{ObjectMeta: w.meta(fmt.Sprint("later-", i))})
	}

	before := m.PID()
	if err := suite.cluster.Restore(t.Context(), backup); err != nil {
		t.Fatal(err)
	}

	w.eventually("the manager ends", func() bool { return errors.Is(syscall.Kill(before, 0), syscall.ESRCH) })

	_ = m.Kill() // It has failed already.

	if err := m.Start(); err != nil {
		t.Fatal(err)
	}

	w.scope(w.members[0])
	w.settled()
}
