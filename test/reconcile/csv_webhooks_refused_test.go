package reconcile_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// message is what the status of the ClusterServiceVersion says.
func (w *world) message() string {
	w.Helper()

	return w.messageOf("op.v1")
}

func (w *world) messageOf(name string) string {
	w.Helper()

	return w.called(w.versionCalled(name).Status.Message)
}

// names fails the case unless a message has all of some words.
func (w *world) names(what, message string, words ...string) {
	w.Helper()

	for _, word := range words {
		if !strings.Contains(message, word) {
			w.Errorf("%s does not name %q: %s", what, word, message)
		}
	}
}

// conversion is a webhook that converts, after the edits.
func conversion(edits ...func(*olmv1alpha1.WebhookDescription)) func(*olmv1alpha1.ClusterServiceVersion) {
	return asking("c.example.com", append([]func(*olmv1alpha1.WebhookDescription){func(d *olmv1alpha1.WebhookDescription) {
		d.Type, d.Rules, d.ObjectSelector, d.WebhookPath = olmv1alpha1.ConversionWebhook, nil, nil, new("/convert")
		d.ConversionCRDs = []string{"things." + apiGroup}
	}}, edits...)...)
}

// refusedHook is a webhook that no operator may have whose group is for some namespaces, and what is said of it. What it is about
// in namespaces may be asked about if the operator runs.
type refusedHook struct {
	hook  func(*olmv1alpha1.ClusterServiceVersion)
	says  []string
	asked string
}

// tooFar are such webhooks, one of each sort.
func tooFar() map[string]refusedHook {
	return map[string]refusedHook{
		"about all API groups": {asking("v.example.com", withRules(about("*", "configmaps"))), []string{"all API groups"}, validating},
		"about permissions": {
			asking("v.example.com", withRules(about("rbac.authorization.k8s.io", "rolebindings"))),
			[]string{"v.example.com", "rbac.authorization.k8s.io"}, validating,
		},
		"about what has no namespace": {
			asking("v.example.com", withRules(about("", "configmaps", "persistentvolumes"))), []string{"persistentvolumes"},
			strings.Replace(validating, "configmaps", "configmaps,persistentvolumes", 1),
		},
		"about namespaces and everything else": {
			asking("v.example.com", withRules(about("", "namespaces", "*"))), []string{"namespaces", "a rule of their own"},
			strings.Replace(validating, "configmaps (Namespaced)", "namespaces;namespaces,* (Namespaced)", 1),
		},
		"about namespaces and parts of everything else": {
			asking("v.example.com", withRules(about("", "namespaces", "*/status"))), []string{"namespaces", "a rule of their own"},
			strings.Replace(validating, "configmaps (Namespaced)", "namespaces;namespaces,*/status (Namespaced)", 1),
		},
		"about what it claims to bring, and is no definition": {
			claiming("nodes.", asking("v.example.com", withRules(about("", "nodes")))), []string{"about nodes"},
			strings.Replace(validating, "configmaps", "nodes", 1),
		},
		"about all of a group that it claims to bring": {
			claiming("*.certificates.k8s.io", asking("v.example.com", withRules(about("certificates.k8s.io", "*")),
				func(d *olmv1alpha1.WebhookDescription) { d.Rules[0].Scope = new(admissionv1.ClusterScope) })),
			[]string{"in no namespace"}, strings.Replace(validating, "configmaps", "*", 1),
		},
		"that converts, of an operator for some namespaces": {
			conversion(), []string{"c.example.com", "AllNamespaces"}, "",
		},
		"more than are served": {func(c *olmv1alpha1.ClusterServiceVersion) {
			for i := range 101 {
				asking(fmt.Sprintf("v%d.example.com", i))(c)
			}
		}, []string{"101 webhookdefinitions", "100 are the most"}, ""},
	}
}

// claiming has the operator say that it brings a definition, too.
func claiming(name string, edit func(*olmv1alpha1.ClusterServiceVersion)) func(*olmv1alpha1.ClusterServiceVersion) {
	return func(c *olmv1alpha1.ClusterServiceVersion) {
		edit(c)
		c.Spec.CustomResourceDefinitions.Owned = []olmv1alpha1.CRDDescription{{Name: name, Version: "v1", Kind: "Claimed"}}
	}
}

const invalidWebhook = "Failed InvalidWebhookDescription"

// TestCSVWebhooksThatReachTooFar: nothing is installed for a ClusterServiceVersion that would stand in the way of permissions, of
// Ambit, or of others, and it is installed once it does not.
func TestCSVWebhooksThatReachTooFar(t *testing.T) {
	t.Parallel()

	cases := tooFar()
	maps.Copy(cases, map[string]refusedHook{
		"about a part of what has no namespace": {
			asking("v.example.com", withRules(about("", "nodes/status"))), []string{"about nodes"}, "",
		},
		"about nothing but what has no namespace": {
			asking("v.example.com", func(d *olmv1alpha1.WebhookDescription) { d.Rules[0].Scope = new(admissionv1.ClusterScope) }),
			[]string{"in no namespace"}, "",
		},
		"for which nobody answers": {
			asking("v.example.com", func(d *olmv1alpha1.WebhookDescription) { d.DeploymentName = "another" }),
			[]string{`no deployment "another"`}, "",
		},
	})

	for _, group := range []string{
		"admissionregistration.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "operators.coreos.com", "operator.ibm.com",
		"namespacescope.ibm.com",
	} {
		cases["about "+group] = refusedHook{
			asking("v.example.com", withRules(about(group, "things"))), []string{"v.example.com", group}, "",
		}
	}

	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.group("group", inA)
			w.csv("*", tc.hook, w.named)
			w.reconcileGroup()

			is(w, "phase", w.phase(), invalidWebhook)
			w.names("the message", w.message(), tc.says...)
			is(w, "what is asked", w.consulted(), []string{})
			is(w, "the Service", w.leads(), "-")
			is(w, "the operator", w.told(), "-")
			is(w, "where it has permissions", w.served(), []string{})

			w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) {
				c.Spec.WebhookDefinitions, c.Spec.CustomResourceDefinitions.Owned = nil, nil
			})
			w.reconcileGroup()
			is(w, "phase without it", w.phase(), installing)
		})
	}
}

// TestCSVWebhooksGrowNoFurther: one that runs and comes to ask about too much goes on, and is not asked about that.
func TestCSVWebhooksGrowNoFurther(t *testing.T) {
	t.Parallel()

	for name, tc := range tooFar() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := consulting(t)

			w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) {
				c.Spec.WebhookDefinitions = nil
				tc.hook(c)
				w.named(c)
			})
			w.reconcileGroup()

			is(w, "phase", w.phase(), invalidWebhook)
			w.names("the message", w.message(), tc.says...)
			is(w, "where it has permissions", w.served(), []string{"a", "ops"})

			is(w, "what is asked", strings.Join(w.consulted(), "; "), tc.asked)

			w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) {
				c.Spec.WebhookDefinitions, c.Spec.CustomResourceDefinitions.Owned = nil, nil
				asking("v.example.com")(c)
			})
			w.reconcileGroup()
			is(w, "phase after", w.phase(), succeeded)
			is(w, "what is asked after", w.consulted(), []string{validating})
		})
	}
}

// recsv changes the ClusterServiceVersion.
func (w *world) recsv(edit func(*olmv1alpha1.ClusterServiceVersion)) {
	w.Helper()

	c := w.operatorCSV(podTemplate("op"))
	w.Change(c, func() { edit(c) })
}
