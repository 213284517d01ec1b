// Package snapshot reads the cluster once, with the rights of whoever asks, into the facts that the manager's planner takes. It
// decides nothing, writes nothing, and remembers what may not be read: that is said to users, never guessed.
package snapshot

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/printable"
)

// parallel bounds the requests under way at once.
const parallel = 16

// Reader reads with the rights of its client.
type Reader struct {
	client.Client

	// Progress is called with how far a long read is. Optional.
	Progress func(what string, done, all int)
	// MayActAs says whether the caller may act as a user, where that must not be tried. Optional: without it, the reader tries.
	MayActAs func(ctx context.Context, user string) (bool, error)

	mu     sync.Mutex
	denied map[Denied]struct{}
}

// Denied is something that may not be read. Without a namespace it is about the whole cluster.
type Denied struct {
	Verb      string `json:"verb"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
}

// String says it to whoever asked.
func (d Denied) String() string {
	if d.Namespace == "" {
		return fmt.Sprintf("you may not %s %s in the whole cluster", d.Verb, d.Resource)
	}

	return fmt.Sprintf("you may not %s %s in namespace %s", d.Verb, d.Resource, d.Namespace)
}

// namespaceResource is what a namespace itself is.
const namespaceResource = "namespaces"

// New returns a reader.
func New(c client.Client) *Reader { return &Reader{Client: c, denied: map[Denied]struct{}{}} }

// Denied returns what could not be read so far, sorted.
func (r *Reader) Denied() []Denied {
	r.mu.Lock()
	defer r.mu.Unlock()

	return slices.SortedFunc(maps.Keys(r.denied), func(a, b Denied) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Verb, b.Verb))
	})
}

// IsDenied says whether something could not be read. Of a large cluster, that may be asked about each of many namespaces.
func (r *Reader) IsDenied(d Denied) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	_, is := r.denied[d]

	return is
}

// Deny remembers that something may not be read.
func (r *Reader) Deny(d Denied) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.denied[d] = struct{}{}
}

// Listed says how a list went.
type Listed int

// What may become of a list. Unknown means that the cluster does not know the kind.
const (
	Complete Listed = iota
	Forbidden
	Unknown
)

// Lists lists a resource in a namespace, or everywhere. It does not remember a refusal: there may be another way.
func (r *Reader) Lists(ctx context.Context, list client.ObjectList, resource, namespace string) (Listed, error) {
	if !canBe(namespace) {
		return Complete, nil
	}

	err := r.List(ctx, list, client.InNamespace(namespace))

	switch {
	case err == nil:
		return Complete, nil
	case apierrors.IsForbidden(err):
		return Forbidden, nil
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
		return Unknown, nil
	case namespace == "":
		return Unknown, fmt.Errorf("listing %s: %w", resource, err)
	default:
		return Unknown, fmt.Errorf("listing %s in namespace %s: %w", resource, namespace, err)
	}
}

// canBe says whether something can have a name. The definitions of OLM's kinds take any text for one, and whoever asks for what
// nothing can be called gets an error, and no answer that it is not there.
func canBe(name string) bool { return len(content.IsPathSegmentName(name)) == 0 }

// Need lists a resource, and remembers if the caller may not list it.
func (r *Reader) Need(ctx context.Context, list client.ObjectList, resource, namespace string) (Listed, error) {
	listed, err := r.Lists(ctx, list, resource, namespace)
	if err == nil && listed == Forbidden {
		r.Deny(Denied{Verb: "list", Resource: resource, Namespace: namespace})
	}

	return listed, err
}

// Each calls do for 0 to n-1, with a bounded number under way at once, until one fails.
func (r *Reader) Each(ctx context.Context, what string, n int, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)

	var done atomic.Int64

	workqueue.ParallelizeUntil(ctx, parallel, n, func(i int) {
		if err := do(i); err != nil {
			cancel(err)
		} else if r.Progress != nil {
			r.Progress(what, int(done.Add(1)), n)
		}
	})

	return context.Cause(ctx) //nolint:wrapcheck // It is what do returned, or that the context ended.
}

// Words joins what could not be read into lines: one for a kind of refusal, with the namespaces that it is about.
func Words(denied []Denied) []string {
	type kind struct{ verb, resource string }

	in := map[kind][]string{}

	var (
		order []kind
		out   []string
	)

	for _, d := range denied {
		if d.Namespace == "" {
			out = append(out, d.String())

			continue
		}

		k := kind{d.Verb, d.Resource}
		if _, known := in[k]; !known {
			order = append(order, k)
		}

		in[k] = append(in[k], d.Namespace)
	}

	for _, k := range order {
		word, counts := "namespace", "counts"
		if len(in[k]) > 1 {
			word, counts = "namespaces", "count"
		}

		if k.resource == namespaceResource {
			out = append(out, fmt.Sprintf("you may not look for %s %s, which %s as existing", word,
				printable.Some(in[k], maxNames), counts))
		} else {
			out = append(out, fmt.Sprintf("you may not %s %s in %s %s", k.verb, k.resource, word, printable.Some(in[k], maxNames)))
		}
	}

	return out
}

const maxNames = 5
