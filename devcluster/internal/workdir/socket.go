package workdir

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// maxSocketPath is below what every Unix allows: 104 bytes on macOS, 108 on
// Linux, the final zero included.
const maxSocketPath = 100

// socketPrefix starts the name of the folder for a socket whose path would be
// too long inside the folder of the cluster.
const socketPrefix = "devcluster-"

const (
	controlSocket = "control.sock"
	etcdSocket    = "etcd.sock"
)

// NewSocket returns where the supervisor shall listen, and records it.
func (d Dir) NewSocket() (string, error) {
	path := filepath.Join(d.root, controlSocket)
	if len(d.etcdSocket()) > maxSocketPath {
		folder, err := os.MkdirTemp("", socketPrefix)
		if err != nil {
			return "", fmt.Errorf("making a folder for sockets: %w", err)
		}
		path = filepath.Join(folder, controlSocket)
	}
	if err := os.WriteFile(d.socketRecord(), []byte(path+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("recording the control socket: %w", err)
	}
	return path, nil
}

// Socket returns where the supervisor of a running cluster listens.
func (d Dir) Socket() (string, error) {
	content, err := os.ReadFile(d.socketRecord())
	if err != nil {
		return "", fmt.Errorf("finding the control socket: %w", err)
	}
	return strings.TrimSpace(string(content)), nil
}

// EtcdSocket returns where etcd of a running cluster listens. Whoever opens
// that socket may read and write everything, so it is in a folder that only the
// user who started the cluster may enter.
func (d Dir) EtcdSocket() (string, error) {
	control, err := d.Socket()
	if err != nil {
		return "", err
	}
	if folder := filepath.Dir(control); folder != d.root {
		return filepath.Join(folder, etcdSocket), nil
	}
	return d.etcdSocket(), nil
}

// etcdSocket is the longest path of a socket in the folder of the cluster.
func (d Dir) etcdSocket() string { return filepath.Join(d.Data(), etcdSocket) }

func (d Dir) socketRecord() string { return filepath.Join(d.root, "control") }

// removeSockets removes the sockets and their record. What cannot be removed
// does no harm: every cluster records a socket of its own.
func (d Dir) removeSockets() {
	path, err := d.Socket()
	if err != nil {
		return
	}
	// The record is a plain file. Whatever it says, only what this program
	// can have made is removed.
	folder := filepath.Dir(path)
	if filepath.Base(path) == controlSocket {
		_ = os.Remove(path)
		if strings.HasPrefix(filepath.Base(folder), socketPrefix) && folder != d.root {
			_ = os.Remove(filepath.Join(folder, etcdSocket))
			_ = os.Remove(folder)
		}
	}
	_ = os.Remove(d.socketRecord())
}
