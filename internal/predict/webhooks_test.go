package predict_test

import (
	"slices"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/predict"
)

// TestWebhooks limits the webhooks of a ClusterServiceVersion to the members that are served in the end, and says so once. Where
// the list cannot be written, nothing is limited.
func TestWebhooks(t *testing.T) {
	t.Parallel()

	for name, lacks := range map[string]string{"written": "b", "refused": "ops"} {
		w := newWorld(t, "a", "b")
		w.scope.Spec.CSVInjector = &operatorv1.Injector{}
		w.delegate(lacks)
		w.add(csv("csv"))
		w.add(hooks("hooks", "csv"))

		got := w.predict()

		var limited []predict.Injection

		for _, in := range got.Injections {
			if in.Webhook {
				limited = append(limited, in)
			}
		}

		if name == "refused" {
			if len(limited) > 0 || len(got.Lists) != 1 || got.Lists[0].Refusal == nil {
				t.Errorf("the list that it waits for is not written, and yet %+v, lists %+v", limited, got.Lists)
			}

			continue
		}

		if len(limited) != 1 || !slices.Equal(limited[0].Members, []string{"a", "ops"}) || limited[0].Refusal != nil {
			t.Errorf("got %+v", limited)
		}
	}
}

func csv(name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"install": map[string]any{"strategy": "deployment"}},
	}}
	u.SetAPIVersion("operators.coreos.com/v1alpha1")
	u.SetKind("ClusterServiceVersion")
	u.SetNamespace("ops")
	u.SetName(name)
	u.SetLabels(map[string]string{"operators.coreos.com/pkg.ops": ""})
	u.SetAnnotations(map[string]string{
		"nss.operator.ibm.com/managed-operators": "pkg", "nss.operator.ibm.com/managed-webhooks": "true",
	})

	return u
}

func hooks(name, of string) *admissionv1.MutatingWebhookConfiguration {
	c := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: at("", name)}
	c.Labels = map[string]string{"olm.owner": of, "olm.owner.kind": "ClusterServiceVersion", "olm.owner.namespace": "ops"}
	c.Webhooks = []admissionv1.MutatingWebhook{{Name: "hook.example.com"}}

	return c
}
