package embedded

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Backup copies what etcd stores to a folder, from which Restore takes it.
func (c *Cluster) Backup(ctx context.Context, to string) error {
	return c.withoutEtcd(ctx, func(state) error { return os.CopyFS(to, os.DirFS(c.etcd())) })
}

// Restore has etcd store what it did at the time of a backup, and starts everything again that has read something else since. For
// whoever is beside the cluster, versions count again from an earlier one.
func (c *Cluster) Restore(ctx context.Context, from string) error {
	return c.withoutEtcd(ctx, func(s state) error {
		if err := os.RemoveAll(c.etcd()); err != nil {
			return err //nolint:wrapcheck // It names the file.
		}

		if err := os.CopyFS(c.etcd(), os.DirFS(from)); err != nil {
			return err //nolint:wrapcheck // As above.
		}

		// The first of them is etcd, and the second the API server.
		for _, component := range s.Components {
			if err := c.Restart(ctx, component.Name, "KILL"); err != nil {
				return err
			}
		}

		return nil
	})
}

// etcd is the folder of etcd's data.
func (c *Cluster) etcd() string { return filepath.Join(c.home, "data", "etcd") }

// withoutEtcd does something while etcd stands still.
func (c *Cluster) withoutEtcd(ctx context.Context, do func(state) error) error {
	s, err := c.state(ctx)
	if err != nil {
		return err
	}

	for _, component := range s.Components {
		if component.Name != "etcd" {
			continue
		}

		if err := syscall.Kill(component.PID, syscall.SIGSTOP); err != nil {
			return fmt.Errorf("stopping etcd: %w", err)
		}

		defer syscall.Kill(component.PID, syscall.SIGCONT) //nolint:errcheck // It may have been replaced.
	}

	return do(s)
}
