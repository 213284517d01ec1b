package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

const (
	// restartInterval is shorter than the manager's default, so that no measure waits for the restarts of the one before.
	restartInterval = time.Second
	startTimeout    = 3 * time.Minute
)

// manager is Ambit's manager, a program of its own that is authenticated as the service account that config/ gives it.
type manager struct {
	cluster *cluster
	program *embedded.Manager
	// pid is 0 while the manager is stopped.
	pid    atomic.Int64
	probes int
}

func newManager(ctx context.Context, o *options, c *cluster) (*manager, error) {
	arguments := append([]string{"--leader-elect", "--restart-interval", restartInterval.String()},
		strings.Fields(o.managerArgs)...)

	program, err := embedded.NewManager(ctx, c.config, c.dir, o.program, arguments...)
	if err != nil {
		return nil, err
	}

	return &manager{cluster: c, program: program}, nil
}

// start runs the manager and waits until it has listed everything and works.
func (m *manager) start(ctx context.Context) error {
	if err := m.program.Start(); err != nil {
		return err
	}

	m.pid.Store(int64(m.program.PID()))

	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	return m.working(ctx)
}

// working waits until the manager has seen a change to a scope that has nothing to do with the measures.
func (m *manager) working(ctx context.Context) error {
	probe := &operatorv1.NamespaceScope{}
	probe.Namespace, probe.Name = probeNamespace, "probe"
	m.probes++
	patch := fmt.Sprintf(`{"spec":{"serviceAccountMembers":["nobody-%d"]}}`, m.probes)

	if err := m.cluster.admin.Patch(ctx, probe, mergePatch(patch)); err != nil {
		return fmt.Errorf("changing the probe: %w", err)
	}

	seen := &effect{
		list: &operatorv1.NamespaceScopeList{}, of: []client.ListOption{client.InNamespace(probeNamespace)},
		seen: func(_ watch.EventType, obj client.Object) bool {
			nss, ok := obj.(*operatorv1.NamespaceScope)

			return ok && nss.Status.ObservedGeneration >= probe.Generation
		},
	}

	w, err := seen.watch(ctx, m.cluster.admin)
	if err != nil {
		return err
	}
	defer w.Stop()

	if _, err := seen.wait(ctx, w); err != nil {
		return fmt.Errorf("waiting for the manager to work: %w", err)
	}

	return nil
}

func (m *manager) process() process { return process{int(m.pid.Load())} }

// errEnded says that the manager ended by itself.
var errEnded = errors.New("the manager ended by itself")

// guard returns a context that ends when the manager ends although nobody stopped it, so that nothing waits for what will not
// happen.
func (m *manager) guard(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)

	go func() {
		for sleep(ctx, time.Second) == nil {
			if pid := int(m.pid.Load()); pid != 0 && syscall.Kill(pid, 0) != nil {
				cancel(errEnded)
			}
		}
	}()

	return ctx, func() { cancel(nil) }
}

// stop ends the manager as a kubelet does, and waits for it.
func (m *manager) stop() error {
	if m.pid.Swap(0) == 0 {
		return nil
	}

	return m.program.Stop()
}

func (m *manager) lastWords() string {
	raw, err := os.ReadFile(m.program.Log)
	if err != nil {
		return err.Error()
	}

	lines := bytes.Split(bytes.TrimSpace(raw), []byte("\n"))

	return string(bytes.Join(lines[max(0, len(lines)-20):], []byte("\n")))
}
