package embedded

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// The range from which ports are drawn for programs that listen later. It lies below those from which operating systems take the
// ports of outgoing connections (32768 and up on Linux, 49152 and up elsewhere), and above that of the API servers of devcluster.
// So none of the many connections of these clusters takes a port before its program does.
const (
	firstPort = 30000
	lastPort  = 32767
)

// FreePort listens on loopback, at a port that a program may have once the listener is closed.
func FreePort(ctx context.Context) (net.Listener, error) {
	var errs []error

	for range 20 {
		port := firstPort + rand.IntN(lastPort-firstPort+1) //nolint:gosec // It is no secret.

		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return listener, nil
		}

		errs = append(errs, err)
	}

	return nil, fmt.Errorf("looking for a free port: %w", errors.Join(errs...))
}
