package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// pooled is the environment variable that names a folder of clusters that run already, in folders 1 to 9, as hack/test.sh sets
// it: a start takes five seconds of processor time, and resetting a cluster a tenth of that.
const pooled = "AMBIT_TEST_CLUSTERS"

const (
	// auditLogFile is the name of a pooled cluster's audit log in its folder.
	auditLogFile = "audit.log"

	// leasePause is how often Lease looks for a free cluster, and leasePatience how long before it starts a further one.
	leasePause    = 50 * time.Millisecond
	leasePatience = 2 * time.Minute
)

// Lease returns a cluster that stores what a cluster stores at its start and, if it comes from a pool, the
// CustomResourceDefinitions of config/crd. It has an audit log. Nobody else uses the cluster until it is stopped.
func Lease(ctx context.Context) (*Cluster, error) {
	c, err := leaseOne(ctx)
	if err != nil || c.release == nil {
		return c, err
	}

	if err := c.reset(ctx, atStart); err != nil {
		return nil, errors.Join(err, c.Stop())
	}

	return c, nil
}

// leaseOne returns a cluster that nobody else uses. One from a pool still stores what its last user left.
func leaseOne(ctx context.Context) (*Cluster, error) {
	pool := os.Getenv(pooled)
	if pool == "" || os.Getenv(otherKubernetes) != "" {
		return startAudited(ctx)
	}

	kubeconfigs, err := filepath.Glob(filepath.Join(pool, "[1-9]", "kubeconfig"))
	if err != nil {
		return nil, fmt.Errorf("looking for clusters in %s, which %s names: %w", pool, pooled, err)
	}

	if len(kubeconfigs) == 0 {
		return nil, fmt.Errorf("there is no cluster in %s, which %s names", pool, pooled)
	}

	slices.Sort(kubeconfigs)

	for deadline := time.Now().Add(leasePatience); time.Now().Before(deadline); time.Sleep(leasePause) {
		for _, kubeconfig := range kubeconfigs {
			c, err := takeOver(filepath.Dir(kubeconfig))
			if !errors.Is(err, syscall.EWOULDBLOCK) {
				return c, err
			}
		}

		if ctx.Err() != nil {
			return nil, fmt.Errorf("waiting for a cluster of %s: %w", pool, context.Cause(ctx))
		}
	}

	return startAudited(ctx)
}

// startAudited starts a cluster that ends with this process.
func startAudited(ctx context.Context) (*Cluster, error) {
	c, err := start(ctx, func(dir string) []string { return []string{"--audit-log", filepath.Join(dir, auditLogFile)} })
	if err != nil {
		return nil, err
	}

	c.auditLog = filepath.Join(c.Dir, auditLogFile)

	return c, nil
}

// takeOver locks a cluster that runs already. The kernel lets go of the lock with this process.
func takeOver(home string) (*Cluster, error) {
	lock, err := os.OpenFile(home+".lock", os.O_CREATE|os.O_RDWR, 0o600) //nolint:gosec // Whoever runs the tests names the folder.
	if err != nil {
		return nil, fmt.Errorf("reserving a cluster: %w", err)
	}

	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("reserving the cluster in %s: %w", home, err), lock.Close())
	}

	c := &Cluster{
		Kubeconfig: filepath.Join(home, "kubeconfig"), auditLog: filepath.Join(home, auditLogFile), home: home, release: lock.Close,
	}

	if c.Dir, err = os.MkdirTemp(filepath.Dir(home), "beside-"); err != nil {
		return nil, errors.Join(fmt.Errorf("making a folder beside the cluster: %w", err), lock.Close())
	}

	return c, nil
}
