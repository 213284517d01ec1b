package profiles_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestMetricsAreForThoseWhoMayReadThem scrapes what the chart's ServiceMonitor says, as those who may and as others.
func TestMetricsAreForThoseWhoMayReadThem(t *testing.T) {
	monitor := scraped(t)
	address := testbed.FreeAddress(t)

	bed, err := testbed.Start(t.Context(), "delegated", "--metrics-secure=true", "--metrics-bind-address="+address)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := bed.Stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})

	url := monitor.Scheme + "://" + address + monitor.Path
	prometheus, tenant := newAccount(t, bed, "prometheus"), newAccount(t, bed, "tenant")

	letScrape(t, bed, "prometheus")
	within(t, "who may get /metrics gets them", func() bool {
		status, body := scrape(t, url, prometheus)

		return status == http.StatusOK && strings.Contains(body, "ambit_orphaned_objects")
	})

	for reason, tc := range map[string]struct {
		url, token string
		want       int
	}{
		"without a token, nobody gets them":          {url, "", http.StatusUnauthorized},
		"nor with one that nobody made":              {url, "invented", http.StatusUnauthorized},
		"nor an account of the cluster that may not": {url, tenant, http.StatusForbidden},
		"nor without TLS":                            {"http://" + address + monitor.Path, prometheus, http.StatusBadRequest},
		"who may get the metrics gets nothing but them": {
			monitor.Scheme + "://" + address + "/debug/pprof/", prometheus, http.StatusNotFound,
		},
	} {
		if status, body := scrape(t, tc.url, tc.token); status != tc.want || strings.Contains(body, "ambit_") {
			t.Errorf("%s: got %d, want %d", reason, status, tc.want)
		}
	}

	// Idle, Ambit asks nobody; and who scrapes often is not asked about each time.
	before := reviews(t, bed)

	for range 20 {
		if status, _ := scrape(t, url, prometheus); status != http.StatusOK {
			t.Errorf("got %d the next time", status)
		}
	}

	if now := reviews(t, bed); now-before > 2 {
		t.Errorf("20 scrapes with one token led to %d reviews", now-before)
	}
}

// endpoint is what of a ServiceMonitor says where to scrape.
type endpoint struct {
	Port, Scheme, Path, BearerTokenFile string
}

// scraped is the endpoint of the chart's ServiceMonitor, whose port leads by the Service and the pod to where the manager
// listens.
func scraped(t *testing.T) endpoint {
	t.Helper()

	var monitor struct {
		Spec struct{ Endpoints []endpoint }
	}

	var service corev1.Service

	var deployment struct {
		Spec struct {
			Template struct{ Spec corev1.PodSpec }
		}
	}

	for document := range strings.SplitSeq(rendered(t), "\n---\n") {
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(document), &meta); err != nil {
			t.Fatal(err)
		}

		into := map[string]any{"ServiceMonitor": &monitor, "Service": &service, "Deployment": &deployment}[meta.Kind]
		if into == nil {
			continue
		}

		if err := yaml.Unmarshal([]byte(document), into); err != nil {
			t.Fatal(err)
		}
	}

	if len(monitor.Spec.Endpoints) != 1 || len(service.Spec.Ports) != 1 {
		t.Fatalf("want one endpoint and one port: %+v %+v", monitor, service.Spec.Ports)
	}

	e := monitor.Spec.Endpoints[0]
	container := deployment.Spec.Template.Spec.Containers[0]
	port := slices.IndexFunc(container.Ports, func(p corev1.ContainerPort) bool {
		return p.Name == service.Spec.Ports[0].TargetPort.StrVal
	})

	if e.Port != service.Spec.Ports[0].Name || port < 0 || container.Ports[port].ContainerPort != service.Spec.Ports[0].Port ||
		!slices.Contains(container.Args, "--metrics-bind-address=:8443") || container.Ports[port].ContainerPort != 8443 {
		t.Errorf("the endpoint %+v does not lead to where the manager listens: %+v %+v", e, service.Spec.Ports, container)
	}

	if e.Scheme != "https" || e.BearerTokenFile == "" {
		t.Errorf("the endpoint %+v is not scraped over TLS with a token", e)
	}

	return e
}

// rendered is the chart with a ServiceMonitor.
func rendered(t *testing.T) string {
	t.Helper()

	cmd := exec.CommandContext(t.Context(), embedded.Program("tools/helm"), "template", "ambit",
		filepath.Join(embedded.Root(), "charts", "ambit"), "--namespace", embedded.Namespace, "--kube-version", "1.36",
		"--set", "metrics.service.enabled=true,metrics.serviceMonitor.enabled=true")
	home := t.TempDir() // What a user has set up for Helm must not matter here.
	cmd.Env = append(os.Environ(), "HELM_CONFIG_HOME="+home, "HELM_CACHE_HOME="+home, "HELM_DATA_HOME="+home)

	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("rendering the chart: %v\n%s", err, out)
	}

	return string(out)
}

// usesMetrics scrapes once as somebody who may.
func usesMetrics(t *testing.T, bed *testbed.Bed, address string) {
	t.Helper()

	token := newAccount(t, bed, "prometheus")
	letScrape(t, bed, "prometheus")
	within(t, "the metrics are served", func() bool {
		status, _ := scrape(t, "https://"+address+"/metrics", token)

		return status == http.StatusOK
	})
}

// newAccount makes an account and returns a token of it.
func newAccount(t *testing.T, bed *testbed.Bed, name string) string {
	t.Helper()

	account := testbed.Account("default", name)
	provide(t, bed.Client, account)

	request := &authenticationv1.TokenRequest{}
	if err := bed.Client.SubResource("token").Create(t.Context(), account, request); err != nil {
		t.Fatal(err)
	}

	return request.Status.Token
}

// letScrape binds an account to the role that the manifests have for it.
func letScrape(t *testing.T, bed *testbed.Bed, name string) {
	t.Helper()

	provide(t, bed.Client, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-scrapes"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ambit-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: name}},
	})
}

// scrape gets what is served with a token; 0 while nobody listens.
func scrape(t *testing.T, url, token string) (status int, body string) {
	t.Helper()

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}

	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}

	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // As the ServiceMonitor says.
		DisableKeepAlives: true,
	}

	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close() //nolint:errcheck // It was read.

	// Who speaks without TLS is cut off in the middle of the answer.
	content, _ := io.ReadAll(response.Body)

	return response.StatusCode, string(content)
}

// reviews counts how often Ambit asked whose token something is, or what somebody may do.
func reviews(t *testing.T, bed *testbed.Bed) int {
	t.Helper()

	requests, err := readLog(bed)
	if err != nil {
		t.Fatal(err)
	}

	n := 0

	for i := range requests {
		if r := &requests[i]; r.user == ambit && r.verb == "create" &&
			slices.Contains([]string{"tokenreviews", "subjectaccessreviews"}, r.resource) {
			n++
		}
	}

	return n
}
