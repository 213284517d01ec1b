package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/ambit-k8s/ambit/devcluster/internal/workdir"
)

// Handler does what clients ask for.
type Handler interface {
	// State tells how the cluster is.
	State() workdir.State
	// Stop begins to stop the cluster and does not wait for it.
	Stop()
	// Restart restarts a component, abruptly if kill is set, and returns when
	// it is ready again.
	Restart(ctx context.Context, component string, kill bool) error
	// Save remembers under a name what the cluster stores, and Reset puts it back.
	Save(ctx context.Context, name string) error
	Reset(ctx context.Context, name string) error
}

// Server answers clients until it is closed.
type Server struct {
	listener net.Listener
	handler  Handler
	clients  sync.WaitGroup
	cancel   context.CancelFunc
}

// Listen starts a server on a Unix socket.
func Listen(ctx context.Context, path string, handler Handler) (*Server, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listening on the control socket: %w", err)
	}
	// Clients are not cut off when the cluster stops: they want to know how
	// their request ended.
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{listener: listener, handler: handler, cancel: cancel}
	go s.accept(ctx)
	return s, nil
}

// Close stops listening and lets the answers under way go out.
func (s *Server) Close() {
	_ = s.listener.Close()
	s.cancel()
	answered := make(chan struct{})
	go func() { s.clients.Wait(); close(answered) }()
	select {
	case <-answered:
	case <-time.After(time.Second): // a client that sends nothing
	}
}

func (s *Server) accept(ctx context.Context) {
	for {
		connection, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of file descriptors, most likely; that may pass.
			time.Sleep(100 * time.Millisecond)
			continue
		}
		s.clients.Go(func() { s.serve(ctx, connection) })
	}
}

// maxRequest bounds what is read from a client.
const maxRequest = 64 << 10

func (s *Server) serve(ctx context.Context, connection net.Conn) {
	defer func() { _ = connection.Close() }()
	var ask request
	answer := response{}
	if err := json.NewDecoder(io.LimitReader(connection, maxRequest)).Decode(&ask); err != nil {
		return // a client that went away
	}
	if err := s.handle(ctx, ask); err != nil {
		answer.Error = err.Error()
	}
	answer.State = s.handler.State()
	// A client that went away does not need the answer.
	_ = json.NewEncoder(connection).Encode(answer) //nolint:errchkjson // see above
}

func (s *Server) handle(ctx context.Context, ask request) error {
	switch ask.Verb {
	case verbStatus:
		return nil
	case verbStop:
		s.handler.Stop()
		return nil
	case verbRestart:
		return s.handler.Restart(ctx, ask.Component, ask.Kill)
	case verbSave:
		return s.handler.Save(ctx, ask.Name)
	case verbReset:
		return s.handler.Reset(ctx, ask.Name)
	}
	return fmt.Errorf("this cluster does not know the request %q; it runs another version of devcluster", ask.Verb)
}
