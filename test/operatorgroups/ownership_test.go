package operatorgroups_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestOLMsControllersComeAndGo: whose OLM's kinds are is known from OLM's Deployments, while it runs.
func TestOLMsControllersComeAndGo(t *testing.T) {
	w := beds.Alone(t, "cluster")
	olm := w.Namespace("olm")
	o, told := owns(w, w.Config, olm)

	w.Eventually("without OLM the kinds are Ambit's", says(o, true, true))

	for _, name := range []string{"olm-operator", "catalog-operator"} {
		d := deployment(olm, name)
		w.Make(d)
		w.Eventually(name+" comes", says(o, false, true))

		if got, want := o.Controllers(), []string{olm + "/" + name}; !slices.Equal(got, want) {
			t.Errorf("OLM's controllers are %v, want %v", got, want)
		}

		w.Change(d, func() { d.Spec.Replicas = new(int32(0)) })
		w.Eventually(name+" is stopped", says(o, true, true))
		w.Change(d, func() { d.Spec.Replicas = new(int32(1)) })
		w.Eventually(name+" is started", says(o, false, true))
		w.Remove(d)
		w.Eventually(name+" goes", says(o, true, true))
	}

	shop := deployment(olm, "catalog-operator")
	shop.Labels["app"], shop.Spec.Template.Labels["app"], shop.Spec.Selector.MatchLabels["app"] = "shop", "shop", "shop"
	w.Make(shop)

	another := deployment(olm, "olm-operator")
	w.Make(another)
	w.Eventually("what comes later is known", says(o, false, true))

	if got, want := o.Controllers(), []string{olm + "/olm-operator"}; !slices.Equal(got, want) {
		t.Errorf("something of the same name is not OLM's: %v, want %v", got, want)
	}

	w.Remove(another)
	w.Eventually("at the end the kinds are Ambit's", says(o, true, true))

	if len(told) == 0 {
		t.Error("nobody was told of a change")
	}
}

// TestWhatCannotBeKnownIsNotOurs takes the right away by which OLM is seen.
func TestWhatCannotBeKnownIsNotOurs(t *testing.T) {
	w := beds.Alone(t, "cluster")
	ops := w.Namespace("home")
	w.Make(testbed.Account(ops, "watcher"))

	config := rest.CopyConfig(w.Config)
	config.Impersonate.UserName = "system:serviceaccount:" + ops + ":watcher"

	o, _ := owns(w, config)

	if ours, known := o.Ours(); ours || known {
		t.Errorf("ours %t, known %t; nothing can be known", ours, known)
	}

	role := testbed.ClusterRole(ops, "list,watch deployments")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ops}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: ops},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ops, Name: "watcher"}},
	}

	w.Make(role, binding)
	w.Cleanup(func() { _ = w.Client.Delete(context.Background(), role) })
	w.Eventually("it may be known", says(o, true, true))
}

// owns watches as somebody, and counts the changes that it is told of.
func owns(w *testbed.World, config *rest.Config, namespaces ...string) (*read.Ownership, chan struct{}) {
	w.Helper()

	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		w.Fatal(err)
	}

	told := make(chan struct{}, 100)
	o := read.NewOwnership(c, read.ServeAuto, namespaces...)
	o.OnChange(func() { told <- struct{}{} })

	ctx, stop := context.WithCancel(w.Context())
	w.Cleanup(stop)

	go func() { _ = o.Start(ctx) }()

	return o, told
}

func says(o *read.Ownership, ours, known bool) func() error {
	return func() error {
		if o, k := o.Ours(); o != ours || k != known {
			return fmt.Errorf("ours %t, known %t", o, k)
		}

		return nil
	}
}

func deployment(namespace, name string) *appsv1.Deployment {
	labels := func() map[string]string { return map[string]string{"app": name} }

	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels()},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels()},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels()},
				Spec: corev1.PodSpec{
					TerminationGracePeriodSeconds: new(int64(0)),
					Containers:                    []corev1.Container{{Name: name, Image: "registry.example.com/olm:1"}},
				},
			},
		},
	}
}
