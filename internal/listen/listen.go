// Package listen serves those who reach a port of Ambit, which is everybody in the cluster, so that it costs little: what one of
// them sends and holds is bounded, and how many there are at once.
package listen

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// headerTime is how long somebody may take for a request, and answerTime for that and the answer, which includes how long the
	// API server takes to say who may have one.
	headerTime = 10 * time.Second
	answerTime = time.Minute
	idleTime   = 90 * time.Second // As long as http.DefaultTransport keeps a connection.
	// endTime is how long a server that ends waits for answers that are under way. Until it has ended, the lease is not released.
	endTime = time.Second
)

// Options are what a server serves, and what that may cost.
type Options struct {
	// Name is for the log, Address is HOST:PORT.
	Name, Address string
	Handler       http.Handler
	// TLS is nil where there is none.
	TLS *tls.Config
	// Connections is how many there may be at once, Headers how many bytes a request may have. In memory, headers are up to twenty
	// times as large.
	Connections, Headers int
}

// New listens, and returns the server for a manager to run; it begins with that, whoever leads.
func New(ctx context.Context, o Options) (*manager.Server, error) {
	inner, err := new(net.ListenConfig).Listen(ctx, "tcp", o.Address)
	if err != nil {
		return nil, fmt.Errorf("listening for %s: %w", o.Name, err)
	}

	listener := Bounded(inner, o.Connections)
	if o.TLS != nil {
		listener = tls.NewListener(listener, o.TLS)
	}

	return &manager.Server{
		Name: o.Name, Listener: listener, ShutdownTimeout: new(endTime),
		Server: &http.Server{
			Handler: o.Handler, MaxHeaderBytes: o.Headers,
			ReadTimeout: headerTime, WriteTimeout: answerTime, IdleTimeout: idleTime,
			// It would have a line for everybody who speaks without TLS, or not at all.
			ErrorLog: log.New(io.Discard, "", 0),
		},
	}, nil
}
