package injection_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// owned are the labels by which OLM marks what it made for a CSV.
func owned(ops, csv string) map[string]string {
	return map[string]string{
		"olm.owner": csv, "olm.owner.namespace": ops, "olm.owner.kind": "ClusterServiceVersion",
	}
}

func hook(name string, selector *metav1.LabelSelector) admissionv1.ValidatingWebhook {
	return admissionv1.ValidatingWebhook{
		Name: name + ".example.com", NamespaceSelector: selector, AdmissionReviewVersions: []string{"v1"},
		SideEffects: new(admissionv1.SideEffectClassNone), FailurePolicy: new(admissionv1.Ignore),
		ClientConfig: admissionv1.WebhookClientConfig{URL: new("https://webhook.invalid/")},
	}
}

func validating(ops, name, csv string, selectors ...*metav1.LabelSelector) *admissionv1.ValidatingWebhookConfiguration {
	out := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-" + ops, Labels: owned(ops, csv)},
	}
	for i, s := range selectors {
		out.Webhooks = append(out.Webhooks, hook(fmt.Sprintf("hook%d", i), s))
	}

	return out
}

func mutating(ops, name, csv string, selector *metav1.LabelSelector) *admissionv1.MutatingWebhookConfiguration {
	h := hook("mutate", selector)

	return &admissionv1.MutatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-" + ops, Labels: owned(ops, csv)},
		Webhooks: []admissionv1.MutatingWebhook{{
			Name: h.Name, NamespaceSelector: selector, AdmissionReviewVersions: h.AdmissionReviewVersions,
			SideEffects: h.SideEffects, FailurePolicy: h.FailurePolicy, ClientConfig: h.ClientConfig,
		}},
	}
}

// selects waits until the selectors of a configuration are as expected, as kubectl would print them.
func (w *world) selects(obj client.Object, want ...string) {
	w.Helper()
	w.Eventually("the selectors of "+obj.GetName(), func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}

		var got []string

		switch o := obj.(type) {
		case *admissionv1.ValidatingWebhookConfiguration:
			for i := range o.Webhooks {
				got = append(got, metav1.FormatLabelSelector(o.Webhooks[i].NamespaceSelector))
			}
		case *admissionv1.MutatingWebhookConfiguration:
			for i := range o.Webhooks {
				got = append(got, metav1.FormatLabelSelector(o.Webhooks[i].NamespaceSelector))
			}
		}

		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			return fmt.Errorf("they are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}

		return nil
	})
}

func TestWebhooksAreLimitedToMembers(t *testing.T) {
	w := begin(t)
	w.withOLM()
	ops, member, more := w.Namespace("ops"), w.Namespace("member"), w.Namespace("more")
	marks := map[string]string{managedOperators: "operator,plain", managedWebhooks: "operator"}
	w.publish(csv(ops, "operator.v1", "operator", marks, "operator"))
	w.publish(csv(ops, "plain.v1", "plain", nil, "plain"))

	labelled := &metav1.LabelSelector{
		MatchLabels: map[string]string{"team": "a"},
		MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system"}},
		},
	}
	both := validating(ops, "both", "operator.v1", nil, labelled)
	change := mutating(ops, "change", "operator.v1", &metav1.LabelSelector{MatchLabels: map[string]string{"team": "b"}})
	plain := validating(ops, "plain", "plain.v1", nil)
	elsewhere := validating(member, "elsewhere", "operator.v1", nil)
	w.Make(both, change, plain, elsewhere)

	for _, obj := range []client.Object{both, change, plain, elsewhere} {
		w.Cleanup(func() { _ = w.Client.Delete(context.Background(), obj) })
	}

	nss := w.Scope(ops, withCSVs(member))
	in := func(names ...string) string {
		return "kubernetes.io/metadata.name in (" + sorted(names...) + ")"
	}
	not := "kubernetes.io/metadata.name notin (kube-system)"

	w.selects(both, in(ops, member), not+","+in(ops, member)+",team=a")
	w.selects(change, in(ops, member)+",team=b")
	w.selects(plain, "<none>")
	w.selects(elsewhere, "<none>")
	w.Eventually("status names the configurations", func() error {
		w.read(nss)

		want := sorted(both.Name, change.Name)
		if got := strings.Join(nss.Status.PatchedWebhookList, ","); got != want ||
			strings.Join(nss.Status.ManagedWebhookList, ",") != want {
			return errors.New(got)
		}

		return nil
	})

	// They follow the list, and new ones are limited at once.
	w.Change(nss, func() { nss.Spec.NamespaceMembers = []string{member, more} })
	w.selects(both, in(ops, member, more), not+","+in(ops, member, more)+",team=a")

	later := validating(ops, "later", "operator.v1", nil)
	w.Make(later)
	w.Cleanup(func() { _ = w.Client.Delete(context.Background(), later) })
	w.selects(later, in(ops, member, more))

	// OLM writes its own selector again.
	w.Change(change, func() {
		change.Webhooks[0].NamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "c"}}
	})
	w.selects(change, in(ops, member, more)+",team=c")

	w.Change(nss, func() { nss.Spec.CSVInjector.Enable = new(false) })
	w.selects(both, "<none>", not+",team=a")
	w.selects(change, "team=c")
	w.selects(later, "<none>")
	w.original(ops, "operator.v1")

	if v, is := both.Annotations["ambit.dev/replaced"]; is {
		t.Errorf("something is left: %s", v)
	}

	// And by the deletion of the scope.
	w.Change(nss, func() { nss.Spec.CSVInjector.Enable = new(true) })
	w.selects(later, in(ops, member, more))
	w.Remove(nss)
	w.selects(later, "<none>")
	w.selects(both, "<none>", not+",team=a")
}
