// Package workdir is the folder a cluster lives in: what is where, who may
// use it, and what is removed when the cluster stops.
package workdir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// marker is the file that says a folder was made by this program. Without it
// nothing in a folder is ever removed.
const marker = ".devcluster"

// Dir is the folder of one cluster. All paths are absolute.
type Dir struct{ root string }

// Open returns the folder, which is made if it does not exist. A folder that
// holds anything and was not made by this program is refused.
func Open(path string) (Dir, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return Dir{}, fmt.Errorf("finding the folder %s: %w", path, err)
	}
	// Only its owner may look inside: the folder holds keys of the cluster.
	if err := os.MkdirAll(root, 0o700); err != nil {
		return Dir{}, fmt.Errorf("making the folder of the cluster: %w; choose a folder you may write to", err)
	}
	if err := check(root); err != nil {
		return Dir{}, err
	}
	content := []byte("This folder belongs to a devcluster, which removes what it put here.\n")
	if err := os.WriteFile(filepath.Join(root, marker), content, 0o600); err != nil {
		return Dir{}, fmt.Errorf("marking the folder of the cluster: %w; choose a folder you may write to", err)
	}
	d := Dir{root: root}
	if err := os.MkdirAll(d.Logs(), 0o700); err != nil {
		return Dir{}, fmt.Errorf("making the folder for logs: %w", err)
	}
	return d, nil
}

// Existing returns a folder that was used by a cluster before, and
// fs.ErrNotExist if there is no such folder.
func Existing(path string) (Dir, error) {
	root, err := filepath.Abs(path)
	if err != nil {
		return Dir{}, fmt.Errorf("finding the folder %s: %w", path, err)
	}
	if _, err := os.Stat(root); err != nil {
		return Dir{}, fmt.Errorf("looking for the folder of the cluster: %w", err)
	}
	if _, err := os.Stat(filepath.Join(root, marker)); err != nil {
		return Dir{}, foreign(root)
	}
	return Dir{root: root}, nil
}

func check(root string) error {
	entries, err := os.ReadDir(root)
	if err != nil {
		return fmt.Errorf("reading the folder of the cluster: %w", err)
	}
	if len(entries) == 0 {
		return nil
	}
	if _, err := os.Stat(filepath.Join(root, marker)); errors.Is(err, fs.ErrNotExist) {
		return foreign(root)
	} else if err != nil {
		return fmt.Errorf("reading the folder of the cluster: %w", err)
	}
	return nil
}

func foreign(root string) error {
	return fmt.Errorf("the folder %s was not made by devcluster; nothing in it was touched, choose an empty or new folder", root)
}

// Root is the folder itself.
func (d Dir) Root() string { return d.root }

// Kubeconfig is the file that clients of the cluster use.
func (d Dir) Kubeconfig() string { return filepath.Join(d.root, "kubeconfig") }

// ServicesSocket is where the API server asks for services and pods. Whoever
// plays their network listens there.
func (d Dir) ServicesSocket() string { return filepath.Join(d.root, "services.sock") }

// PKI is the folder for certificates and keys.
func (d Dir) PKI() string { return filepath.Join(d.root, "pki") }

// Config is the folder for the configuration of the components.
func (d Dir) Config() string { return filepath.Join(d.root, "config") }

// Data is the folder for what the components store.
func (d Dir) Data() string { return filepath.Join(d.root, "data") }

// Logs is the folder for logs, which outlive the cluster.
func (d Dir) Logs() string { return filepath.Join(d.root, "logs") }

// Log is the log file of a component.
func (d Dir) Log(component string) string { return filepath.Join(d.Logs(), component+".log") }

// OwnLog is the log file of the program that supervises the components.
func (d Dir) OwnLog() string { return d.Log("devcluster") }

// Prepare makes the folder ready for a fresh cluster: what an earlier one
// left, perhaps because it was killed, is removed, its logs included. Only
// the holder of the lock may call it.
func (d Dir) Prepare() error {
	if err := d.Clean(); err != nil {
		return err
	}
	if err := os.MkdirAll(d.Logs(), 0o700); err != nil {
		return fmt.Errorf("making the folder for logs: %w", err)
	}
	logs, err := filepath.Glob(d.Log("*"))
	if err != nil {
		return fmt.Errorf("listing old logs: %w", err)
	}
	for _, log := range logs {
		// Emptied, not removed: the own log is open already.
		if err := os.Truncate(log, 0); err != nil {
			return fmt.Errorf("emptying an old log: %w", err)
		}
	}
	return nil
}

// Reset makes empty folders for the components, before every attempt to start
// them. Only the holder of the lock may call it.
func (d Dir) Reset() error {
	for _, folder := range []string{d.PKI(), d.Config(), d.Data()} {
		if err := removeAll(folder); err != nil {
			return fmt.Errorf("removing the data of the cluster: %w", err)
		}
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return fmt.Errorf("making a folder of the cluster: %w", err)
		}
	}
	return nil
}

// Clean removes everything but the logs and the record of how the cluster
// ended. Only the holder of the lock may call it.
func (d Dir) Clean() error {
	d.removeSockets()
	for _, path := range []string{d.Kubeconfig(), d.PKI(), d.Config(), d.Data()} {
		if err := removeAll(path); err != nil {
			return fmt.Errorf("removing the data of the cluster: %w; remove the folder %s by hand", err, d.root)
		}
	}
	return nil
}

// removeAll tries for a moment: after a kill -9 of the supervisor etcd may
// still be writing into its folder while it dies.
func removeAll(path string) error {
	var err error
	for range 20 {
		if err = os.RemoveAll(path); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return err //nolint:wrapcheck // the only caller wraps it
}
