package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/injection"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/plantest"
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
		Kind: "ValidatingWebhookConfiguration", Name: "w", CSV: "csv", Webhooks: []facts.Webhook{{}},
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
		if plantest.IsEmpty(&p) != tc.empty {
			t.Errorf("%s: the plan is empty: %t\n%s", reason, plantest.IsEmpty(&p), &p)
		}

		writes := slices.ContainsFunc(p.Webhooks, func(w plan.WebhookPlan) bool {
			return plan.ResolveWebhook(&w, []string{"ops"}) != nil
		})
		if writes == tc.empty {
			t.Errorf("%s: the webhook is written: %t", reason, writes)
		}
	}
}

// TestLimitIsPutWhereItBelongs: the limit is added to what a webhook asks for, and only Ambit's own is changed or taken away.
func TestLimitIsPutWhereItBelongs(t *testing.T) {
	t.Parallel()

	const name, selector = "kubernetes.io/metadata.name", "/webhooks/0/namespaceSelector"

	in := func(values string) facts.Requirement {
		return facts.Requirement{Key: name, Operator: "In", Values: values}
	}
	other, excludes := facts.Requirement{Key: "team", Operator: "Exists"}, in("a,ops")
	excludes.Operator = "NotIn"

	for reason, tc := range map[string]struct {
		webhook  facts.Webhook
		replaced string
		made     bool
		ends     bool
		want     string
	}{
		"no selector":          {facts.Webhook{}, "", false, false, "add " + selector},
		"a selector by labels": {facts.Webhook{Selected: true}, "", false, false, "add " + selector + "/matchExpressions"},
		"a selector with expressions": {
			facts.Webhook{Selected: true, Requirements: []facts.Requirement{other}}, "", false, false,
			"add " + selector + "/matchExpressions/-",
		},
		"other members": {
			facts.Webhook{Selected: true, Requirements: []facts.Requirement{other, in("a")}}, "a", false, false,
			"replace " + selector + "/matchExpressions/1/values",
		},
		"the members": {facts.Webhook{Selected: true, Requirements: []facts.Requirement{in("a,ops")}}, "a,ops", false, false, ""},
		"the members, as IBM's operator wrote them": {
			facts.Webhook{Selected: true, Requirements: []facts.Requirement{other, in("ops,a")}}, "", false, false,
			"replace " + selector + "/matchExpressions/1/values",
		},
		"other members, as somebody else wrote them": {
			facts.Webhook{Selected: true, Requirements: []facts.Requirement{in("a,b")}}, "", false, false,
			"add " + selector + "/matchExpressions/-",
		},
		"what somebody else excludes": {
			facts.Webhook{Selected: true, Requirements: []facts.Requirement{excludes}}, "", false, false,
			"add " + selector + "/matchExpressions/-",
		},
		"the targets of a group, to which Ambit limits what it made": {
			facts.Webhook{Selected: true, Requirements: []facts.Requirement{in("a,ops")}}, "", true, false,
			"add " + selector + "/matchExpressions/-",
		},
		"no longer limited": {
			facts.Webhook{Selected: true, Requirements: []facts.Requirement{in("a"), other, in("a")}}, "a", false, true,
			"remove " + selector + "/matchExpressions/2",
		},
	} {
		scopes, f := limitedTo("")
		scopes[0].InjectCSVs, scopes[0].Injected = !tc.ends, true
		live := &f.OperatorNamespace.Webhooks[0]
		live.Webhooks = []facts.Webhook{tc.webhook}
		live.Replaced, live.Annotated, live.Made = tc.replaced, tc.replaced != "", tc.made

		var got []string

		p := plan.New(scopes, f)

		for _, op := range opsOf(&p) {
			if strings.HasPrefix(op.Path, "/webhooks/") {
				got = append(got, op.Op+" "+op.Path)
			}
		}

		if strings.Join(got, "; ") != tc.want {
			t.Errorf("%s: %q, want %q", reason, got, tc.want)
		}
	}
}

func opsOf(p *plan.Plan) []injection.Op {
	if len(p.Webhooks) == 0 {
		return nil
	}

	return plan.ResolveWebhook(&p.Webhooks[0], []string{"a", "ops"})
}

// TestWhichWebhooksAreLimited: those of a ClusterServiceVersion that a scope covers and that asks for it. What was limited and is
// not to be any more is restored, for a scope that did.
func TestWhichWebhooksAreLimited(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		change func(*scope.Scope, *facts.OperatorNamespace)
		want   string
	}{
		"covered": {nil, "0 namespace-scope"},
		"the annotation is gone": {
			func(_ *scope.Scope, o *facts.OperatorNamespace) { o.CSVs[0].ManagedWebhooks = false }, "0 ",
		},
		"the package is covered no more": {
			func(_ *scope.Scope, o *facts.OperatorNamespace) { o.CSVs[0].ManagedOperators = "other" }, "0 ",
		},
		"of another CSV": {func(_ *scope.Scope, o *facts.OperatorNamespace) { o.Webhooks[0].CSV = "other" }, "0 "},
		"the scope injects no more": {
			func(s *scope.Scope, _ *facts.OperatorNamespace) { s.InjectCSVs, s.Injected = false, true }, "0 ",
		},
		"no scope ever did": {func(s *scope.Scope, _ *facts.OperatorNamespace) { s.InjectCSVs = false }, "-1 "},
		"never limited": {
			func(s *scope.Scope, o *facts.OperatorNamespace) { s.InjectCSVs, o.Webhooks[0].Replaced = false, "" }, "",
		},
		"nothing is known of CSVs": {func(_ *scope.Scope, o *facts.OperatorNamespace) { o.CSVsListed = false }, ""},
	} {
		scopes, f := limitedTo("a")
		if tc.change != nil {
			tc.change(&scopes[0], &f.OperatorNamespace)
		}

		var got []string

		for _, w := range plan.New(scopes, f).Webhooks {
			got = append(got, fmt.Sprintf("%d %s", w.Scope, w.List))

			if w.IsTakenBack() != (w.List == "") || w.Target() != "ValidatingWebhookConfiguration w" {
				t.Errorf("%s: %s is taken back: %t", reason, w.Target(), w.IsTakenBack())
			}
		}

		if strings.Join(got, "; ") != tc.want {
			t.Errorf("%s: %q, want %q", reason, got, tc.want)
		}
	}
}
