package test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// asking has the API server ask a service about ConfigMaps.
const asking = `
apiVersion: v1
kind: Service
metadata: {name: answers}
spec: {ports: [{port: 443}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: asks}
webhooks:
- name: asks.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {namespace: default, name: answers, path: /}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  objectSelector: {matchLabels: {asked: "true"}}
`

const asked = `
apiVersion: v1
kind: ConfigMap
metadata: {name: asked, labels: {asked: "true"}}
`

// leadNowhere holds that the API server asks the socket of the cluster for the
// address of a service, and says what it was answered.
func leadNowhere(t *testing.T, dir string) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", filepath.Join(dir, "services.sock"))
	if err != nil {
		t.Fatal(err)
	}
	connects := make(chan string, 100)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case connects <- r.Method + " " + r.Host:
		default:
		}
		http.Error(w, "this leads nowhere", http.StatusBadGateway)
	})}
	go func() { _ = server.Serve(listener) }()
	defer func() { _ = server.Close() }()

	folder := t.TempDir()
	for name, content := range map[string]string{"asking.yaml": asking, "asked.yaml": asked} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mustKubectl(t, dir, "apply", "-f", filepath.Join(folder, "asking.yaml"))
	defer mustKubectl(t, dir, "delete", "-f", filepath.Join(folder, "asking.yaml"))

	address := mustKubectl(t, dir, "get", "service", "answers", "-o", "jsonpath={.spec.clusterIP}")
	eventually(t, "the webhook is asked", func() bool {
		got := kubectl(t, dir, "create", "--dry-run=server", "-f", filepath.Join(folder, "asked.yaml"))
		return strings.Contains(got.stderr, "502")
	})
	if got, want := <-connects, "CONNECT "+address+":443"; got != want {
		t.Errorf("the socket was asked for %q, not %q", got, want)
	}
}
