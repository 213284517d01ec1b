package supervisor

import (
	"time"

	"github.com/ambit-k8s/ambit/devcluster/internal/controlplane"
	"github.com/ambit-k8s/ambit/devcluster/internal/process"
)

// ended returns an error if a process ended that should not have. One that
// may have ended because the API server was restarted is noted as lost.
func (s *Supervisor) ended(p *process.Process, when string) error {
	switch {
	case !s.current(p):
		return nil
	case !s.serverCameAfter(p):
		return &exitError{process: p, when: when}
	}
	s.log.Warn("lost with a restart of the API server", "component", p.Name, "how", p.Ended(), "because", p.LastWords())
	s.forget(p.Name)
	s.lost = append(s.lost, p.Name)
	return nil
}

// serverCameAfter says whether the API server was restarted under a process,
// not long ago. An API server that starts refuses what it allows a moment
// later, and the controller manager ends when it is refused something while
// it starts its controllers.
func (s *Supervisor) serverCameAfter(p *process.Process) bool {
	server := s.process(controlplane.APIServer)
	return server != nil && p.Name != controlplane.Etcd && p.Started.Before(server.Started) &&
		time.Since(server.Started) < restartTimeout
}

// bringBack starts again what was lost.
func (s *Supervisor) bringBack() error {
	lost := s.lost
	s.lost = nil
	for _, component := range lost {
		if s.process(component) != nil {
			continue // Somebody asked for it meanwhile.
		}
		s.countRestart(component)
		if err := s.launch(component); err != nil {
			return err
		}
	}
	return nil
}
