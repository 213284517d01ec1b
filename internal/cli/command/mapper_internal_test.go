package command

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/ambit-k8s/ambit/internal/discovered"
)

// TestShortNames: what kubectl calls "deploy" is asked about under that name, too. A name of a resource comes before a short name
// of another, and where several have the short name, none is chosen.
func TestShortNames(t *testing.T) {
	t.Parallel()

	resource := func(name, singular, kind string, short ...string) metav1.APIResource {
		return metav1.APIResource{Name: name, SingularName: singular, Kind: kind, ShortNames: short, Namespaced: true}
	}
	group := func(name string) metav1.APIGroup {
		version := metav1.GroupVersionForDiscovery{GroupVersion: name + "/v1", Version: "v1"}

		return metav1.APIGroup{Name: name, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
	}
	served := map[string]any{
		"/api":  metav1.APIVersions{Versions: []string{"v1"}},
		"/apis": metav1.APIGroupList{Groups: []metav1.APIGroup{group("apps"), group("example.com"), group("example.org")}},
		"/api/v1": metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{
			resource("configmaps", "configmap", "ConfigMap", "cm"), resource("events", "event", "Event", "ev"),
		}},
		"/apis/apps/v1": metav1.APIResourceList{GroupVersion: "apps/v1", APIResources: []metav1.APIResource{
			resource("deployments", "deployment", "Deployment", "deploy"),
		}},
		"/apis/example.com/v1": metav1.APIResourceList{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{
			resource("things", "thing", "Thing", "th", "configmap"), resource("events", "event", "Event", "ev"),
		}},
		"/apis/example.org/v1": metav1.APIResourceList{GroupVersion: "example.org/v1", APIResources: []metav1.APIResource{
			resource("themes", "theme", "Theme", "th"),
		}},
	}

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if served[r.URL.Path] == nil {
			http.NotFound(w, r)

			return
		}

		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(served[r.URL.Path])
	}))
	t.Cleanup(server.Close)

	m, err := newMapper(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}

	for asked, want := range map[string]string{
		"deploy": "deployments.apps", "deploy/scale": "deployments.apps", "deploy.apps": "deployments.apps", "cm": "configmaps",
		"ev": "events", "ev.example.com": "events.example.com", "configmap": "configmaps", "th.example.org": "themes.example.org",
		"th.example.c": "things.example.com", "th": "which th is meant: several API groups serve that name; give one of " +
			"themes.example.org, things.example.com",
		"deploy.example.com": "not known", "depl": "not known",
	} {
		got := "not known"

		switch found, err := discovered.Resolve(m, asked); {
		case err != nil:
			got = err.Error()
		case found.Known:
			got = found.String()
		}

		if got != want {
			t.Errorf("%s: %s, want %s", asked, got, want)
		}
	}
}
