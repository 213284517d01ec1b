package testbed

import (
	"net"
	"testing"
)

// FreeAddress is one on loopback on which nobody listens.
func FreeAddress(t testing.TB) string {
	t.Helper()

	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // Nothing was said on it.

	return listener.Addr().String()
}
