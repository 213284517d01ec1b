package takeover_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// TestScopeThatCannotBeRead: what somebody wrote under that definition stays when Ambit's replaces it. What of it cannot be read
// is told, and keeps nobody else from being served.
func TestScopeThatCannotBeRead(t *testing.T) {
	w := beds.Own(t, "cluster", "--restart-interval=1s")

	if err := w.Manager.Kill(); err != nil {
		t.Fatal(err)
	}

	definition := filepath.Join(t.TempDir(), "definition.yaml")
	if err := os.WriteFile(definition, []byte(ibmsDefinition), 0o600); err != nil {
		t.Fatal(err)
	}

	applied(w, definition)

	evil, ops, member := w.Namespace("evil"), w.Namespace("ops"), w.Namespace("member")

	for field, value := range map[string]any{"workloadInjector": int64(5), "allowSubsetProjection": "yes"} {
		written := &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"namespace": evil, "name": strings.ToLower(field)},
			"spec":     map[string]any{"namespaceMembers": []any{member}, field: value},
		}}
		written.SetGroupVersionKind(operatorv1.GroupVersion.WithKind("NamespaceScope"))

		w.Eventually("a scope is written under the other definition", func() error { return w.Client.Create(w.Context(), written) })
	}

	applied(w, filepath.Join(embedded.Root(), "charts", "ambit", "crds"))

	if err := w.Manager.Start(); err != nil {
		t.Fatal(err)
	}

	w.Operator(ops, "op", "get secrets")
	w.Reports(w.Scope(ops, operatorv1.NamespaceScopeSpec{NamespaceMembers: []string{member}}), metav1.ConditionTrue, "Reconciled")
	w.May(ops, "op", member, "get secrets")

	// The API server takes no finalizer for the other one, and so nothing else.
	w.Reports(&operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: evil, Name: "allowsubsetprojection"}},
		metav1.ConditionFalse, "InvalidSpec", "cannot be read")
}
