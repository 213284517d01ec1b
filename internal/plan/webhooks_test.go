package plan_test

import (
	"github.com/ambit-k8s/ambit/internal/facts"
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
