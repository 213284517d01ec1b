package reconcile_test

import (
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// managed annotates a ClusterServiceVersion, so that a scope injects into its operator and limits its webhooks.
func managed(c *olmv1alpha1.ClusterServiceVersion) {
	c.Annotations = map[string]string{
		"nss.operator.ibm.com/managed-operators": "op", "nss.operator.ibm.com/managed-webhooks": "",
	}
}

// TestInstalledWebhooksAreLimited: a scope also limits the webhooks that Ambit itself made for a ClusterServiceVersion, beside
// the targets of its group, and neither of the two takes back what the other wrote.
func TestInstalledWebhooksAreLimited(t *testing.T) {
	t.Parallel()

	const inOps = "kubernetes.io/metadata.name in (ops)"

	w := grouped(t)
	w.group("group", inA)
	w.csv("*", asking("v.example.com"), managed)
	w.installed()

	limited := func(reason, targets, members string) {
		t.Helper()
		w.settleWithCSVs()
		w.reconcileGroup()
		w.rollOut()
		w.reconcileGroup()
		w.settleWithCSVs()

		selector := targets
		if members != "" {
			selector += "," + members
		}

		is(w, reason, w.consulted(), []string{strings.Replace(validating, toA, selector, 1)})
		is(w, reason+": written again", w.reconcileGroup(), nil)
	}

	w.scope(`{"csvInjector":{"enable":true}}`)
	limited("by the scope", toA, inOps)
	is(w, "status", strings.Join(w.status("scope").PatchedWebhookList, " "), w.hooks()[0].config.GetName())

	w.regroup(`{"targetNamespaces":["b>","ops>"]}`)
	w.reconcileGroup()
	w.rollOut()
	w.reconcileGroup()
	is(w, "what the group writes is never wider", w.consulted(), []string{
		strings.Replace(validating, toA, strings.Replace(toA, "(a", "(b", 1)+","+inOps, 1),
	})

	toB := strings.Replace(toA, "(a", "(b", 1)

	w.respec(`{"namespaceMembers":["b>"],"csvInjector":{"enable":true}}`)
	limited("members and targets are the same", toB, toB)

	w.rehook(func(c *admissionv1.ValidatingWebhookConfiguration) {
		c.Webhooks[0].NamespaceSelector = &metav1.LabelSelector{}
	})
	limited("somebody widens it", toB, toB)

	w.respec(`{"namespaceMembers":["b>"]}`)
	limited("without the injector", toB, "")
}

// TestInstalledWebhooksThatMayNotBeLimited: whose account may not change webhook configurations is told so, and no status says of
// a webhook that it is limited which is not.
func TestInstalledWebhooksThatMayNotBeLimited(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		spec     string
		before   func(w *world)
		injected string
		// says is in the message of that.
		says string
	}{
		"the account may not": {
			spec: `{"csvInjector":{"enable":true},"serviceAccountName":"delegate"}`,
			before: func(w *world) {
				w.Delegate(w.ns(ops), nil)
				w.grant(ops, "injects", "delegate", "patch clusterserviceversions")
				w.May(w.ns(ops), "delegate", w.ns(ops), "patch clusterserviceversions")
			},
			injected: "False InjectionFailed", says: "cannot patch resource \"validatingwebhookconfigurations\"",
		},
		"the list may not be written": {
			spec: `{"csvInjector":{"enable":true}}`,
			before: func(w *world) {
				cm := w.configMap("namespace-scope", map[string]string{"namespaces": "elsewhere"})
				cm.Immutable = new(true)

				if err := w.client.Create(w.Context(), cm); err != nil { // Nobody watches it yet.
					w.Fatal(err)
				}
			},
			injected: "False Waiting",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.group("group", inA)
			w.csv("*", asking("v.example.com"), managed)
			w.installed()
			tc.before(w)
			w.scope(tc.spec)
			w.settleWithCSVs()

			s := w.status("scope")
			is(w, "asked about", w.consulted(), []string{validating})
			is(w, "injected", w.condition("scope", "CSVsInjected"), tc.injected)
			is(w, "managed", strings.Join(s.ManagedWebhookList, " "), w.hooks()[0].config.GetName())
			is(w, "limited", len(s.PatchedWebhookList), 0)

			if c := meta.FindStatusCondition(s.Conditions, "CSVsInjected"); !strings.Contains(c.Message, tc.says) {
				t.Errorf("want %q in %q", tc.says, c.Message)
			}
		})
	}
}
