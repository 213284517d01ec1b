package faults_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// TestLeaseLostInTheMiddle stops a manager in the middle of a projection for longer than its lease. Another one takes over, and
// takes away what the scope no longer asks for. When the first one goes on, with the plan that it made before, it writes none of
// it.
func TestLeaseLostInTheMiddle(t *testing.T) {
	kill(t)
	t.Cleanup(func() { start(t) })

	w := newWorld(t, "lease", 4, 60)
	first, second := replica(t), replica(t)

	begin := func(m *embedded.Manager) {
		t.Helper()

		if err := m.Start(); err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { _ = m.Kill() })
	}
	begin(first)
	w.eventually("the first works", func() bool { return first.Works("namespacescope") == nil })
	begin(second)

	w.scope(w.members...)
	w.eventually("it is in the middle", func() bool { return w.copies(t) > 40 })
	asleep(t, first.PID())

	if n := w.copies(t); n >= 2*8*len(w.members) {
		t.Logf("it was done already: %d copies", n)
	}

	w.eventually("the second works", func() bool { return second.Works("namespacescope") == nil })
	w.scope(w.members[0])
	w.eventually("what it gave up is taken back", func() bool { return w.check() == nil })

	written := w.told(t, watch.Added, w.members[1:])

	awake(t, first.PID())
	w.eventually("the first ends", func() bool {
		return errors.Is(syscall.Kill(first.PID(), 0), syscall.ESRCH)
	})
	w.settled()

	if n := written(); n > 0 {
		t.Errorf("it made %d objects for a plan that was made before it lost its lease", n)
	}
}

func replica(t *testing.T) *embedded.Manager {
	t.Helper()

	admin, err := suite.cluster.Config()
	if err != nil {
		t.Fatal(err)
	}

	m, err := embedded.NewManager(t.Context(), admin, t.TempDir(), suite.program, "--leader-elect")
	if err != nil {
		t.Fatal(err)
	}

	showEnd(t, m)

	return m
}

// copies counts the copies in all namespaces.
func (*world) copies(t *testing.T) int {
	t.Helper()

	list := &rbacv1.RoleBindingList{}
	if err := suite.client.List(t.Context(), list, client.HasLabels{scope.LabelScope}); err != nil {
		t.Fatal(err)
	}

	return len(list.Items)
}

// told counts the permissions that are made, or deleted, in namespaces from now on. Whoever asks makes one more of each kind, and
// waits until that is heard of: then everything before it was.
func (w *world) told(t *testing.T, of watch.EventType, namespaces []string) func() int64 {
	t.Helper()

	var told, marked atomic.Int64

	marker := metav1.ObjectMeta{Namespace: namespaces[0], Name: "marker"}
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)

	for _, list := range []client.ObjectList{&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}} {
		if err := suite.client.List(ctx, list); err != nil {
			t.Fatal(err)
		}

		from := &client.ListOptions{}
		from.Raw = &metav1.ListOptions{ResourceVersion: list.GetResourceVersion()}

		watching, err := suite.client.Watch(ctx, list, from)
		if err != nil {
			t.Fatal(err)
		}

		go func() {
			for e := range watching.ResultChan() {
				obj, ok := e.Object.(client.Object)

				switch {
				case !ok || !slices.Contains(namespaces, obj.GetNamespace()):
				case obj.GetName() == marker.Name:
					marked.Add(1)
				case e.Type == of:
					told.Add(1)
				}
			}
		}()
	}

	return func() int64 {
		w.create(&rbacv1.Role{ObjectMeta: marker})
		w.create(&rbacv1.RoleBinding{ObjectMeta: marker, RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "Role", Name: marker.Name,
		}})
		w.eventually("both watches tell of the marker", func() bool { return marked.Load() == 2 })

		return told.Load()
	}
}

// TestTurnOfOneWhoseWatchesWereBehind: while a replica stands by, the API server that it is connected to tells it nothing
// new of scopes, as one does that lags behind the others. Its turn comes: what the replica before it made for a scope of
// which the second one was not told stays, and so does what a scope gained meanwhile.
func TestTurnOfOneWhoseWatchesWereBehind(t *testing.T) {
	kill(t)
	t.Cleanup(func() { start(t) })

	w, unknown := newWorld(t, "turn", 1, 2), newWorld(t, "turn-unknown", 1, 1)
	first := replica(t)

	if err := first.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = first.Kill() })
	w.eventually("the first works", func() bool { return first.Works("namespacescope") == nil })
	w.scope(w.members[0])
	w.settled()

	p, second := newProxy(t, "--leader-elect")
	w.eventually("the second stands by", func() bool { return p.asked("/leases/ambit-manager") })
	// One that reads while it stands by has begun to by now.
	w.eventually("it asks for the lease again", func() bool { return p.asked("/leases/ambit-manager") })
	p.ignore("namespacescopes")

	w.scope(w.members...)
	unknown.scope(unknown.members...)
	w.settled()
	unknown.settled()

	lost := w.told(t, watch.Deleted, slices.Concat(w.members, unknown.members))

	p.ignore("")

	if err := first.Stop(); err != nil {
		t.Fatal(err)
	}

	w.eventually("the second works", func() bool { return second.Works("namespacescope") == nil })
	// Its first plan is for everything that it knows of, and this is a later one.
	w.grant("operator-0", "later")
	w.eventually("it reacts", func() bool { return w.bound(t, "later") > 0 })

	if n := lost(); n > 0 {
		t.Fatalf("%d objects were deleted that are wanted", n)
	}

	w.settled()
	unknown.settled()
}
