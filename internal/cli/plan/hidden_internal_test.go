package plan

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestSecretsAreHidden holds that a difference shows that a Secret has keys, and nothing that it keeps.
func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()

	const kept = "aHVudGVyMg=="

	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "data": map[string]any{"password": kept}, "stringData": map[string]any{"token": kept},
		"metadata": map[string]any{"name": "s", "annotations": map[string]any{
			"team": "a", corev1.LastAppliedConfigAnnotation: `{"data":{"password":"` + kept + `"}}`,
		}},
	}}

	hideSecret(secret)

	text := fmt.Sprint(secret.Object)
	if strings.Contains(text, kept) {
		t.Errorf("it shows what the Secret keeps: %s", text)
	}

	for _, shown := range []string{"password:(hidden)", "token:(hidden)", "team:a"} {
		if !strings.Contains(text, shown) {
			t.Errorf("it does not show %q: %s", shown, text)
		}
	}

	cm := &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "data": map[string]any{"a": "b"}}}
	if hideSecret(cm); cm.Object["data"].(map[string]any)["a"] != "b" {
		t.Errorf("of something else it hides %v", cm.Object)
	}
}
