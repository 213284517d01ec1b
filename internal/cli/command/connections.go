package command

import (
	"cmp"
	"os"
)

// NoticeLostConnections has this program notice within eight seconds that a connection to the API server is lost without a word,
// such as one that a load balancer forgot. By itself, client-go listens to it for 45 seconds. After four seconds of silence it
// asks whether the API server is there, which is no request, and waits four more for the answer: less than a lease is lost for.
// What somebody set stays. It has to be called before the first connection is made.
//
// There is no field for it: client-go reads these variables (k8s.io/apimachinery/pkg/util/net/http.go).
func NoticeLostConnections() {
	for _, name := range []string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS", "HTTP2_PING_TIMEOUT_SECONDS"} {
		_ = os.Setenv(name, cmp.Or(os.Getenv(name), "4")) // It fails for impossible names alone.
	}
}
