package reconcile_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/discovered"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// aggregated serves an API group by a server of its own, and returns how often Ambit itself got through to that, which takes as
// long as it likes to answer.
func (w *world) aggregated(group string) *atomic.Int32 {
	w.Helper()

	asked := &atomic.Int32{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Remote-User") == ambitUser {
			asked.Add(1)
			<-r.Context().Done() // When the API server gives up.
		}

		if r.URL.Path != "/apis/"+group+"/v1" {
			http.NotFound(rw, r)

			return
		}

		rw.Header().Set("Content-Type", "application/json")
		_, _ = rw.Write([]byte(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"` + group + `/v1","resources":[]}`))
	}))

	w.Cleanup(server.Close)
	w.networked()

	_, port, _ := net.SplitHostPort(strings.TrimPrefix(server.URL, "https://"))
	number, _ := strconv.ParseInt(port, 10, 32)

	w.Make(&corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "api"},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "127.0.0.1"},
	})

	api := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1." + group},
		"spec": map[string]any{
			"group": group, "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
			"insecureSkipTLSVerify": true,
			"service":               map[string]any{"namespace": w.ns(ops), "name": "api", "port": number},
		},
	}}
	w.Make(api)
	w.Cleanup(func() { _ = w.client.Delete(context.Background(), api) })

	w.Eventually("the API is served", func() error {
		if err := w.client.Get(w.Context(), client.ObjectKeyFromObject(api), api); err != nil {
			return err
		}

		conditions, _, _ := unstructured.NestedSlice(api.Object, "status", "conditions")
		for _, c := range conditions {
			if is, _ := c.(map[string]any); is["type"] == "Available" && is["status"] == "True" {
				return nil
			}
		}

		return errors.New("it is not available")
	})

	return asked
}

// networked has the API server reach programs of this machine. One of a cluster that runs already asks a socket for them.
func (w *world) networked() {
	w.Helper()

	kubeconfig := os.Getenv("KUBECONFIG")
	if kubeconfig == "" {
		return
	}

	serve, err := embedded.Lead(w.Context(), embedded.ServicesIn(filepath.Dir(kubeconfig)),
		func(_ context.Context, address string) (int, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return 0, err
			}

			return strconv.Atoi(port)
		})
	if err != nil {
		w.Fatal(err)
	}

	go serve()
}

// TestOtherServersHoldUpNobody: an API group may have a server of its own, whose owner decides how long that takes to say what it
// serves. It is not asked: neither by whoever names the group in a ClusterServiceVersion, nor at the expense of others.
func TestOtherServersHoldUpNobody(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	group := w.long("slow>.example.com")
	asked := w.aggregated(group)

	w.group("group", inA)
	w.csv("*", func(c *olmv1alpha1.ClusterServiceVersion) {
		c.Spec.NativeAPIs = []metav1.GroupVersionKind{
			{Group: group, Version: "v1", Kind: "Pot"}, {Group: group, Version: "v1", Kind: "Kettle"},
		}
	})

	w.reconcileGroup()
	w.names("the message", w.message(), "API slow.example.com/v1 Kettle")

	if n := asked.Load(); n != 0 {
		t.Errorf("the server of the group was asked %d times", n)
	}

	if w.groups.IsClusterScoped(group, "pots") {
		t.Error("what nobody serves has no namespace")
	}

	if n := asked.Load(); n != 0 {
		t.Errorf("the server of the group was asked %d times about a resource", n)
	}
}

// TestWhatIsServedNow: what an operator needs is looked for at the time, whatever was served a moment ago.
func TestWhatIsServedNow(t *testing.T) {
	t.Parallel()

	w := grouped(t)
	w.group("group", inA)
	w.csv("*", func(c *olmv1alpha1.ClusterServiceVersion) {
		c.Spec.NativeAPIs = []metav1.GroupVersionKind{{Group: w.long(apiGroup), Version: "v1", Kind: "Thing"}}
	})

	w.reconcileGroup()
	is(w, "phase", w.phase(), pending)

	w.definition("things", "Thing")
	w.Eventually("the kind is served", func() error {
		asking, err := discovery.NewDiscoveryClientForConfig(apiServer)
		if err != nil {
			return err
		}

		if !discovered.NewServed(asking).Serves(time.Now(), w.long(apiGroup), "v1", "Thing") {
			return errors.New("it is not")
		}

		return nil
	})
	w.reconcileGroup()
	is(w, "phase after", w.phase(), installing)
}
