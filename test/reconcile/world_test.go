package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/ambit-k8s/ambit/internal/controllers/changes"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// until waits for what this process is about to know.
func until(ctx context.Context, done func() bool) error {
	return wait.PollUntilContextTimeout(ctx, 2*time.Millisecond, testbed.Patience, true, func(context.Context) (bool, error) {
		return done(), nil
	})
}

// world is one case's view. Namespaces are called by short names; what is shown of the cluster has these names, too.
type world struct {
	testbed.World
	*plane

	suffix string
	// watched is the operator namespace that is watched, and sources the same where it is for scopes, of which Roles are sources.
	watched, sources string
	// looked says that catalogs were reconciled once, and so are watched.
	looked bool
	// tripped says that the last call in a life failed, and hit that the fault has come since somebody looked.
	tripped bool
	hit     atomic.Bool
	// definitions are the names of those that the case made.
	definitions []string
	// spaces are the namespaces of the case.
	spaces []string
	// refuses says with which status a write or a read of the reconcilers is refused, which the case knows by its
	// words, 0 for none; nil when all come through.
	refuses func(what string) int
	// loses says whether the answer to a request is lost; nil when all arrive.
	loses func(what string) bool
	// wroteAs is who wrote what in all calls so far.
	wroteAs []string

	mu      sync.Mutex
	touched map[touchedKey]touched
}

type touchedKey struct {
	kind string
	types.NamespacedName
}

// touched is an object that the case wrote, and since when the watches may tell of it.
type touched struct {
	obj  client.Object
	gone bool
	at   time.Time
}

// begin starts a case that runs beside the others, in namespaces of its own.
func begin(t *testing.T) *world {
	t.Helper()

	return beginWith(t, "cluster")
}

func beginWith(t *testing.T, profile string) *world {
	t.Helper()

	w := &world{plane: planeOf(t, profile), suffix: rand.String(6), touched: map[touchedKey]touched{}}
	bed := &testbed.Bed{Config: apiServer, Client: interceptor.NewClient(w.client, w.notes())}
	w.World = testbed.World{T: t, Bed: bed}

	return w
}

// notes are the functions by which each write of a case is remembered.
func (w *world) notes() interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			at := time.Now()

			return w.note(c.Create(ctx, obj, opts...), touched{obj: obj, at: at})
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			at := time.Now()

			return w.note(c.Update(ctx, obj, opts...), touched{obj: obj, at: at})
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, p client.Patch, opts ...client.PatchOption) error {
			at := time.Now()

			return w.note(c.Patch(ctx, obj, p, opts...), touched{obj: obj, at: at})
		},
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			at := time.Now()
			if err := c.Delete(ctx, obj, opts...); err != nil {
				return err
			}

			// What has finalizers is there still, in a newer version.
			live, _ := obj.DeepCopyObject().(client.Object)
			err := c.Get(ctx, client.ObjectKeyFromObject(obj), live)

			return w.note(client.IgnoreNotFound(err), touched{obj: live, gone: err != nil, at: at})
		},
	}
}

func (w *world) note(err error, what touched) error {
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()

		what.obj, _ = what.obj.DeepCopyObject().(client.Object)
		w.touched[touchedKey{w.kindOf(what.obj), client.ObjectKeyFromObject(what.obj)}] = what
	}

	return err
}

// touch notes an object that was written otherwise.
func (w *world) touch(obj client.Object) { _ = w.note(nil, touched{obj: obj, at: time.Now()}) }

// kindOf is the kind of an object, whether or not it says so itself.
func (w *world) kindOf(obj client.Object) string {
	if gvk, err := apiutil.GVKForObject(obj, w.Client.Scheme()); err == nil {
		return gvk.Kind
	}

	return fmt.Sprintf("%T", obj)
}

// ns is the name of the namespace that is called by a short name.
func (w *world) ns(short string) string { return short + "-" + w.suffix }

// namespaces makes namespaces, with labels after a colon: "a", "b:team=red".
func (w *world) namespaces(all ...string) {
	w.Helper()

	for _, one := range all {
		short, labels, _ := strings.Cut(one, ":")
		obj := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.ns(short), Labels: map[string]string{}}}

		for label := range strings.SplitSeq(w.long(labels), ",") {
			if k, v, is := strings.Cut(label, "="); is {
				obj.Labels[k] = v
			}
		}

		w.Make(obj)
		w.spaces = append(w.spaces, obj.Name)
	}
}

// called shows a text with the short names.
func (w *world) called(text string) string { return strings.ReplaceAll(text, "-"+w.suffix, "") }

// calls counts the calls of Reconcile.
var calls atomic.Int64

// call is what one call of Reconcile returned, and what it wrote.
type call struct {
	reconcile.Result

	err     error
	writes  []string
	refused []string
	again   time.Duration
}

// call calls a reconciler once, after the caches took in all that was written before.
func (w *world) call(r changes.Reconciler, key scope.Key) call {
	w.Helper()

	ctx, noted := withWrites(w.Context())
	if w.refuses != nil {
		noted.refuses = func(what string) int { return w.refuses(w.called(what)) }
	}

	if w.loses != nil {
		noted.loses = func(what string) bool { return w.loses(w.called(what)) }
	}

	w.asked.take(key)
	calls.Add(1)

	result, err := r.Reconcile(ctx, key)

	noted.mu.Lock()
	defer noted.mu.Unlock()

	w.wroteAs = append(w.wroteAs, noted.as...)

	return call{
		Result: result, err: err, writes: w.short(noted.all), refused: w.short(noted.refused), again: w.asked.take(key),
	}
}

// answered calls a reconciler after the caches have caught up, and has it succeed.
func (w *world) answered(r changes.Reconciler, key scope.Key, catchUp func()) call {
	w.Helper()
	catchUp()

	c := w.call(r, key)
	if c.err != nil {
		w.Fatalf("Reconcile: %v", c.err)
	}

	return c
}

func (w *world) short(words []string) []string {
	out := make([]string, 0, len(words))
	for _, word := range words {
		out = append(out, w.called(word))
	}

	return out
}

// is fails the case when something is not as the rule says.
func is[V any](w *world, what string, got, want V) {
	w.Helper()

	if g, v := fmt.Sprintf("%v", got), fmt.Sprintf("%v", want); g != v {
		w.Errorf("%s:\n got %s\nwant %s", what, g, v)
	}
}
