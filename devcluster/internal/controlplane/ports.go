package controlplane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// The range from which ports are drawn. It lies below the ranges from which
// operating systems take the ports of outgoing connections (32768 and up on
// Linux, 49152 and up elsewhere). So when a component is restarted, no
// connection can have taken its port in the meantime.
const (
	firstPort = 20000
	lastPort  = 29999
)

// Ports are what the components listen on.
type Ports struct {
	Etcd      int
	APIServer int
}

// DrawPorts returns ports that are free now. They may be taken by the time
// the components listen; the caller then draws again.
func DrawPorts(ctx context.Context) (Ports, error) {
	etcd, err := drawPort(ctx, 0)
	if err != nil {
		return Ports{}, err
	}
	apiServer, err := drawPort(ctx, etcd)
	if err != nil {
		return Ports{}, err
	}
	return Ports{Etcd: etcd, APIServer: apiServer}, nil
}

func drawPort(ctx context.Context, not int) (int, error) {
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort+1) //nolint:gosec // not a secret
		if port == not {
			continue
		}
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", Address(port))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			return 0, fmt.Errorf("probing port %d: %w", port, err)
		}
		return port, nil
	}
	return 0, errors.New("found no free port on 127.0.0.1 between 20000 and 29999")
}

// Address is where a port of the cluster is.
func Address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// URL is where an HTTPS port of the cluster is.
func URL(port int) string { return "https://" + Address(port) }
