package follow

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// How often what cannot be watched is read again: soon enough that a change is seen within two seconds, and for a tenth of the
// time at most, however long it takes.
const (
	again         = 1500 * time.Millisecond
	share         = 10
	checkInterval = 10 * time.Second
	// maxFollowed bounds the watches. What is listed beyond is read again like what may not be watched.
	maxFollowed = 200
)

// Client lists from memory what was listed before and is watched since.
type Client struct {
	*Gate

	ctx context.Context //nolint:containedctx // Watches last as long as the client, not as long as the question that began them.

	mu    sync.Mutex
	lists map[string]*followed
	got   *cache.LRUExpireCache
	news  chan struct{}
}

// followed is a list that is kept up to date.
type followed struct {
	mu sync.Mutex
	// objects are those of the list by namespace and name; nil while it has to be read again.
	objects map[client.ObjectKey]client.Object
	// until is when a list that is not watched has to be read again; zero for one that is, and without objects.
	until time.Time
}

// got is the answer for an object that was requested by name.
type got struct {
	object client.Object
	err    error
}

// New returns a client that follows until the context ends.
func New(ctx context.Context, gate *Gate) *Client {
	return &Client{
		Gate: gate, ctx: ctx, lists: map[string]*followed{}, got: cache.NewLRUExpireCache(maxRemembered), news: make(chan struct{}, 1),
	}
}

// Wait returns when something that was listed changed, when a list that is not watched is due again, and after checkInterval at
// the latest: objects that were got by name are not watched.
func (c *Client) Wait(ctx context.Context) error {
	timer := time.NewTimer(c.due())
	defer timer.Stop()

	select {
	case <-c.news:
	case <-timer.C:
	case <-ctx.Done():
	}

	return ctx.Err() //nolint:wrapcheck // It is known by what it is.
}

// due is how long it takes until a list that is not watched has to be read again. One that had to be already is forgotten: it is
// due this once, and only for whoever asks for it again.
func (c *Client) due() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()

	now := time.Now()
	next := now.Add(checkInterval)

	for _, f := range c.lists {
		f.mu.Lock()

		if !f.until.IsZero() && f.until.Before(next) {
			next = f.until
		}

		if !f.until.IsZero() && !f.until.After(now) {
			f.objects, f.until = nil, time.Time{}
		}

		f.mu.Unlock()
	}

	return max(0, time.Until(next))
}

func (c *Client) notify() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// List lists from memory, once it was listed.
func (c *Client) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	namespace := namespaceOf(options)
	if len(options) > 1 || len(options) == 1 && options[0] != client.InNamespace(namespace) {
		return c.Gate.List(ctx, list, options...)
	}

	gvk, err := apiutil.GVKForObject(list, c.Scheme())
	if err != nil {
		return fmt.Errorf("looking for a kind: %w", err)
	}

	key := gvk.String() + "/" + namespace

	c.mu.Lock()

	f := c.lists[key]
	if f == nil {
		f = &followed{}
		c.lists[key] = f
	}

	mayWatch := len(c.lists) <= maxFollowed
	c.mu.Unlock()

	f.mu.Lock()
	defer f.mu.Unlock()

	if f.objects == nil || !f.until.IsZero() && time.Now().After(f.until) {
		if err := c.read(ctx, f, list, namespace, mayWatch); err != nil {
			f.objects, f.until = nil, time.Time{}

			return err
		}
	}

	return f.fill(list)
}

// read lists from the API server, and begins to watch where that may be.
func (c *Client) read(ctx context.Context, f *followed, list client.ObjectList, namespace string, mayWatch bool) error {
	began := time.Now()

	if err := c.Gate.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return err
	}

	items, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("reading a list: %w", err)
	}

	f.objects, f.until = map[client.ObjectKey]client.Object{}, time.Time{}

	for _, item := range items {
		if obj, is := item.(client.Object); is {
			f.objects[client.ObjectKeyFromObject(obj)] = obj
		}
	}

	if mayWatch && c.check(ctx, "watch", list, namespace, "") == nil {
		empty, _ := reflect.TypeAssert[client.ObjectList](reflect.New(reflect.TypeOf(list).Elem())) // It has the list's own type.
		empty.GetObjectKind().SetGroupVersionKind(list.GetObjectKind().GroupVersionKind())

		stream, err := c.Watch(c.ctx, empty, client.InNamespace(namespace), &client.ListOptions{
			Namespace: namespace, Raw: &metav1.ListOptions{ResourceVersion: list.GetResourceVersion(), AllowWatchBookmarks: true},
		})
		if err == nil {
			go c.follow(f, stream)

			return nil
		}
	}

	f.until = time.Now().Add(max(again, share*time.Since(began)))

	return nil
}

// follow records what a watch reports until the watch ends; then the list is read again.
func (c *Client) follow(f *followed, stream watch.Interface) {
	defer stream.Stop()

	for event := range stream.ResultChan() {
		obj, is := event.Object.(client.Object)
		if !is || event.Type == watch.Error {
			break
		}

		if event.Type != watch.Bookmark {
			f.take(event.Type, obj)
			c.notify()
		}
	}

	f.mu.Lock()
	f.objects = nil
	f.mu.Unlock()
	// Wait a second, so that a watch that keeps ending at once does not cause as many requests.
	time.AfterFunc(time.Second, c.notify)
}

func (f *followed) take(kind watch.EventType, obj client.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()

	switch {
	case f.objects == nil:
	case kind == watch.Deleted:
		delete(f.objects, client.ObjectKeyFromObject(obj))
	default:
		f.objects[client.ObjectKeyFromObject(obj)] = obj
	}
}

// fill puts the objects into a list, sorted as the API server does. They are shared, so nobody may change what they point to.
func (f *followed) fill(list client.ObjectList) error {
	items := make([]runtime.Object, 0, len(f.objects))
	for _, obj := range f.objects {
		items = append(items, obj)
	}

	slices.SortFunc(items, func(a, b runtime.Object) int {
		x, _ := a.(client.Object)
		y, _ := b.(client.Object)

		return strings.Compare(x.GetNamespace()+"/"+x.GetName(), y.GetNamespace()+"/"+y.GetName())
	})

	if err := meta.SetList(list, items); err != nil {
		return fmt.Errorf("making a list: %w", err)
	}

	return nil
}

// Get answers from memory for checkInterval after it asked.
func (c *Client) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	if len(options) > 0 {
		return c.Gate.Get(ctx, key, obj, options...)
	}

	gvk, err := apiutil.GVKForObject(obj, c.Scheme())
	if err != nil {
		return fmt.Errorf("looking for a kind: %w", err)
	}

	name := gvk.String() + "/" + key.String()

	remembered, is := c.got.Get(name)
	known, _ := remembered.(got) // Nothing else is in it.

	if !is {
		fresh, _ := obj.DeepCopyObject().(client.Object) // As above.

		err := c.Gate.Get(ctx, key, fresh)
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return err
		}

		known = got{fresh, err}
		c.got.Add(name, known, checkInterval)
	}

	if known.err != nil {
		return known.err
	}

	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(known.object.DeepCopyObject()).Elem())

	return nil
}
