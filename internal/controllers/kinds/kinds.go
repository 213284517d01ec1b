// Package kinds reads kinds whose CustomResourceDefinitions may be missing, come and go. The informers of controller-runtime take
// a kind for granted: a controller that watches one which is missing ends the manager after two minutes, and one that goes while
// it is watched leaves behind what was read last. Where nothing may be read cluster-wide, Namespaces reads them in each namespace
// that is served.
package kinds

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/cluster"

	"github.com/ambit-k8s/ambit/internal/collect"
)

const (
	// firstQuestion and lastQuestion are the least and the most time between two questions whether a kind is there. Where its
	// definition is watched, nobody asks while there is none.
	firstQuestion = 250 * time.Millisecond
	lastQuestion  = 30 * time.Second
	// sure is for how long the API server has to deny a kind before it counts as missing, where its definition cannot be watched: a
	// missing kind has no objects, and what no object asks for is taken back.
	sure = 2 * time.Second
)

// Options are what Kinds work with.
type Options struct {
	// Cache is from where kinds are read; nothing else reads them there.
	Cache cache.Cache
	// Namespace is where they are read; empty means everywhere.
	Namespace string
	// Definition says whether a CustomResourceDefinition is there, and whether that is known. Optional.
	Definition func(name string) (there, known bool)
	// Changed is called after a kind came or went.
	Changed func()
	// Missing is called for each kind, by its definition, with whether it is missing.
	Missing func(definition string, missing bool)
	Log     logr.Logger
}

// Kinds are kinds that are read from a cache while their definitions are there. A kind that is missing has no objects.
type Kinds struct {
	Options

	client client.Client
	scheme *runtime.Scheme

	// mu is held while the cache is read, so that no informer goes meanwhile: the cache would make a new one, and wait for it.
	mu  sync.RWMutex
	all []*kind
}

// kind is what is known of one of them.
type kind struct {
	object     client.Object
	gvk        schema.GroupVersionKind
	resource   schema.GroupResource
	definition string
	// wake asks to look again.
	wake chan struct{}
	// decided is closed, by attend, once it was listed or found missing.
	decided chan struct{}

	// indexes are by which its objects are found in the cache.
	indexes map[string]client.IndexerFunc
	// listed says that it can be read from the cache. informer is nil while there is none.
	listed   bool
	informer cache.Informer
	sources  []*subscription
	// denied is since when the API server says that there is no such kind; zero while it does not. Only attend uses it, and
	// reported.
	denied   time.Time
	reported bool
}

// New returns Kinds that know nothing before Start.
func New(c cluster.Cluster, o Options, objects ...client.Object) (*Kinds, error) {
	k := &Kinds{Options: o, scheme: c.GetScheme()}
	// A kind that is missing cannot be discovered.
	mapper := meta.NewDefaultRESTMapper(nil)

	for _, object := range objects {
		gvk, err := apiutil.GVKForObject(object, c.GetScheme())
		if err != nil {
			return nil, fmt.Errorf("telling the kind of %T: %w", object, err)
		}

		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		mapper.Add(gvk, meta.RESTScopeNamespace) // As good for one that has none: no namespace is asked for then.

		k.all = append(k.all, &kind{
			object: object, gvk: gvk, resource: plural.GroupResource(), definition: plural.GroupResource().String(),
			wake: make(chan struct{}, 1), decided: make(chan struct{}), indexes: map[string]client.IndexerFunc{},
		})
	}

	var err error
	if k.client, err = client.New(c.GetConfig(), client.Options{
		HTTPClient: c.GetHTTPClient(), Scheme: c.GetScheme(), Mapper: mapper,
	}); err != nil {
		return nil, fmt.Errorf("making the client that asks for kinds: %w", err)
	}

	return k, nil
}

// Index has the objects of a kind found by the values of a field. It is called before Start.
func (k *Kinds) Index(object client.Object, field string, values client.IndexerFunc) {
	k.of(object).indexes[field] = values
}

// Definitions are the names of the CustomResourceDefinitions.
func (k *Kinds) Definitions() []string {
	return collect.Map(k.all, func(one *kind) string { return one.definition })
}

// Wake has Kinds look again whether their definitions are there.
func (k *Kinds) Wake() {
	for _, one := range k.all {
		select {
		case one.wake <- struct{}{}:
		default: // It is about to look in any case.
		}
	}
}

// Start attends to each kind, whatever becomes of the others, until the context ends.
func (k *Kinds) Start(ctx context.Context) error {
	var running sync.WaitGroup

	for _, one := range k.all {
		running.Go(func() { k.attend(ctx, one) })
	}

	running.Wait()

	return nil
}

// Wait waits until each kind was listed or found missing. It returns false when the context ends before.
func (k *Kinds) Wait(ctx context.Context) bool {
	for _, one := range k.all {
		select {
		case <-ctx.Done():
			return false
		case <-one.decided:
		}
	}

	return true
}

// WaitFor waits until a kind was listed, and every other one was, too, or was found missing: the caller may read those as well.
// It returns false when the context ends before.
func (k *Kinds) WaitFor(ctx context.Context, object client.Object) bool {
	one := k.of(object)
	if one == nil || !k.Wait(ctx) {
		return false
	}

	return wait.PollUntilContextCancel(ctx, firstQuestion, true, func(context.Context) (bool, error) {
		k.mu.RLock()
		defer k.mu.RUnlock()

		return one.listed, nil
	}) == nil
}

// Listed returns an error that names a kind which is neither listed nor known to be missing; nil when there is none.
func (k *Kinds) Listed() error {
	for _, one := range k.all {
		if !one.isDecided() {
			return fmt.Errorf("%s is not listed yet", one.definition)
		}
	}

	return nil
}

// IsMissing says whether a kind is known to be missing.
func (k *Kinds) IsMissing(object client.Object) bool {
	one := k.of(object)

	k.mu.RLock()
	defer k.mu.RUnlock()

	return one != nil && one.isDecided() && !one.listed
}

func (o *kind) isDecided() bool { return isClosed(o.decided) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// of is the kind of an object, or of those in a list.
func (k *Kinds) of(object runtime.Object) *kind {
	gvk, err := apiutil.GVKForObject(object, k.scheme)
	if err != nil {
		return nil
	}

	gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")

	i := slices.IndexFunc(k.all, func(one *kind) bool { return one.gvk == gvk })
	if i < 0 {
		return nil
	}

	return k.all[i]
}

// verdict is whether a kind is there.
type verdict int

const (
	unknown verdict = iota
	there
	missing
)

// ask finds out whether a kind is there. A kind whose definition exists counts as there, although the API server may not serve
// its version: its objects are not gone, and must not be taken for gone.
func (k *Kinds) ask(ctx context.Context, one *kind) verdict {
	if k.Definition != nil {
		if is, known := k.Definition(one.definition); known && is {
			return there
		} else if known {
			return missing
		}
	}

	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(one.gvk.GroupVersion().WithKind(one.gvk.Kind + "List"))

	// The API server denies no kind before it knows all of them: until then it says that it is unavailable. (KEP-1904,
	// k8s.io/apiserver/pkg/endpoints/filters/mux_discovery_complete.go)
	err := k.client.List(ctx, list, client.InNamespace(k.Namespace), client.Limit(1))

	switch {
	case err == nil || apierrors.IsForbidden(err): // The informer reports that it may not be read.
		one.denied = time.Time{}

		return there
	case !apierrors.IsNotFound(err):
		return unknown
	case one.denied.IsZero():
		one.denied = time.Now()

		return unknown
	case time.Since(one.denied) < sure:
		return unknown
	default:
		return missing
	}
}
