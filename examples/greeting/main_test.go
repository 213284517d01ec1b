package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// TestTheOperatorFollows runs the operator as a process with the token of its service account, which holds what
// manifests.yaml gives it and, in members, a copy of that, as Ambit would make it.
func TestTheOperatorFollows(t *testing.T) {
	cfg := apiServer(t)
	c, err := client.New(cfg, client.Options{})
	must(t, err)

	for _, name := range []string{"greetings", "one", "two"} {
		must(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}

	install(t, c)
	project(t, c, "one")
	project(t, c, "two")

	scope := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "greetings", Name: "namespace-scope"}, Data: map[string]string{"namespaces": "one"},
	}
	must(t, c.Create(t.Context(), scope))

	pod, kubeconfig := identity(t, cfg, c)
	logs := start(t, kubeconfig)

	t.Cleanup(func() {
		if t.Failed() {
			t.Log(logs.String())
		}
	})

	greet(t, c, "one")
	greet(t, c, "two")
	eventually(t, "the member has its Deployment", func() bool { return has(t, c, "one") })

	if has(t, c, "two") {
		t.Error("a namespace that is not in the list was served")
	}

	scope.Data["namespaces"] = "one,two"
	must(t, c.Update(t.Context(), scope))

	begun := time.Now()

	eventually(t, "the namespace that joined has its Deployment", func() bool { return has(t, c, "two") })
	t.Logf("served %s after the list named it", time.Since(begun).Round(time.Millisecond))

	scope.Data["namespaces"] = "two"
	must(t, c.Update(t.Context(), scope))
	eventually(t, "the finalizer is off in the namespace that left", func() bool {
		g := newGreeting()

		return c.Get(t.Context(), client.ObjectKey{Namespace: "one", Name: "hello"}, g) == nil && len(g.GetFinalizers()) == 0
	})
	eventually(t, "the operator says which list it has taken in", func() bool {
		var lease coordinationv1.Lease

		err := c.Get(t.Context(), client.ObjectKey{Namespace: "greetings", Name: "watchlist-" + string(pod.UID)}, &lease)

		// printf two | sha256sum
		return err == nil &&
			lease.Annotations["ambit.dev/taken-in"] == "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"
	})
	eventually(t, "it is ready", ready)
}

func ready() bool {
	response, err := http.Get("http://" + healthAddress + "/readyz")
	if err != nil {
		return false
	}
	defer response.Body.Close() //nolint:errcheck // It was only read.

	return response.StatusCode == http.StatusOK
}

const healthAddress = "127.0.0.1:18431"

func apiServer(t *testing.T) *rest.Config {
	t.Helper()

	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		assets, err := filepath.Abs("../../bin/k8s")
		must(t, err)
		t.Setenv("KUBEBUILDER_ASSETS", assets)
	}

	environment := &envtest.Environment{}

	cfg, err := environment.Start()
	if err != nil {
		t.Fatalf("starting an API server (make devcluster-k8s builds it): %v", err)
	}

	t.Cleanup(func() { _ = environment.Stop() })

	return cfg
}

// install applies manifests.yaml, but for the resource of Ambit.
func install(t *testing.T, c client.Client) {
	t.Helper()

	raw, err := os.ReadFile("manifests.yaml")
	must(t, err)

	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096)

	for {
		object := &unstructured.Unstructured{}

		err := decoder.Decode(object)
		if errors.Is(err, io.EOF) {
			break
		}

		must(t, err)

		if object.GetKind() == "NamespaceScope" {
			continue
		}

		if object.GetKind() != "CustomResourceDefinition" {
			object.SetNamespace("greetings")
		}

		if object.GetKind() == "RoleBinding" {
			subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects")
			subjects[0].(map[string]any)["namespace"] = "greetings"
			must(t, unstructured.SetNestedSlice(object.Object, subjects, "subjects"))
		}

		must(t, c.Create(t.Context(), object))
	}

	eventually(t, "Greetings are served", func() bool {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(greetingKind)

		return c.List(t.Context(), list) == nil
	})
}

// project copies the Role into a member.
func project(t *testing.T, c client.Client, namespace string) {
	t.Helper()

	var role rbacv1.Role

	must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "greetings", Name: "greeting"}, &role))
	must(t, c.Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "greeting"}, Rules: role.Rules,
	}))
	must(t, c.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "greeting"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "greeting"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "greetings", Name: "greeting"}},
	}))
}

// identity makes the pod that the process stands for, and a kubeconfig with the token that a kubelet would mount into it.
func identity(t *testing.T, cfg *rest.Config, c client.Client) (*corev1.Pod, string) {
	t.Helper()

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "greetings", Name: "greeting-1"},
		Spec: corev1.PodSpec{
			ServiceAccountName: "greeting", Containers: []corev1.Container{{Name: "greeting", Image: "none"}},
		},
	}
	must(t, c.Create(t.Context(), pod))

	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: pod.Name, UID: pod.UID},
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "greetings", Name: "greeting"}}
	must(t, c.SubResource("token").Create(t.Context(), account, token))

	path := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"c": {Server: cfg.Host, CertificateAuthorityData: cfg.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"a": {Token: token.Status.Token}},
		Contexts:       map[string]*clientcmdapi.Context{"x": {Cluster: "c", AuthInfo: "a"}},
		CurrentContext: "x",
	}, path))

	return pod, path
}

func start(t *testing.T, kubeconfig string) *bytes.Buffer {
	t.Helper()

	program := filepath.Join(t.TempDir(), "greeting")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("building the operator: %v\n%s", err, out)
	}

	var logs bytes.Buffer

	operator := exec.CommandContext(context.Background(), program)
	operator.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "POD_NAMESPACE=greetings", "HEALTH_ADDRESS="+healthAddress)
	operator.Stdout, operator.Stderr = &logs, &logs
	must(t, operator.Start())

	t.Cleanup(func() {
		_ = operator.Process.Signal(syscall.SIGTERM)

		if err := operator.Wait(); err != nil {
			t.Errorf("the operator ended with: %v", err)
		}
	})

	return &logs
}

func greet(t *testing.T, c client.Client, namespace string) {
	t.Helper()

	g := newGreeting()
	g.SetNamespace(namespace)
	g.SetName("hello")
	must(t, unstructured.SetNestedField(g.Object, "hello", "spec", "text"))
	must(t, c.Create(t.Context(), g))
}

func has(t *testing.T, c client.Client, namespace string) bool {
	t.Helper()

	err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "hello"}, &appsv1.Deployment{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}

	return err == nil
}

func must(t *testing.T, err error) {
	t.Helper()

	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()

	for limit := time.Now().Add(40 * time.Second); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
	}

	t.Fatalf("waited in vain: %s", what)
}
