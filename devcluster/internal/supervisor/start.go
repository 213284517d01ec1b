package supervisor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ambit-k8s/ambit/devcluster/internal/controlplane"
	"github.com/ambit-k8s/ambit/devcluster/internal/pki"
)

// portAttempts is how often a start is tried again with other ports. Between
// drawing a port and listening on it somebody else may take it.
const portAttempts = 5

// start brings the whole cluster up.
func (s *Supervisor) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.StartTimeout)
	defer cancel()

	bundle, err := pki.New(controlplane.ServiceAddress())
	if err != nil {
		return fmt.Errorf("making the certificates of the cluster: %w", err)
	}
	s.bundle = bundle
	for attempt := 1; ; attempt++ {
		err := s.attempt(ctx)
		var exit *exitError
		taken := errors.As(err, &exit) && exit.process.AddressTaken()
		if !taken || attempt == portAttempts {
			return err
		}
		s.log.Warn("the port was taken by somebody else; trying another", "err", err.Error())
		s.stopAll(ctx)
	}
}

func (s *Supervisor) attempt(ctx context.Context) error {
	if err := s.Dir.Reset(); err != nil {
		return fmt.Errorf("preparing the folder of the cluster: %w", err)
	}
	port, err := controlplane.DrawPort(ctx)
	if err != nil {
		return fmt.Errorf("choosing a port: %w", err)
	}
	socket, err := s.Dir.EtcdSocket()
	if err != nil {
		return fmt.Errorf("choosing where etcd listens: %w", err)
	}
	plan := controlplane.Plan{Programs: s.Programs, Dir: s.Dir, Port: port, EtcdSocket: socket, AuditLog: s.AuditLog}
	s.mu.Lock()
	s.plan = plan
	s.mu.Unlock()
	if err := plan.CheckPrograms(); err != nil {
		return fmt.Errorf("looking for the programs of Kubernetes: %w", err)
	}
	if err := plan.WriteConfig(ctx, s.bundle); err != nil {
		return fmt.Errorf("configuring the components: %w", err)
	}
	// Both at once: the API server does much before it needs etcd, and then
	// waits for it.
	servers := []string{controlplane.Etcd, controlplane.APIServer}
	for _, component := range servers {
		if err := s.launch(component); err != nil {
			return err
		}
	}
	for _, component := range servers {
		if err := s.await(ctx, component); err != nil {
			return err
		}
	}
	if s.Controllers {
		if err := s.startClients(ctx); err != nil {
			return err
		}
	}
	if err := plan.WriteAdminKubeconfig(s.bundle); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}

// startClients starts what needs a ready API server, and waits until the
// cluster is one in which a pod would run.
func (s *Supervisor) startClients(ctx context.Context) error {
	clients := []string{controlplane.ControllerManager, controlplane.Scheduler, controlplane.Kwok}
	for _, component := range clients {
		if err := s.launch(component); err != nil {
			return err
		}
	}
	if err := s.createNodes(ctx); err != nil {
		return err
	}
	if err := s.confineDeletions(ctx); err != nil {
		return err
	}
	for _, component := range []string{controlplane.ControllerManager, controlplane.Kwok} {
		if err := s.await(ctx, component); err != nil {
			return err
		}
	}
	return nil
}

// await waits until a component is ready. It fails when any component ends,
// because then waiting is no use.
func (s *Supervisor) await(ctx context.Context, component string) error {
	probe, err := s.probe(component)
	if err != nil {
		return err
	}
	return s.poll(ctx, component, probe)
}

func (s *Supervisor) poll(ctx context.Context, component string, probe func(context.Context) error) error {
	ticker := time.NewTicker(25 * time.Millisecond)
	defer ticker.Stop()
	started := time.Now()
	var last error
	for {
		select {
		case p := <-s.exits:
			if err := s.ended(p, "did not start"); err != nil {
				return err
			}
		case <-ctx.Done():
			return &notReadyError{process: s.process(component), after: time.Since(started), last: last}
		case <-ticker.C:
			probing, cancel := context.WithTimeout(ctx, 2*time.Second)
			err := probe(probing)
			cancel()
			if err == nil {
				s.log.Info("ready", "component", component, "after", time.Since(started).Round(time.Millisecond))
				return nil
			}
			if ctx.Err() == nil {
				last = err
			}
		}
	}
}
