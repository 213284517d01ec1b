package read

import (
	"context"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/collect"
)

// Serving says when OLM's kinds are Ambit's to serve.
type Serving string

const (
	// ServeAuto serves them unless OLM's own controllers run.
	ServeAuto Serving = "auto"
	// ServeAlways serves them whatever else runs.
	ServeAlways Serving = "enabled"
	// ServeNever leaves them alone.
	ServeNever Serving = "disabled"
)

// olmOperators are OLM's own controllers, by the name of their Deployment, which is also its label app. They hold no lease, so
// that the Deployment is all there is to see of them.
var olmOperators = []string{"olm-operator", "catalog-operator"}

// OLMNamespaces are where OLM's own controllers run: upstream, and on OpenShift. A Deployment of that name anywhere else says
// nothing: whoever administers some namespace can make one.
func OLMNamespaces() []string { return []string{"olm", "openshift-operator-lifecycle-manager"} }

// Ownership says whether OLM's kinds are Ambit's to serve, and follows OLM's controllers as they come and go. What cannot be
// known counts as not Ambit's: two controllers of one kind would undo each other's work.
type Ownership struct {
	serving Serving
	client  client.WithWatch
	// namespaces are those of OLM.
	namespaces []string

	mu sync.Mutex
	// running are OLM's controllers that run or are asked to, by namespace.
	running map[string]*listed[struct{}]
	// was is what ours returned when it was looked last.
	was       [2]bool
	listeners []func()
	// changed wakes up the goroutine that calls them.
	changed chan struct{}
}

// NewOwnership returns an Ownership that begins to know with Start. Without namespaces, OLM's controllers are looked for in
// OLMNamespaces.
func NewOwnership(c client.WithWatch, serving Serving, namespaces ...string) *Ownership {
	if len(namespaces) == 0 {
		namespaces = OLMNamespaces()
	}

	namespaces = slices.Sorted(slices.Values(namespaces))

	o := &Ownership{
		serving: serving, client: c, namespaces: slices.Compact(namespaces),
		changed: make(chan struct{}, 1), running: map[string]*listed[struct{}]{},
	}
	for _, namespace := range o.namespaces {
		o.running[namespace] = &listed[struct{}]{}
	}

	return o
}

// Ours says whether OLM's kinds are Ambit's to serve, and whether that is known. What is not known is not ours.
func (o *Ownership) Ours() (ours, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()

	return o.ours()
}

func (o *Ownership) ours() (ours, known bool) {
	if o.serving != ServeAuto {
		return o.serving == ServeAlways, true
	}

	known = true

	for _, running := range o.running {
		if running.isListed && len(running.rows) > 0 {
			return false, true
		}

		known = known && running.isListed
	}

	return known, known
}

// Controllers names OLM's controllers that are known to run, as namespace/name, sorted.
func (o *Ownership) Controllers() []string {
	o.mu.Lock()
	defer o.mu.Unlock()

	var out []string

	for _, running := range o.running {
		for key := range running.rows {
			if running.isListed {
				out = append(out, key.String())
			}
		}
	}

	slices.Sort(out)

	return out
}

// OnChange lets a function be called after what Ours returns has changed, once for changes that follow each other closely. The
// function may ask again; the next one waits until it returns.
func (o *Ownership) OnChange(notify func()) {
	o.mu.Lock()
	defer o.mu.Unlock()

	o.listeners = append(o.listeners, notify)
}

// Look lists OLM's controllers once, with what a caller may list, where nobody follows them. What may not be listed stays
// unknown.
func (o *Ownership) Look(list func(namespace string) (found []appsv1.Deployment, may bool, err error)) error {
	if o.serving != ServeAuto {
		return nil
	}

	for _, namespace := range o.namespaces {
		found, may, err := list(namespace)
		if err != nil {
			return err
		}

		if !may {
			continue
		}

		objs := collect.Map(collect.Pointers(found), func(d *appsv1.Deployment) any { return d })

		if err := o.sink(namespace).Replace(objs, ""); err != nil {
			return err
		}
	}

	return nil
}

// Unlisted are the namespaces of OLM of which nothing is known, sorted.
func (o *Ownership) Unlisted() []string {
	o.mu.Lock()
	defer o.mu.Unlock()

	return slices.DeleteFunc(slices.Clone(o.namespaces), func(name string) bool { return o.running[name].isListed })
}

// Start watches OLM's controllers until the context ends: the Deployments of OLM's namespaces.
func (o *Ownership) Start(ctx context.Context) error {
	if o.serving == ServeAuto {
		for _, namespace := range o.namespaces {
			o.watch(ctx, namespace)
		}
	}

	for {
		select {
		case <-ctx.Done():
			return nil
		case <-o.changed:
		}

		o.mu.Lock()
		listeners := slices.Clone(o.listeners)
		o.mu.Unlock()

		for _, notify := range listeners {
			notify()
		}
	}
}

func (o *Ownership) watch(ctx context.Context, namespace string) {
	s := o.sink(namespace)

	follow(ctx, o.client, s, &appsv1.DeploymentList{}, func(err error) {
		// An API server that cannot be reached now does not change what is known; one that refuses does.
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			o.forget(namespace, s)
		}
	}, client.InNamespace(namespace))
}

// sink records what a watch reports about one of OLM's namespaces.
func (o *Ownership) sink(namespace string) *sink[struct{}] {
	return o.running[namespace].sink(&o.mu, convertOLM, o.look)
}

// forget notes that a namespace may not be seen. What its watch still reports waits for the next list.
func (o *Ownership) forget(namespace string, s *sink[struct{}]) {
	o.mu.Lock()
	defer o.mu.Unlock()

	o.running[namespace].isListed, s.synced = false, false
	o.look()
}

// look notifies the listeners if the answer has changed. It is called with mu held.
func (o *Ownership) look() {
	was := o.was
	if o.was[0], o.was[1] = o.ours(); o.was != was {
		wake(o.changed)
	}
}

// convertOLM keeps, of the Deployments of one of OLM's namespaces, OLM's controllers that run or are asked to. While the last of
// its pods are there, one has not stopped.
func convertOLM(obj client.Object) (struct{}, bool) {
	d, ok := obj.(*appsv1.Deployment)
	if !ok {
		return struct{}{}, false
	}

	labelled := d.Labels["app"] == d.Name || d.Spec.Template.Labels["app"] == d.Name
	isOLMs := labelled && slices.Contains(olmOperators, d.Name)
	stopped := d.Spec.Replicas != nil && *d.Spec.Replicas == 0 && d.Status.Replicas == 0

	return struct{}{}, isOLMs && !stopped
}
