package plan_test

import (
	"slices"
	"testing"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// limitedTo is a cluster in which everything but a webhook is as it should be, and that is limited to these members.
func limitedTo(members string) ([]scope.Scope, *facts.Facts) {
	s, f := newScope("s"), cluster()
	s.InjectCSVs = true

	f.OperatorNamespace.CSVsListed, f.OperatorNamespace.CSVsDecided = true, true
	f.OperatorNamespace.CSVs = []facts.CSV{{
		Name: "csv", Components: []string{"package.ops"}, ManagedOperators: "package", ManagedWebhooks: true,
	}}
	f.OperatorNamespace.ConfigMaps["namespace-scope"] = facts.ConfigMap{
		HasList: true, List: "ops", ListHash: scope.ListHash("ops", 0), Applied: now, Created: true,
	}

	webhook := facts.WebhookConfiguration{
		Kind: "ValidatingWebhookConfiguration", Name: "w", CSV: "csv", Webhooks: []facts.Webhook{{Name: "w"}},
	}
	if members != "" {
		webhook.Replaced, webhook.Annotated = members, true
		webhook.Webhooks[0].Selected = true
		webhook.Webhooks[0].Requirements = []facts.Requirement{{Key: "kubernetes.io/metadata.name", Operator: "In", Values: members}}
	}

	f.OperatorNamespace.Webhooks = []facts.WebhookConfiguration{webhook}

	return []scope.Scope{s}, f
}

// TestWebhookThatDiffers: what is to be done about a webhook is something to do.
func TestWebhookThatDiffers(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		limited string
		ends    bool
		empty   bool
	}{
		"it is not limited":                         {limited: "", empty: false},
		"it is limited to other members":            {limited: "a,ops", empty: false},
		"it is limited to the members":              {limited: "ops", empty: true},
		"nobody wants it to be limited any more":    {limited: "ops", ends: true, empty: false},
		"nobody wanted it to be limited, nor is it": {limited: "", ends: true, empty: true},
	} {
		scopes, f := limitedTo(tc.limited)
		scopes[0].InjectCSVs = !tc.ends

		p := plan.New(scopes, f)
		if p.Empty() != tc.empty {
			t.Errorf("%s: the plan is empty: %t\n%s", reason, p.Empty(), &p)
		}

		writes := slices.ContainsFunc(p.Webhooks, func(w plan.WebhookPlan) bool {
			return plan.ResolveWebhook(&w, []string{"ops"}) != nil
		})
		if writes == tc.empty {
			t.Errorf("%s: the webhook is written: %t", reason, writes)
		}
	}
}
