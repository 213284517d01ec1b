package test

import (
	"strings"
	"testing"
)

// definition is a custom kind whose objects nothing but a reset gets rid of.
const definition = `{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
 "metadata": {"name": "kettles.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced",
 "names": {"plural": "kettles", "singular": "kettle", "kind": "Kettle"},
 "versions": [{"name": "v1", "served": true, "storage": true,
  "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}`

const held = `{"apiVersion": "example.com/v1", "kind": "Kettle",
 "metadata": {"name": "held", "namespace": "later", "finalizers": ["example.com/nobody"]}}`

// otherName holds that a cluster remembers as many states as there are names, and that going from one to the other and back
// leaves nothing of either.
func otherName(t *testing.T, dir string) {
	t.Helper()
	got := execute(t, "devcluster", "reset", "--dir", dir, "--name", "other")
	if got.code != 1 || !strings.Contains(got.stderr, `"other"`) {
		t.Errorf("a reset to a name that was not saved ended with %d and said %q", got.code, got.stderr)
	}
	mustKubectl(t, dir, "patch", "configmap", "changed", "-p", `{"data": {"a": "other"}}`)
	mustKubectl(t, dir, "create", "namespace", "other")
	succeed(t, "devcluster", "save", "--dir", dir, "--name", "other")
	if got := succeed(t, "devcluster", "status", "--dir", dir, "-o", "json"); !strings.Contains(got, `"saved": [
    "default",
    "other"
  ]`) {
		t.Errorf("the status does not name what was saved: %s", got)
	}

	for range 2 {
		for name, want := range map[string]string{"default": "before", "other": "other"} {
			succeed(t, "devcluster", "reset", "--dir", dir, "--name", name)
			if got := mustKubectl(t, dir, "get", "configmap", "changed", "-o", "jsonpath={.data.a}"); got != want {
				t.Errorf("after a reset to %s the ConfigMap says %q", name, got)
			}
			if got := kubectl(t, dir, "get", "namespace", "other"); (got.code == 0) != (name == "other") {
				t.Errorf("after a reset to %s, kubectl says of the namespace: %s%s", name, got.stdout, got.stderr)
			}
		}
	}
	succeed(t, "devcluster", "reset", "--dir", dir)
}

// putBack makes, changes and deletes things of all sorts, and holds that a
// reset leaves nothing of that.
func putBack(t *testing.T, dir string) {
	t.Helper()
	if got := execute(t, "devcluster", "reset", "--dir", dir); got.code != 1 || !strings.Contains(got.stderr, "nothing was saved") {
		t.Errorf("a reset without a save ended with %d and said %q", got.code, got.stderr)
	}
	mustKubectl(t, dir, "create", "configmap", "changed", "--from-literal=a=before")
	mustKubectl(t, dir, "create", "configmap", "deleted")
	succeed(t, "devcluster", "save", "--dir", dir)

	// Twice, as what is written by the first reset must not differ for the
	// second one.
	for range 2 {
		mustKubectl(t, dir, "patch", "configmap", "changed", "-p", `{"data": {"a": "after"}}`)
		mustKubectl(t, dir, "delete", "configmap", "deleted")
		mustKubectl(t, dir, "delete", "clusterrole", "view")
		mustKubectl(t, dir, "create", "namespace", "later")
		mustKubectl(t, dir, "create", "deployment", "later", "-n", "later", "--image=nginx", "--replicas=2")
		mustKubectl(t, dir, "wait", "-n", "later", "--for=condition=Available", "deployment/later", "--timeout=60s")
		applyText(t, dir, definition)
		mustKubectl(t, dir, "wait", "--for=condition=Established", "crd/kettles.example.com", "--timeout=60s")
		eventually(t, "the kind is served", func() bool { return kubectl(t, dir, "get", "kettles").code == 0 })
		applyText(t, dir, held)
		mustKubectl(t, dir, "delete", "namespace", "later", "--wait=false")

		succeed(t, "devcluster", "reset", "--dir", dir)

		if got := mustKubectl(t, dir, "get", "configmap", "changed", "-o", "jsonpath={.data.a}"); got != "before" {
			t.Errorf("the changed ConfigMap says %q", got)
		}
		mustKubectl(t, dir, "get", "configmap", "deleted")
		mustKubectl(t, dir, "get", "clusterrole", "view")
		for _, gone := range []string{"namespace/later", "crd/kettles.example.com"} {
			if got := kubectl(t, dir, "get", gone); !strings.Contains(got.stderr, "not found") {
				t.Errorf("%s is still there: %s%s", gone, got.stdout, got.stderr)
			}
		}
		if got := mustKubectl(t, dir, "get", "pods", "-A", "-o", "name"); strings.Contains(got, "later") {
			t.Errorf("there are pods still:\n%s", got)
		}
	}
	otherName(t, dir)

	// The cluster goes on as before.
	mustKubectl(t, dir, "create", "deployment", "again", "--image=nginx")
	mustKubectl(t, dir, "wait", "--for=condition=Available", "deployment/again", "--timeout=60s")
}
