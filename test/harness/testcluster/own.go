package testcluster

import (
	"context"
	"sync"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// held keeps the cluster's lifeline from the garbage collector. The kernel closes it when the test binary ends, however
// it ends, and that ends the lease.
var held *embedded.Cluster //nolint:unused // being held is its use

// ownCluster leases a cluster for as long as this process lives, at the first call, and returns its kubeconfig.
var ownCluster = sync.OnceValues(func() (string, error) {
	c, err := embedded.Lease(context.Background())
	if err != nil {
		return "", err
	}

	held = c

	return c.Kubeconfig, nil
})
