package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/cli"
)

// TestWhatIsNoAPIServerSaysNothing holds that the 404 of something else than an API server, such as that of a proxy for a path
// that is misspelt, is no answer: that nothing is there, or that Ambit is not installed.
func TestWhatIsNoAPIServerSaysNothing(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()

	everyVerbFails(t, server.URL, "what it serves")

	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<!DOCTYPE html><title>Log in</title>"))
	}))
	defer page.Close()

	everyVerbFails(t, page.URL, "is --server one?")
}

// TestNoAPIServerIsToldByEveryVerb: whoever has no kubeconfig, or one of a cluster that is away, learns from each verb how to say
// which cluster is meant.
func TestNoAPIServerIsToldByEveryVerb(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()

	everyVerbFails(t, server.URL, "give --kubeconfig, or set KUBECONFIG")
}

// TestWhoIsNotKnownIsTold holds that a token that has expired is called that, and is not taken for an address of something else:
// also one that expires once the command knows what the API server serves.
func TestWhoIsNotKnownIsTold(t *testing.T) {
	unknown := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Unauthorized","code":401}`))
	}

	server := httptest.NewServer(http.HandlerFunc(unknown))
	defer server.Close()

	everyVerbFails(t, server.URL, "is wrong, or has expired")

	known := discovery()

	later := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if is := known[r.URL.Path]; is != nil {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(is)
		} else {
			unknown(w, r)
		}
	}))
	defer later.Close()

	everyVerbFails(t, later.URL, "is wrong, or has expired")
}

// discovery is what an API server says that it serves, by path.
func discovery() map[string]any {
	out := map[string]any{"/api": metav1.APIVersions{Versions: []string{"v1"}}}
	groups := metav1.APIGroupList{}

	for groupVersion, kinds := range map[string]map[string]string{
		"v1": {"namespaces": "Namespace", "pods": "Pod", "serviceaccounts": "ServiceAccount"},
		"rbac.authorization.k8s.io/v1": {
			"roles": "Role", "rolebindings": "RoleBinding", "clusterroles": "ClusterRole", "clusterrolebindings": "ClusterRoleBinding",
		},
		"operator.ibm.com/v1":           {"namespacescopes": "NamespaceScope"},
		"operators.coreos.com/v1":       {"operatorgroups": "OperatorGroup"},
		"operators.coreos.com/v1alpha1": {"clusterserviceversions": "ClusterServiceVersion"},
	} {
		list := metav1.APIResourceList{GroupVersion: groupVersion}
		for name, kind := range kinds {
			inNamespaces := kind != "Namespace" && !strings.HasPrefix(kind, "Cluster") || kind == "ClusterServiceVersion"
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name, Kind: kind, Namespaced: inNamespaces})
		}

		group, version, is := strings.Cut(groupVersion, "/")
		if !is {
			out["/api/v1"] = list

			continue
		}

		of := metav1.GroupVersionForDiscovery{GroupVersion: groupVersion, Version: version}
		out["/apis/"+groupVersion] = list
		groups.Groups = append(groups.Groups, metav1.APIGroup{
			Name: group, Versions: []metav1.GroupVersionForDiscovery{of}, PreferredVersion: of,
		})
	}

	out["/apis"] = groups

	return out
}

// TestServersOfOthersAreTold holds that whoever has the certificate authority of another cluster learns which flag that is.
func TestServersOfOthersAreTold(t *testing.T) {
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()

	defer server.Close()

	everyVerbFails(t, server.URL, "is --certificate-authority that of this server?")
}

// everyVerbFails asks something at an address, and expects an error that says why.
func everyVerbFails(t *testing.T, address, why string) {
	t.Helper()

	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: %q}}]\n"+
		"contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n", address)

	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}

	for _, line := range []string{
		"tree", "operators -n a", "why a/b -n c", "who-can get pods -n a", "authorize a --to b", "revoke a --to b --grant-only",
		"import csv/x -n a", "preflight -n a", "narrow --from a/b --members c", "matrix",
	} {
		var out, errOut bytes.Buffer

		code := cli.Run(t.Context(), append(strings.Fields(line), "--kubeconfig", path), &out, &errOut)
		if code != cli.ExitFailed || out.String() != "" || !strings.Contains(errOut.String(), why) {
			t.Errorf("%s: exit code %d: %s%s", line, code, out.String(), errOut.String())
		}
	}
}
