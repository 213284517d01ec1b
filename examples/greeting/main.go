// Command greeting is an operator that follows its scope: a Greeting becomes a ConfigMap with its text and a Deployment that
// shows it, in whatever namespaces the list names at the moment. All that is special about it is marked with "scope:".
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/ambit-k8s/ambit/watchlist"
)

const (
	finalizer = "example.com/greeting"
	variable  = "WATCH_NAMESPACE"
)

var greetingKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Greeting"}

func main() {
	ctrl.SetLogger(zap.New())

	if err := run(ctrl.SetupSignalHandler()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return err
	}

	wl, err := scope(cfg)
	if err != nil {
		return err
	}

	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		NewCache:               wl.NewCache(), // scope: the one line that changes
		Metrics:                metricsserver.Options{BindAddress: "0"},
		HealthProbeBindAddress: os.Getenv("HEALTH_ADDRESS"),
	})
	if err != nil {
		return err
	}

	r := &reconciler{Client: mgr.GetClient()}

	// scope: what to do for a namespace that leaves, while the permissions are still there; only where this replica leads.
	wl.HooksAfter(mgr.Elected())
	wl.OnLeave(r.letGo)

	if err := mgr.AddReadyzCheck("scope", wl.Ready); err != nil {
		return err
	}

	err = ctrl.NewControllerManagedBy(mgr).Named("greeting").
		For(newGreeting()).Owns(&corev1.ConfigMap{}).Owns(&appsv1.Deployment{}).
		Complete(wl.Reconciler(r)) // scope: no call for a namespace that left; without it, one that ends at its first read
	if err != nil {
		return err
	}

	return mgr.Start(ctx)
}

// scope: where the list is. The ConfigMap is followed, and no other is believed. A Deployment that still has the variable, as
// operators have that are restarted for each list, is served as ever.
func scope(cfg *rest.Config) (*watchlist.List, error) {
	if _, fixed := os.LookupEnv(variable); fixed {
		return watchlist.FromEnv(variable)
	}

	return watchlist.FromConfigMap(cfg, os.Getenv("POD_NAMESPACE"), "namespace-scope")
}

type reconciler struct{ client.Client }

func newGreeting() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(greetingKind)

	return u
}

// Reconcile knows nothing of scopes.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	g := newGreeting()
	if err := r.Get(ctx, req.NamespacedName, g); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}

	if !g.GetDeletionTimestamp().IsZero() {
		return ctrl.Result{}, r.finish(ctx, g)
	}

	if controllerutil.AddFinalizer(g, finalizer) {
		if err := r.Update(ctx, g); err != nil {
			return ctrl.Result{}, err
		}
	}

	text, _, _ := unstructured.NestedString(g.Object, "spec", "text")
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.GetNamespace(), Name: g.GetName()}}

	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, cm, func() error {
		cm.Data = map[string]string{"text": text}

		return controllerutil.SetControllerReference(g, cm, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the ConfigMap: %w", err)
	}

	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: g.GetNamespace(), Name: g.GetName()}}

	_, err = controllerutil.CreateOrUpdate(ctx, r.Client, d, func() error {
		shape(d)

		return controllerutil.SetControllerReference(g, d, r.Scheme())
	})
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("writing the Deployment: %w", err)
	}

	return ctrl.Result{}, nil
}

func shape(d *appsv1.Deployment) {
	labels := map[string]string{"greeting": d.Name}
	d.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	d.Spec.Template.Labels = labels

	if len(d.Spec.Template.Spec.Containers) == 0 {
		d.Spec.Template.Spec.Containers = make([]corev1.Container, 1)
	}

	c := &d.Spec.Template.Spec.Containers[0]
	c.Name, c.Image = "greeting", "registry.example.com/greeting:1"
	c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: d.Name},
	}}}
}

// finish is where an operator would undo what no garbage collector knows of.
func (r *reconciler) finish(ctx context.Context, g *unstructured.Unstructured) error {
	if !controllerutil.RemoveFinalizer(g, finalizer) {
		return nil
	}

	return client.IgnoreNotFound(r.Update(ctx, g))
}

// letGo takes the finalizers off in a namespace that leaves: nobody else could delete its Greetings afterwards.
func (r *reconciler) letGo(ctx context.Context, namespace string) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(greetingKind)

	if err := r.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return fmt.Errorf("listing the Greetings of namespace %s: %w", namespace, err)
	}

	var errs []error // one that somebody else writes at the moment keeps no other; the hook is called again for it

	for i := range list.Items {
		if err := r.finish(ctx, &list.Items[i]); err != nil {
			errs = append(errs, fmt.Errorf("letting go of Greeting %s/%s: %w", namespace, list.Items[i].GetName(), err))
		}
	}

	return errors.Join(errs...)
}
