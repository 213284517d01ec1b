package read

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// owners are an API server whose namespaces let nobody in until their owner says so.
type owners struct {
	client.WithWatch

	mu sync.Mutex
	// in are the namespaces that may be read.
	in map[string]struct{}
	// now and most are the requests that are being answered, and the most of them that ever were.
	now, most int
}

func (o *owners) let(namespace string) {
	o.mu.Lock()
	defer o.mu.Unlock()

	o.in[namespace] = struct{}{}
}

func (o *owners) List(_ context.Context, _ client.ObjectList, opts ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(opts)

	o.mu.Lock()
	o.now++
	o.most = max(o.most, o.now)
	_, may := o.in[asked.Namespace]
	o.mu.Unlock()

	time.Sleep(time.Millisecond)

	o.mu.Lock()
	defer o.mu.Unlock()

	o.now--

	if !may {
		return apierrors.NewForbidden(rbacv1.Resource("roles"), "", nil)
	}

	return nil
}

func (o *owners) Watch(_ context.Context, _ client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
	asked := client.ListOptions{}
	asked.ApplyOptions(opts)

	if asked.Raw != nil && asked.Raw.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(rbacv1.SchemeGroupVersion.WithKind("Role").GroupKind(), "", nil) // It is listed instead.
	}

	return watch.NewFake(), nil
}

// begin starts watches of what owners let in, for as long as the test runs.
func (o *owners) begin(t *testing.T) *Watches {
	t.Helper()

	w := NewWatches(NewStore(&heard{}), o, true)

	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})

	go func() {
		defer close(done)

		_ = w.Start(ctx) // It ends with the context, and has no error.
	}()

	synctest.Wait()
	t.Cleanup(func() { stop(); <-done; synctest.Wait() })

	return w
}

// strangers are namespaces that let nobody in; they need not even exist.
func strangers(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("stranger-%05d", i)
	}

	return names
}

// within waits until a namespace has the access that is wanted, and says for how long.
func (w *Watches) within(t *testing.T, key scope.Key, namespace string, isOpen bool) time.Duration {
	t.Helper()

	began := time.Now()

	for {
		w.store.mu.RLock()
		found, decided := w.store.inAccessible(key)
		w.store.mu.RUnlock()

		if decided && (found[namespace].Closed == "") == isOpen {
			return time.Since(began)
		}

		if time.Since(began) > time.Hour {
			t.Fatalf("%s of %v is not seen", namespace, key)
		}

		time.Sleep(10 * time.Millisecond)
	}
}

// TestStrangersOfOneNamespaceDelayNoOther: whoever may write a scope or an OperatorGroup in one operator namespace can name any
// number of namespaces that let nobody in. Those who wait for the owner of a member to let them in elsewhere wait no longer for
// that.
func TestStrangersOfOneNamespaceDelayNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &owners{in: map[string]struct{}{"evil": {}, "home": {}}}
		w := o.begin(t)
		home, evil := scope.NamespaceScopes.In("home"), scope.Installs.In("evil")

		w.Members(evil, append(strangers(2_000), "evil"))
		w.Members(home, []string{"m"})
		w.within(t, evil, "evil", true)
		w.within(t, home, "m", false)
		time.Sleep(time.Minute)

		o.let("m")

		if took := w.within(t, home, "m", true); took > lastCheck+time.Second {
			t.Errorf("an owner let somebody in, who learned of that %s later", took)
		}
	})
}

// TestFewAccessesAreCheckedAtOnce: the many that somebody names are not checked all at once.
func TestFewAccessesAreCheckedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &owners{in: map[string]struct{}{"evil": {}}}
		w := o.begin(t)
		key := scope.NamespaceScopes.In("evil")

		w.Members(key, strangers(500))

		if took := w.within(t, key, "stranger-00000", false); took > time.Minute {
			t.Errorf("it took %s until all were checked", took)
		}

		if o.most > checksAtOnce {
			t.Errorf("%d requests were under way at once", o.most)
		}

		w.Members(key, nil)
		time.Sleep(time.Minute)

		if n := w.checks["evil"].due.Len(); n > 0 {
			t.Errorf("%d are to be checked that nobody needs any more", n)
		}
	})
}
