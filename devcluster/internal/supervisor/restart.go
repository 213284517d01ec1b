package supervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ambit-k8s/ambit/devcluster/internal/controlplane"
)

// restart is a request to restart a component.
type restart struct {
	component string
	kill      bool
	reply     chan error
}

const (
	// termGrace is how long a component may take to end when it is asked to;
	// the API server waits for its watches.
	termGrace = 30 * time.Second

	// restartTimeout bounds how long a component may take to end and to be
	// ready again. A restart that fails ends the cluster.
	restartTimeout = 3 * time.Minute

	// settle is how long a component without a port has to stay alive to
	// count as started.
	settle = 500 * time.Millisecond
)

// Restart implements control.Handler. It hands the request to the goroutine
// that owns the processes.
func (s *Supervisor) Restart(ctx context.Context, component string, kill bool) error {
	if !slices.Contains(controlplane.Components(), component) {
		return fmt.Errorf("there is no component %q; choose one of %v", component, controlplane.Components())
	}
	r := restart{component: component, kill: kill, reply: make(chan error, 1)}
	select {
	case s.restarts <- r:
	case <-ctx.Done():
		if reason := s.State().Reason; reason != "" {
			return fmt.Errorf("the cluster is stopping: %s", reason)
		}
		return errors.New("the cluster is stopping")
	case <-time.After(restartTimeout):
		return errors.New("the cluster is busy starting; try again when it is ready")
	}
	// The owner always answers, within the bounds above.
	return <-r.reply
}

func (s *Supervisor) restart(ctx context.Context, r restart) error {
	ctx, cancel := context.WithTimeout(ctx, restartTimeout)
	defer cancel()
	s.log.Info("restarting", "component", r.component, "kill", r.kill)
	if p := s.forget(r.component); p != nil {
		grace := termGrace
		if r.kill {
			grace = 0
		}
		p.Stop(ctx, grace)
		s.log.Info("stopped", "component", r.component, "how", p.Ended())
	}
	s.countRestart(r.component)
	if r.component == controlplane.Kwok {
		if err := s.dropLeases(ctx); err != nil {
			return err
		}
	}
	for {
		err := s.relaunch(ctx, r.component)
		if err == nil {
			return s.bringBack()
		}
		var exit *exitError
		if !errors.As(err, &exit) || exit.process.Name != r.component || !exit.process.AddressTaken() {
			return err
		}
		// Clients know the port, so it cannot change; whoever has it may let
		// it go.
		s.forget(r.component)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (s *Supervisor) relaunch(ctx context.Context, component string) error {
	if err := s.launch(component); err != nil {
		return err
	}
	switch component {
	case controlplane.APIServer:
		return s.await(ctx, component)
	case controlplane.Etcd:
		if err := s.await(ctx, component); err != nil {
			return err
		}
		// A new etcd is of use only once the API server has found it.
		return s.await(ctx, controlplane.APIServer)
	case controlplane.Kwok:
		client, err := s.client()
		if err != nil {
			return err
		}
		return s.poll(ctx, component, func(ctx context.Context) error { return s.leasesHeld(ctx, client) })
	}
	timer := time.NewTimer(settle)
	defer timer.Stop()
	for {
		select {
		case p := <-s.exits:
			if err := s.ended(p, "did not start again"); err != nil {
				return err
			}
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("restarting %s: %w", component, ctx.Err())
		}
	}
}
