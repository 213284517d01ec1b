package predict_test

import (
	"slices"
	"testing"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/predict"
)

// TestWebhooks limits the webhooks of a ClusterServiceVersion to the members that are served in the end, and says so once. Where
// the list cannot be written, nothing is limited.
func TestWebhooks(t *testing.T) {
	t.Parallel()

	for name, refuses := range map[string]bool{"written": false, "refused": true} {
		scopes, f := world(false, "a", "b")
		scopes[0].InjectCSVs = true
		f.OperatorNamespace.CSVsDecided, f.OperatorNamespace.CSVsListed = true, true
		f.OperatorNamespace.CSVs = []facts.CSV{{
			Name: "csv", Components: []string{"pkg.ops"}, ManagedOperators: "pkg", ManagedWebhooks: true,
		}}
		f.OperatorNamespace.Webhooks = []facts.WebhookConfiguration{{
			Kind: "MutatingWebhookConfiguration", Name: "hooks", CSV: "csv", Webhooks: []facts.Webhook{{Name: "hook"}},
		}}

		got := predict.Of(scopes, f, authorizer{members: map[string]bool{"b": true}, operatorNamespace: refuses})

		var hooks []predict.Injection

		for _, in := range got.Injections {
			if in.Webhook {
				hooks = append(hooks, in)
			}
		}

		if refuses {
			if len(hooks) > 0 {
				t.Errorf("%s: the list that it waits for is not written, and yet %+v", name, hooks)
			}

			continue
		}

		if len(hooks) != 1 || slices.Contains(hooks[0].Members, "b") || !slices.Contains(hooks[0].Members, "a") {
			t.Errorf("%s: %+v", name, hooks)
		}
	}
}
