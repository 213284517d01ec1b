// Package supervisor starts a cluster, watches over it, and stops it.
package supervisor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/ambit-k8s/ambit/devcluster/internal/control"
	"github.com/ambit-k8s/ambit/devcluster/internal/controlplane"
	"github.com/ambit-k8s/ambit/devcluster/internal/pki"
	"github.com/ambit-k8s/ambit/devcluster/internal/process"
	"github.com/ambit-k8s/ambit/devcluster/internal/store"
	"github.com/ambit-k8s/ambit/devcluster/internal/workdir"
)

// Options say what cluster to run.
type Options struct {
	Dir workdir.Dir
	// Programs is the folder of the programs of Kubernetes.
	Programs string
	// Nodes is how many nodes the cluster has.
	Nodes int
	// Controllers says whether more runs than the API server and etcd.
	Controllers bool
	// AuditLog is the file for the audit log; empty means none.
	AuditLog string
	// StartTimeout bounds how long the cluster may take to be ready.
	StartTimeout time.Duration
	// Ready is called once, when the cluster is ready.
	Ready func()
}

// Supervisor holds a running cluster. One goroutine, the one in Run, starts
// and stops processes; the others only ask it to.
type Supervisor struct {
	Options

	log    *slog.Logger
	plan   controlplane.Plan
	bundle *pki.Bundle

	// reader and writer are the ends of the lifeline of all processes.
	reader, writer *os.File

	cancel   context.CancelFunc
	exits    chan *process.Process
	restarts chan restart
	lost     []string // the components that bringBack starts again

	resetting sync.Mutex // is held by the one reset under way

	mu        sync.Mutex // guards what follows
	state     workdir.State
	processes map[string]*process.Process
	restarted map[string]int
	saved     map[string]*store.Image
}

// Run runs a cluster until the context ends, somebody asks it to stop, or a
// component fails; only the last is an error. When Run returns, every process
// it started is gone.
func Run(ctx context.Context, options Options) error {
	lock, err := options.Dir.TryLock()
	if errors.Is(err, workdir.ErrLocked) {
		root := options.Dir.Root()
		return fmt.Errorf("a cluster is already running in %s; stop it with: devcluster down --dir %s", root, root)
	}
	if err != nil {
		return fmt.Errorf("reserving the folder for this cluster: %w", err)
	}
	defer func() { _ = lock.Release() }()

	s, err := newSupervisor(options)
	if err != nil {
		return err
	}
	defer s.close()
	ctx, s.cancel = context.WithCancel(ctx)
	defer s.cancel()
	return s.run(ctx)
}

