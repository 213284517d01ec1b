// Package testbed gives tests a cluster of their own on which Ambit is installed with one of its profiles, as a user would
// install it, and runs as the service account of that profile.
package testbed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// Bed is a cluster with Ambit.
type Bed struct {
	Cluster *embedded.Cluster
	Manager *embedded.Manager
	// Config and Client are cluster-admin's.
	Config *rest.Config
	Client client.WithWatch
	// Program is the ambit binary.
	Program string

	audit auditLog
}

// Start starts a cluster, installs a profile, and runs the manager with the arguments of the profile's Deployment and
// further ones.
func Start(ctx context.Context, profile string, arguments ...string) (*Bed, error) {
	b := &Bed{}

	if err := b.start(ctx, profile, arguments); err != nil {
		return nil, errors.Join(err, b.Stop())
	}

	return b, nil
}

func (b *Bed) start(ctx context.Context, profile string, arguments []string) error {
	var err error
	if b.Cluster, err = embedded.LeaseInstalled(ctx, profile); err != nil {
		return fmt.Errorf("starting a cluster: %w", err)
	}

	if b.Program, err = embedded.BuildAmbit(ctx, b.Cluster.Dir); err != nil {
		return err
	}

	if b.Config, err = b.Cluster.Config(); err != nil {
		return fmt.Errorf("reaching the cluster: %w", err)
	}

	b.Config.WarningHandler = rest.NoWarnings{}

	if b.Client, err = newClient(b.Config); err != nil {
		return err
	}

	installed, err := b.arguments(ctx)
	if err != nil {
		return err
	}

	// The default interval leaves operators the time to become leader again; the operators of tests need none.
	arguments = slices.Concat(installed, []string{"--restart-interval=10s"}, arguments)

	b.Manager, err = embedded.NewManager(ctx, b.Config, b.Cluster.Dir, b.Program, arguments...)
	if err != nil {
		return fmt.Errorf("preparing the manager: %w", err)
	}

	if err := b.awaitPolicies(ctx); err != nil {
		return err
	}

	if err := b.Manager.Start(); err != nil {
		return fmt.Errorf("starting the manager: %w", err)
	}

	// Otherwise the first test might find an audit log without Ambit's requests, or an Ambit that still reads the cluster.
	return UntilWorking(b.Manager)
}

// UntilWorking waits until a manager works for scopes. If it does not begin to, the error holds its log.
func UntilWorking(m *embedded.Manager) error {
	err := Until(Patience, func() error { return m.Works("namespacescope") })
	if err == nil {
		return nil
	}

	log, unread := os.ReadFile(m.Log)

	return fmt.Errorf("the manager does not begin to work: %w; its log is\n%s", errors.Join(err, unread), log)
}

// arguments are those of the installed Deployment that make the profile. The testbed chooses the addresses itself.
func (b *Bed) arguments(ctx context.Context) ([]string, error) {
	d := &appsv1.Deployment{}
	if err := b.Client.Get(ctx, client.ObjectKey{Namespace: embedded.Namespace, Name: "ambit"}, d); err != nil {
		return nil, fmt.Errorf("reading the installed Deployment: %w", err)
	}

	var out []string

	for _, a := range d.Spec.Template.Spec.Containers[0].Args[1:] {
		if !strings.Contains(a, "-bind-address=") && a != "--leader-elect" {
			out = append(out, strings.ReplaceAll(a, "$(OPERATOR_NAMESPACE)", embedded.Namespace))
		}
	}

	return out, nil
}

// Stop ends the manager and the cluster.
func (b *Bed) Stop() error {
	var errs []error
	if b.Manager != nil {
		if err := b.Manager.Stop(); err != nil {
			log, _ := os.ReadFile(b.Manager.Log)
			errs = append(errs, fmt.Errorf("the manager: %w; its log ends with\n%s", err, log[max(0, len(log)-3000):]))
		}
	}

	if b.Cluster != nil {
		if err := b.Cluster.Stop(); err != nil {
			errs = append(errs, fmt.Errorf("the cluster: %w", err))
		}
	}

	return errors.Join(errs...)
}

func newClient(config *rest.Config) (client.WithWatch, error) {
	scheme, err := controllers.Scheme()
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}

	c, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}

	return c, nil
}
