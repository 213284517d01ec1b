// Package namespacescope_test describes how a NamespaceScope behaves on a real API server, with the program that users
// run, under the rights that it is installed with.
package namespacescope_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

const (
	ambitNamespace = embedded.Namespace
	ambitAccount   = embedded.ServiceAccount
	scopeLabel     = "ambit.dev/scope"
)

// system is what all tests share: the cluster, and the one manager that serves it.
type system struct {
	client  client.WithWatch
	config  *rest.Config
	dir     string
	profile profile

	manager       *embedded.Manager
	opsNamespaces opsNamespaces

	mu         sync.Mutex
	namespaces []client.Object
}

var shared struct {
	once sync.Once
	*system
}

// TestMain stops the manager after the last test, and fails when anything is left of the scopes that the tests made.
func TestMain(m *testing.M) {
	flag.Parse()
	// The tests wait for the cluster more than they compute, so more of them run at once than there are cores.
	if f := flag.Lookup("test.parallel"); f != nil && f.Value.String() == f.DefValue {
		_ = flag.Set("test.parallel", "10")
	}

	code := m.Run()

	if s := shared.system; s != nil {
		if err := s.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL:", err)

			code = max(code, 1)
		}
	}

	os.Exit(code)
}

// theSystem installs Ambit and starts its manager at the first call.
func theSystem(t *testing.T) *system {
	t.Helper()

	shared.once.Do(func() {
		s := &system{config: testcluster.Config(t)}

		testcluster.InstallCRDs(t, s.config)

		if err := s.start(testcluster.Kubeconfig(t)); err != nil {
			_ = os.RemoveAll(s.dir)

			if s.client != nil {
				err = errors.Join(err, s.clear(context.Background()))
			}

			t.Fatalf("starting the manager: %v", err)
		}

		shared.system = s
	})

	if shared.system == nil {
		t.Fatal("the manager could not be started; see the first test")
	}

	return shared.system
}

func (s *system) start(kubeconfig string) error {
	scheme, err := controllers.Scheme()
	if err != nil {
		return err
	}

	if s.client, err = client.NewWithWatch(s.config, client.Options{Scheme: scheme}); err != nil {
		return err
	}

	if s.profile, err = wantedProfile(); err != nil {
		return err
	}

	if s.dir, err = os.MkdirTemp("", "ambit-namespacescope-"); err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()

	if err := embedded.Install(ctx, &embedded.Cluster{Kubeconfig: kubeconfig}, string(s.profile)); err != nil {
		return err
	}

	if err := s.checkProfile(ctx); err != nil {
		return err
	}

	prepare := s.prepareDelegates
	if s.profile == namespaced {
		prepare = s.prepareOperatorNamespaces
	}

	if err := errors.Join(s.refusals(), prepare(ctx)); err != nil {
		return err
	}

	return s.startManager(ctx)
}

// startManager runs the manager as the installed Deployment would, and waits until it leads.
func (s *system) startManager(ctx context.Context) error {
	program, err := embedded.BuildAmbit(ctx, s.dir)
	if err != nil {
		return err
	}

	arguments, err := s.arguments(ctx)
	if err != nil {
		return err
	}

	if s.manager, err = embedded.NewManager(ctx, s.config, s.dir, program, arguments...); err != nil {
		return err
	}

	begun := time.Now()

	if err := s.manager.Start(); err != nil {
		return err
	}

	// A manager that was killed holds its lease for a quarter of a minute.
	err = testbed.Until(2*testbed.Patience, func() error {
		lease := &coordinationv1.Lease{}
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: ambitNamespace, Name: "ambit-manager"}, lease); err != nil {
			return err
		}

		if lease.Spec.RenewTime == nil || !lease.Spec.RenewTime.After(begun) {
			return fmt.Errorf("the lease was renewed at %s", lease.Spec.RenewTime)
		}

		return nil
	})
	if err == nil {
		return nil
	}

	return errors.Join(fmt.Errorf("the manager does not lead: %w:\n%s", err, s.logged("")), s.manager.Stop())
}

// finally has a namespace deleted after the last test. Before that it would keep Kubernetes' own controllers busy, which
// the tests wait for.
func (s *system) finally(ns client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.namespaces = append(s.namespaces, ns)
}

// stop waits until the scopes of all tests are gone, and ends the manager. What bears Ambit's label after that was left
// behind.
func (s *system) stop() error {
	defer func() { _ = os.RemoveAll(s.dir) }()

	var left []string

	ctx := context.Background()

	if s.profile == namespaced {
		if err := s.leaveOperatorNamespaces(ctx); err != nil {
			return err
		}
	}

	// A scope that is deleted waits for the last restart of its readers, which is put off the longer the more they restarted lately.
	_ = testbed.Until(testbed.Patience, func() error {
		if left = s.leftovers(); len(left) > 0 {
			return errLeft
		}

		return nil
	})

	told := s.lastWords()

	// Before the namespaces go, in which it would see its rights go.
	stopped := s.manager.Stop()

	if err := s.clear(ctx); err != nil {
		return err
	}

	if stopped != nil {
		return fmt.Errorf("the manager ended with: %w\n%s", stopped, s.logged("panic", "fatal", "error:"))
	}

	if len(left) > 0 {
		return fmt.Errorf("left behind: %s\n%s%s", strings.Join(left, ", "), told, s.logged(left...))
	}

	return nil
}

// clear deletes what the tests share, unless the cluster is put back as a whole.
func (s *system) clear(ctx context.Context) error {
	if !testcluster.Kept() {
		return nil
	}

	var errs []error
	for _, ns := range s.namespaces {
		errs = append(errs, client.IgnoreNotFound(s.client.Delete(ctx, ns)))
	}

	return errors.Join(append(errs, s.dismissDelegates(ctx))...)
}

var errLeft = errors.New("something is left behind")

func (s *system) leftovers() []string {
	var left []string

	for what, list := range map[string]client.ObjectList{
		"NamespaceScope": &operatorv1.NamespaceScopeList{},
		"Role":           &rbacv1.RoleList{}, "RoleBinding": &rbacv1.RoleBindingList{},
	} {
		var marked []client.ListOption
		if what != "NamespaceScope" {
			marked = append(marked, client.HasLabels{scopeLabel})
		}

		if err := s.client.List(context.Background(), list, marked...); err != nil {
			return []string{err.Error()}
		}

		for _, obj := range objectsOf(list) {
			left = append(left, fmt.Sprintf("%s %s", what, client.ObjectKeyFromObject(obj)))
		}
	}

	return left
}

// lastWords is what the scopes that are there say of themselves.
func (s *system) lastWords() string {
	list := &operatorv1.NamespaceScopeList{}
	if err := s.client.List(context.Background(), list); err != nil {
		return err.Error()
	}

	var b strings.Builder

	for i := range list.Items {
		nss := &list.Items[i]
		fmt.Fprintf(&b, "%s, deleted at %v, says %+v\n", client.ObjectKeyFromObject(nss), nss.DeletionTimestamp, nss.Status)
	}

	return b.String()
}

// logged returns the lines of the manager's log that mention one of the words.
func (s *system) logged(words ...string) string {
	raw, err := os.ReadFile(s.manager.Log)
	if err != nil {
		return err.Error()
	}

	var lines []string

	for line := range strings.Lines(string(raw)) {
		if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(line, w) }) {
			lines = append(lines, line)
		}
	}

	return strings.Join(lines, "")
}
