package testbed

import (
	"testing"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// FreeAddress is one on loopback on which nobody listens.
func FreeAddress(t testing.TB) string {
	t.Helper()

	listener, err := embedded.FreePort(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // Nothing was said on it.

	return listener.Addr().String()
}
