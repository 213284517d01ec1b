package testcluster

import (
	"context"
	"sync"

	"github.com/ambit-k8s/ambit/internal/embedded"
)

// held keeps the cluster's lifeline from the garbage collector. The kernel closes it when the test binary ends, however
// it ends, and that stops the cluster.
var held *embedded.Cluster //nolint:unused // being held is its use

// ownCluster starts a cluster that lives as long as this process, at the first call, and returns its kubeconfig.
var ownCluster = sync.OnceValues(func() (string, error) {
	c, err := embedded.Start(context.Background())
	if err != nil {
		return "", err
	}

	held = c

	return c.Kubeconfig, nil
})
