package read

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// porter stands before one namespace of a real API server. While it refuses, nobody reads Roles and RoleBindings there, as with
// an API server that does not know yet who may.
type porter struct {
	client.WithWatch

	namespace string
	refuses   atomic.Bool
	refused   atomic.Int64

	mu      sync.Mutex
	watches []watch.Interface
}

func (p *porter) refuse(opts []client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(opts)

	if asked.Namespace != p.namespace || !p.refuses.Load() {
		return nil
	}

	p.refused.Add(1)

	return apierrors.NewForbidden(rbacv1.Resource("roles"), "", nil)
}

// List is refused or passed on.
func (p *porter) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := p.refuse(opts); err != nil {
		return err
	}

	return p.WithWatch.List(ctx, list, opts...)
}

// Watch is refused or passed on.
func (p *porter) Watch(ctx context.Context, list client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	if err := p.refuse(opts); err != nil {
		return nil, err
	}

	w, err := p.WithWatch.Watch(ctx, list, opts...)
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()

		p.watches = append(p.watches, w)
		if p.refuses.Load() {
			w.Stop() // It began while all others were ended.
		}
	}

	return w, err
}

// turnOut ends all watches and refuses from now on.
func (p *porter) turnOut() {
	p.refuses.Store(true)

	p.mu.Lock()
	defer p.mu.Unlock()

	for _, w := range p.watches {
		w.Stop()
	}
}

// accesses is a listener that counts how often a namespace was found closed, and how often something changed in it.
type accesses struct {
	namespace          string
	closed, accessible atomic.Int64
}

func (*accesses) KeyChanged(scope.Key)                               {}
func (*accesses) KeyUnblocked(scope.Key)                             {}
func (*accesses) EverythingChanged()                                 {}
func (*accesses) ClusterChanged([]scope.Key, bool)                   {}
func (*accesses) ClusterPermissionsChanged(facts.ClusterPermissions) {}
func (d *accesses) PermissionsChanged(namespace string) {
	if namespace == d.namespace {
		d.accessible.Add(1)
	}
}
func (d *accesses) NamespaceChanged(_ string, _, after *facts.Namespace) {
	if after.Closed != "" {
		d.closed.Add(1)
	}
}

// TestAccessThatIsRefusedForAMoment: an API server that begins refuses for a moment what it does not know yet. That closes
// nothing; what is refused for longer does, and opens again.
func TestAccessThatIsRefusedForAMoment(t *testing.T) {
	t.Parallel()

	config := testcluster.Config(t)
	member := testcluster.Namespace(t, config, "doors-member")
	reconcileKey := scope.NamespaceScopes.In(testcluster.Namespace(t, config, "doors-home"))

	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	told, p := &accesses{namespace: member}, &porter{WithWatch: c, namespace: member}
	store := NewStore(told)
	watches := NewWatches(store, p, true)
	isOpen := func() bool {
		watches.Watch(reconcileKey)
		watches.Members(reconcileKey, []string{member})

		f, listed := store.Facts(reconcileKey, time.Now())

		return listed && f.Namespaces[member].Closed == ""
	}

	go watches.Start(t.Context()) //nolint:errcheck // It ends with the context.

	until(t, "the door is open", isOpen)

	before := p.refused.Load()
	p.turnOut()
	until(t, "somebody was refused", func() bool { return p.refused.Load() > before })
	p.refuses.Store(false)

	seen := told.accessible.Load()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: member, Name: "role"}}

	if err := c.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}

	until(t, "it is watched again", func() bool { return told.accessible.Load() > seen })

	if n := told.closed.Load(); n != 0 {
		t.Errorf("the door closed %d times", n)
	}

	p.turnOut()
	until(t, "the door is closed", func() bool { return told.closed.Load() == 1 && !isOpen() })
	p.refuses.Store(false)
	until(t, "the door is open again", isOpen)
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()

	for deadline := time.Now().Add(30 * time.Second); !is(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