func newSupervisor(options Options) (*Supervisor, error) {
	if err := options.Dir.Prepare(); err != nil {
		return nil, fmt.Errorf("preparing the folder of the cluster: %w", err)
	}
	out, err := os.OpenFile(options.Dir.OwnLog(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the log: %w", err)
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making the lifeline of the processes: %w", err)
	}
	return &Supervisor{
		Options:   options,
		log:       slog.New(slog.NewTextHandler(out, nil)),
		reader:    reader,
		writer:    writer,
		exits:     make(chan *process.Process, 64),
		restarts:  make(chan restart),
		processes: map[string]*process.Process{},
		restarted: map[string]int{},
		saved:     map[string]*store.Image{},
	}, nil
}

// close ends the lifeline, after which no process can be left, not even one
// that was forgotten.
func (s *Supervisor) close() {
	_ = s.writer.Close()
	_ = s.reader.Close()
}

func (s *Supervisor) run(ctx context.Context) error {
	s.enter(workdir.Starting, nil)
	socket, err := s.Dir.NewSocket()
	if err != nil {
		return s.finish(ctx, fmt.Errorf("preparing the control socket: %w", err))
	}
	server, err := control.Listen(ctx, socket, s)
	if err != nil {
		return s.finish(ctx, fmt.Errorf("preparing for other commands: %w", err))
	}
	defer server.Close()

	if err := s.start(ctx); err != nil {
		if ctx.Err() != nil {
			err = errors.New("the cluster was stopped before it was ready")
		}
		return s.finish(ctx, err)
	}
	s.enter(workdir.Running, nil)
	s.Ready()
	return s.finish(ctx, s.watch(ctx))
}

// watch returns nil when the cluster shall stop, and an error when it cannot
// go on.
func (s *Supervisor) watch(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case p := <-s.exits:
			if err := errors.Join(s.ended(p, "ended unexpectedly"), s.bringBack()); err != nil {
				return err
			}
		case r := <-s.restarts:
			err := s.restart(ctx, r)
			r.reply <- err
			if err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// finish stops what runs, removes the data and records how it ended.
func (s *Supervisor) finish(ctx context.Context, reason error) error {
	s.enter(workdir.Stopping, reason)
	s.stopAll(ctx)
	if err := s.Dir.Clean(); err != nil && reason == nil {
		reason = fmt.Errorf("stopping the cluster: %w", err)
	}
	if reason != nil {
		s.enter(workdir.Failed, reason)
		return reason
	}
	s.enter(workdir.Stopped, nil)
	return nil
}

// enter moves the cluster to a phase and records it.
func (s *Supervisor) enter(phase workdir.Phase, reason error) {
	s.mu.Lock()
	s.state = workdir.State{Phase: phase, PID: os.Getpid(), Since: time.Now()}
	if reason != nil {
		s.state.Reason = reason.Error()
	}
	s.mu.Unlock()

	state := s.State()
	if reason != nil {
		s.log.Error(string(phase), "reason", reason.Error())
	} else {
		s.log.Info(string(phase))
	}
	if err := s.Dir.SaveState(state); err != nil {
		s.log.Error("the state was not recorded", "err", err)
	}
}

// State implements control.Handler.
func (s *Supervisor) State() workdir.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := s.state
	if state.Phase != workdir.Running {
		return state
	}
	state.Server = s.plan.URL()
	state.Kubeconfig = s.Dir.Kubeconfig()
	state.Saved = slices.Sorted(maps.Keys(s.saved))
	for _, name := range controlplane.Components() {
		p := s.processes[name]
		if p == nil {
			continue
		}
		state.Components = append(state.Components, workdir.Component{
			Name: name, PID: p.PID(), Since: p.Started, Restarts: s.restarted[name], Log: p.Log,
		})
	}
	return state
}

// Stop implements control.Handler.
func (s *Supervisor) Stop() { s.cancel() }

// launch starts a component and sees to it that its end is noticed.
func (s *Supervisor) launch(component string) error {
	p, err := process.Start(s.plan.Spec(component), s.reader)
	if err != nil {
		return fmt.Errorf("launching a component: %w", err)
	}
	s.log.Info("started", "component", component, "pid", p.PID())
	s.mu.Lock()
	s.processes[component] = p
	s.mu.Unlock()
	go func() {
		<-p.Done()
		s.exits <- p
	}()
	return nil
}

// current tells whether a process is the one that now plays its component,
// rather than one that was stopped on purpose.
func (s *Supervisor) current(p *process.Process) bool {
	return s.process(p.Name) == p
}

// process returns the process that now plays a component, or nil.
func (s *Supervisor) process(component string) *process.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.processes[component]
}

// forget takes a component out, so that its end is not a failure, and returns
// its process, which is nil if it does not run.
func (s *Supervisor) forget(component string) *process.Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.processes[component]
	delete(s.processes, component)
	return p
}

// countRestart counts a restart of a component, for the status.
func (s *Supervisor) countRestart(component string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restarted[component]++
}

// stopGrace is how long a component may take to end on its own when the whole
// cluster stops.
const stopGrace = 2 * time.Second

// stopAll stops all components, clients before servers. The two that hold
// data are killed: the data is thrown away, so an orderly end of them would
// only be slow.
func (s *Supervisor) stopAll(ctx context.Context) {
	// That the context has ended does not cut short the time they have.
	ctx = context.WithoutCancel(ctx)
	for _, component := range slices.Backward(controlplane.Components()) {
		p := s.forget(component)
		if p == nil {
			continue
		}
		grace := stopGrace
		if component == controlplane.APIServer || component == controlplane.Etcd {
			grace = 0
		}
		p.Stop(ctx, grace)
		s.log.Info("stopped", "component", component, "how", p.Ended())
	}
}
