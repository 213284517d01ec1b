package live_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// What examples/greeting/manifests.yaml calls things.
const (
	operatorName  = "greeting"
	operatorImage = "registry.example.com/greeting-operator:1"
	listName      = "namespace-scope"
	finalizer     = "example.com/greeting"
	hello         = "hello"
)

var greetingKind = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Greeting"}

// world is an operator of examples/greeting that runs, beside a reader of the list that does not follow it.
type world struct {
	*testbed.World

	ops     string
	kubelet *embedded.Kubelet
	// pod is the operator's.
	pod   string
	scope *operatorv1.NamespaceScope
}

// begin installs the operator as a user would, and runs it.
func begin(t *testing.T) *world {
	t.Helper()

	w := &world{World: suite.bed.Begin(t)}
	w.ops = w.Namespace("greetings")
	w.scope = &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: w.ops, Name: "greetings"}}

	var err error

	w.kubelet, err = embedded.StartKubelet(w.Config, &embedded.KubeletOptions{
		Dir: t.TempDir(), Namespace: w.ops, Programs: map[string]string{operatorImage: suite.operator},
		Environment: []string{"HEALTH_ADDRESS=127.0.0.1:0"},
		Died:        func(err error) { t.Error(err) },
	})
	w.must(err)
	t.Cleanup(func() {
		if err := w.kubelet.Stop(); err != nil {
			t.Error(err)
		}

		if t.Failed() {
			log, err := os.ReadFile(w.kubelet.Log(w.pod))
			t.Logf("the operator's log (%v):\n%s", err, log)
		}
	})

	_, err = w.Cluster.Kubectl(t.Context(),
		"apply", "-n", w.ops, "-f", filepath.Join(embedded.Root(), "examples", "greeting", "manifests.yaml"))
	w.must(err)
	t.Cleanup(func() { _ = w.Client.Delete(t.Context(), w.scope) })

	// A reader of the list, as Ambit sees it, like any other: it is not restarted because of what it says, and for nothing else.
	d := w.deployment(operatorName)
	w.Change(d, func() {
		d.Spec.Template.Spec.Containers[0].Env = append(d.Spec.Template.Spec.Containers[0].Env, readsList())
	})
	w.Eventually("there is a list", func() error {
		if w.list() == "" {
			return errors.New("there is none")
		}

		return nil
	})
	// It begins with the first list: one that is there before is restarted for it.
	w.plainReader()
	w.Running(w.ops)
	w.Eventually("the operator follows", func() error {
		pods := w.podsOf(operatorName)
		if len(pods) != 1 {
			return fmt.Errorf("its pods are %v", pods)
		}

		pod := &corev1.Pod{}
		if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: w.ops, Name: pods[0]}, pod); err != nil {
			return err
		}

		// The Deployment may not have been rolled out yet.
		if !slices.ContainsFunc(pod.Spec.Containers[0].Env, func(e corev1.EnvVar) bool { return e.Name == readsList().Name }) {
			return fmt.Errorf("its pod %s is that of before the change", pods[0])
		}

		w.pod = pods[0]

		return w.tookIn(w.list())
	})

	return w
}

// readsList is a variable by which a workload reads the list. The operator heeds it not.
func readsList() corev1.EnvVar {
	return corev1.EnvVar{Name: "NAMESPACES_AT_START", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: listName}, Key: scope.ListKey, Optional: new(true),
	}}}
}

// plainReader is an operator that reads the list at its start.
func (w *world) plainReader() {
	w.Helper()

	labels := map[string]string{"name": "plain", "intent": "projected"}
	w.Make(testbed.Account(w.ops, "plain"), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ops, Name: "plain"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": "plain"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{ServiceAccountName: "plain", Containers: []corev1.Container{{
					Name: "operator", Image: "operator", Env: []corev1.EnvVar{readsList()},
				}}},
			},
		},
	})
}

func (w *world) must(err error) {
	w.Helper()

	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) deployment(name string) *appsv1.Deployment {
	w.Helper()

	d := &appsv1.Deployment{}
	w.must(w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.ops, Name: name}, d))

	return d
}

// restarts is how often Ambit restarted a Deployment: nothing else changes its template after the start.
func (w *world) restarts(name string, since int64) int64 {
	w.Helper()

	return w.deployment(name).Generation - since
}

// podsOf are the pods of a Deployment that are not ending.
func (w *world) podsOf(name string) []string {
	w.Helper()

	label := client.MatchingLabels{"app": name}
	if name == "plain" {
		label = client.MatchingLabels{"name": name}
	}

	list := &corev1.PodList{}
	w.must(w.Client.List(w.Context(), list, client.InNamespace(w.ops), label))

	var out []string

	for i := range list.Items {
		if list.Items[i].DeletionTimestamp == nil {
			out = append(out, list.Items[i].Name)
		}
	}

	return out
}

// members changes the scope.
func (w *world) members(names ...string) {
	w.Helper()
	w.Change(w.scope, func() { w.scope.Spec.NamespaceMembers = names })
}

// list is the watch list as it is.
func (w *world) list() string {
	w.Helper()

	cm := &corev1.ConfigMap{}

	err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.ops, Name: listName}, cm)
	if !apierrors.IsNotFound(err) {
		w.must(err)
	}

	return cm.Data[scope.ListKey]
}

// tookIn says whether the operator's Lease has a list.
func (w *world) tookIn(list string) error {
	pod := &corev1.Pod{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.ops, Name: w.pod}, pod); err != nil {
		return err
	}

	said, err := w.lease(string(pod.UID))
	if err != nil {
		return err
	}

	if said != scope.TakenIn(list) {
		return fmt.Errorf("it has taken in %s", said)
	}

	return nil
}

func greeting(namespace, name string) *unstructured.Unstructured {
	g := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"text": "hello"}}}
	g.SetGroupVersionKind(greetingKind)
	g.SetNamespace(namespace)
	g.SetName(name)

	return g
}

// member makes a namespace in which somebody asks for a greeting.
func (w *world) member(prefix string) string {
	w.Helper()

	namespace := w.Namespace(prefix)
	w.Make(greeting(namespace, hello))

	return namespace
}

// served waits until the operator has done what a Greeting asks for.
func (w *world) served(namespace, name string) {
	w.Helper()
	w.Eventually("Greeting "+name+" of "+namespace+" is served", func() error {
		return w.Client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &appsv1.Deployment{})
	})
}

// forgotten waits until the list no longer names a namespace.
func (w *world) listed(want string) {
	w.Helper()
	w.Eventually("the list is "+want, func() error {
		if got := w.list(); got != want {
			return fmt.Errorf("it is %s", got)
		}

		return nil
	})
}

// works says whether the operator may work in a namespace.
func (w *world) works(namespace string) bool {
	w.Helper()

	return w.AllowedIn(w.ops, operatorName, namespace, "update", greetingKind.Group, "greetings")
}

// copies are the bindings that Ambit made in a namespace.
func (w *world) copies(namespace string) []rbacv1.RoleBinding {
	w.Helper()

	list := &rbacv1.RoleBindingList{}
	w.must(w.Client.List(w.Context(), list, client.InNamespace(namespace), client.HasLabels{scope.LabelScope}))

	return list.Items
}
