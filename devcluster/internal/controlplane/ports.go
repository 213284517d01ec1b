package controlplane

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// The range from which the port is drawn. It lies below the ranges from which
// operating systems take the ports of outgoing connections (32768 and up on
// Linux, 49152 and up elsewhere). So when the API server is restarted, no
// connection can have taken its port in the meantime.
const (
	firstPort = 20000
	lastPort  = 29999
)

// DrawPort returns a port that is free now. It may be taken by the time the
// API server listens; the caller then draws again.
func DrawPort(ctx context.Context) (int, error) {
	for range 200 {
		port := firstPort + rand.IntN(lastPort-firstPort+1) //nolint:gosec // not a secret
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address(port))
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

func address(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// URL is where the API server is.
func (p Plan) URL() string { return "https://" + address(p.Port) }
