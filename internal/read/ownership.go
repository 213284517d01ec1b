package read

import (
	"context"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
	// running are OLM's controllers that run or are asked to, in each of the namespaces that could be listed.
	running   map[string]map[types.NamespacedName]bool
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

	return &Ownership{
		serving: serving, client: c, namespaces: slices.Compact(namespaces),
		changed: make(chan struct{}, 1), running: map[string]map[types.NamespacedName]bool{},
	}
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

	for _, running := range o.running {
		if len(running) > 0 {
			return false, true
		}
	}

	known = len(o.running) == len(o.namespaces)

	return known, known
}

// Controllers names OLM's controllers that are known to run, as namespace/name, sorted.
func (o *Ownership) Controllers() []string {
	o.mu.Lock()
	defer o.mu.Unlock()

	var out []string

	for _, running := range o.running {
		for key := range running {
			out = append(out, key.String())
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

		objs := make([]any, len(found))
		for i := range found {
			objs[i] = &found[i]
		}

		if err := o.store(namespace).Replace(objs, ""); err != nil {
			return err
		}
	}

	return nil
}

// Unlisted are the namespaces of OLM of which nothing is known, sorted.
func (o *Ownership) Unlisted() []string {
	o.mu.Lock()
	defer o.mu.Unlock()

	return slices.DeleteFunc(slices.Clone(o.namespaces), func(name string) bool {
		_, listed := o.running[name]

		return listed
	})
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
	failed := func(err error) {
		// An API server that cannot be reached now does not change what is known; one that refuses does.
		if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
			o.change(func() { delete(o.running, namespace) })
		}
	}
	from := listerWatcher(o.client, &appsv1.DeploymentList{}, failed,
		[]client.ListOption{client.InNamespace(namespace)})

	go newReflector(from, o.store(namespace), "Deployments of OLM in "+namespace).RunWithContext(ctx)
}

// change changes what is known, and notifies the listeners if the answer differs then.
func (o *Ownership) change(edit func()) {
	o.mu.Lock()
	defer o.mu.Unlock()

	ours, known := o.ours()

	edit()

	if oursNow, knownNow := o.ours(); ours != oursNow || known != knownNow {
		wake(o.changed)
	}
}

// store records what a watch reports about one of OLM's namespaces. What it reports after a refusal waits for the next list.
func (o *Ownership) store(namespace string) *objectStore {
	drop := func(obj client.Object) { delete(o.running[namespace], client.ObjectKeyFromObject(obj)) }

	return &objectStore{
		locked: o.change, forget: func() { o.running[namespace] = map[types.NamespacedName]bool{} }, drop: drop,
		put: func(obj client.Object) {
			running, listed := o.running[namespace]
			if d, is := obj.(*appsv1.Deployment); is && listed && isOLM(d) {
				running[client.ObjectKeyFromObject(d)] = true
			} else {
				drop(obj)
			}
		},
	}
}

// isOLM says whether a Deployment of one of OLM's namespaces is one of OLM's controllers, and runs or is asked to. While the last
// of its pods are there it has not stopped.
func isOLM(d *appsv1.Deployment) bool {
	labelled := d.Labels["app"] == d.Name || d.Spec.Template.Labels["app"] == d.Name
	isOLMs := labelled && slices.Contains(olmOperators, d.Name)
	stopped := d.Spec.Replicas != nil && *d.Spec.Replicas == 0 && d.Status.Replicas == 0

	return isOLMs && !stopped
}
