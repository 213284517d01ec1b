package reconcile_test

import (
	"maps"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/younger"
)

// packaged makes a ClusterServiceVersion of the package op, annotated as "operators=op webhooks=op" and further labels. Its
// container has a variable, and WATCH_NAMESPACE with a value if one is given.
func (w *world) packaged(annotations, value string, labels map[string]string) {
	w.Helper()

	t := podTemplate("op")
	delete(t.Labels, "intent")

	t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "NAME", Value: "op"}}

	if value != "" {
		t.Spec.Containers[0].Env = append(t.Spec.Containers[0].Env, corev1.EnvVar{Name: "WATCH_NAMESPACE", Value: value})
	}

	c := w.operatorCSV(t)
	c.Annotations = map[string]string{}
	c.Labels = map[string]string{"operators.coreos.com/op." + w.ns(ops): ""}
	maps.Copy(c.Labels, labels)

	for a := range strings.FieldsSeq(annotations) {
		k, v, _ := strings.Cut(a, "=")
		c.Annotations["nss.operator.ibm.com/managed-"+k] = v
	}

	w.Make(c)
}

// unlabelled takes the label of the package op from the ClusterServiceVersion.
func (w *world) unlabelled() {
	w.Helper()

	c := &olmv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "op.v1"}}
	w.Change(c, func() { delete(c.Labels, "operators.coreos.com/op."+w.ns(ops)) })
}

// csvs are the ClusterServiceVersions of the namespace ops, as they are now.
func (w *world) csvs() []unstructured.Unstructured {
	w.Helper()

	list := listOf(olmv1alpha1.ClusterServiceVersionKind)
	if err := w.client.List(w.Context(), list, client.InNamespace(w.ns(ops))); err != nil {
		w.Fatal(err)
	}

	return list.Items
}

// settleWithCSVs calls the reconciler until a call writes nothing. The first call has ClusterServiceVersions watched, where a
// scope injects; each of the others waits until the store knows them as they are.
func (w *world) settleWithCSVs() {
	w.Helper()

	for range most {
		wrote := w.reconcile().writes
		w.knowsCSVs()

		if len(wrote) == 0 && len(w.reconcile().writes) == 0 {
			return
		}
	}

	w.Fatal("it does not come to rest")
}

// deploys shows what the ClusterServiceVersion's Deployment would run: the container's variables, and the labels of its pods that
// restartLabels ask for.
func (w *world) deploys() string {
	w.Helper()

	c := &olmv1alpha1.ClusterServiceVersion{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "op.v1"}, c); err != nil {
		w.Fatal(err)
	}

	t := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template

	var words []string

	for _, e := range t.Spec.Containers[0].Env {
		if from := e.ValueFrom; from != nil && from.ConfigMapKeyRef != nil && from.ConfigMapKeyRef.Optional != nil &&
			*from.ConfigMapKeyRef.Optional {
			e.Value = "(" + from.ConfigMapKeyRef.Name + ")"
		}

		words = append(words, e.Name+"="+e.Value)
	}

	for _, label := range []string{"intent", "team"} {
		if v, has := t.Labels[label]; has {
			words = append(words, label+":"+v)
		}
	}

	return strings.Join(words, " ")
}

const (
	injecting = `{"namespaceMembers":["a>"],"csvInjector":{"enable":true}}`
	inert     = `{"namespaceMembers":["a>"]}`

	nothing = "False NothingToInject"

	published = "NAME=op"
	reading   = "NAME=op WATCH_NAMESPACE=(namespace-scope) intent:projected"
)

// TestCSVInjection: whose ClusterServiceVersions read the list, how, and how they are put back.
func TestCSVInjection(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		// annotations, value and labels are the ClusterServiceVersion's, spec is what is asked for, and then what is after that.
		annotations, value string
		labels             map[string]string
		// byHand says that no Subscription brought it, so that OLM gave it no label.
		byHand     bool
		spec, then string
		// deploys is what becomes of it, covered and patched what status tells, and says what the condition does.
		deploys          string
		covered, patched []string
		says             string
	}{
		"without it nothing is injected": {annotations: "operators=op", spec: inert, deploys: published, says: "-"},
		"one that is turned off injects nothing": {
			annotations: "operators=op", spec: `{"csvInjector":{"enable":false}}`, deploys: published, says: "-",
		},
		"what an annotation covers reads the list": {
			annotations: "operators=op", spec: injecting, deploys: reading,
			covered: []string{"op"}, patched: []string{"op"}, says: injected,
		},
		"what none covers is left": {spec: injecting, deploys: published, says: nothing},
		"what covers others is left itself": {
			annotations: "operators=other", spec: injecting, deploys: published, covered: []string{"other"}, says: nothing,
		},
		"a name is no more than a name": {
			annotations: "operators=o", spec: injecting, deploys: published, covered: []string{"o"}, says: nothing,
		},
		"one that came by hand is of the package that it is called after": {
			annotations: "operators=op", byHand: true, spec: injecting, deploys: reading,
			covered: []string{"op"}, patched: []string{"op"}, says: injected,
		},
		"and of no other": {
			annotations: "operators=o", byHand: true, spec: injecting, deploys: published, covered: []string{"o"}, says: nothing,
		},
		"a label says more than a name": {
			annotations: "operators=op", byHand: true, labels: map[string]string{"operators.coreos.com/other.ops": ""},
			spec: injecting, deploys: published, covered: []string{"op"}, says: nothing,
		},
		"a copy of OLM's covers nothing": {
			annotations: "operators=op", labels: map[string]string{"olm.copiedFrom": "elsewhere"}, spec: injecting,
			deploys: published, says: nothing,
		},
		"the author's value gives way": {
			annotations: "operators=op", value: "mine", spec: injecting, deploys: reading,
			covered: []string{"op"}, patched: []string{"op"}, says: injected,
		},
		"and comes back": {
			annotations: "operators=op", value: "mine", spec: injecting, then: inert,
			deploys: published + " WATCH_NAMESPACE=mine", says: "-",
		},
		"another name of the ConfigMap is read": {
			annotations: "operators=op", spec: `{"configmapName":"x","csvInjector":{"enable":true}}`,
			deploys: "NAME=op WATCH_NAMESPACE=(x) intent:projected",
			covered: []string{"op"}, patched: []string{"op"}, says: injected,
		},
		"pods get the labels by which they are restarted": {
			annotations: "operators=op", spec: `{"restartLabels":{"team":"red"},"csvInjector":{"enable":true}}`,
			deploys: "NAME=op WATCH_NAMESPACE=(namespace-scope) team:red",
			covered: []string{"op"}, patched: []string{"op"}, says: injected,
		},
		"what was injected is taken back": {
			annotations: "operators=op", spec: injecting, then: inert, deploys: published, says: "-",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.namespaces("ops", "a")
			w.watch(w.ns(ops))
			w.packaged(tc.annotations, tc.value, tc.labels)

			if tc.byHand {
				w.unlabelled()
			}

			w.scopeThen(tc.spec, tc.then, w.settleWithCSVs)

			is(w, "the ClusterServiceVersion", w.deploys(), tc.deploys)
			is(w, "managedCSVList", w.status("scope").ManagedCSVList, tc.covered)
			is(w, "patchedCSVList", w.status("scope").PatchedCSVList, tc.patched)
			is(w, "CSVsInjected", w.condition("scope", "CSVsInjected"), tc.says)
			is(w, "what is replaced is remembered", w.csvs()[0].GetAnnotations()[scope.AnnotationReplaced] != "", tc.patched != nil)
		})
	}
}

// TestScopesThatInjectDifferentlyIntoCSVs: the younger one says that its list is not read, and what helps.
func TestScopesThatInjectDifferentlyIntoCSVs(t *testing.T) {
	t.Parallel()

	w := begin(t)
	w.namespaces("ops", "a")
	w.watch(w.ns(ops))
	w.packaged("operators=op", "", nil)

	first := w.scopeCalled("older", `{"configmapName":"x","csvInjector":{"enable":true}}`)
	w.settleWithCSVs()

	younger.Than(&w.World, first)
	w.scope(injecting)
	w.settleWithCSVs()

	is(w, "patchedCSVList of the older one", w.status("older").PatchedCSVList, []string{"op"})
	is(w, "patchedCSVList of the younger one", w.status("scope").PatchedCSVList, nil)
	is(w, "CSVsInjected", w.condition("scope", "CSVsInjected"), "False InjectionFailed")

	if m := w.messageOn("scope", "CSVsInjected"); !strings.Contains(m, "for the older scope older; give both scopes the same") {
		t.Errorf("it does not say what to do: %s", m)
	}
}

// webhooks makes a configuration that OLM made for a ClusterServiceVersion of the namespace ops, with a selector of labels.
func (w *world) webhooks(csv string, selector *metav1.LabelSelector) *admissionv1.ValidatingWebhookConfiguration {
	w.Helper()

	c := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns(csv), Labels: map[string]string{
			"olm.owner": csv, "olm.owner.namespace": w.ns(ops), "olm.owner.kind": olmv1alpha1.ClusterServiceVersionKind,
		}},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "op.example.com", NamespaceSelector: selector, AdmissionReviewVersions: []string{"v1"},
			SideEffects: new(admissionv1.SideEffectClassNone), FailurePolicy: new(admissionv1.Ignore),
			ClientConfig: admissionv1.WebhookClientConfig{URL: new("https://webhook.invalid/")},
		}},
	}
	w.Make(c)

	return c
}

// TestWebhooksAreLimited: to which namespaces the webhooks of a ClusterServiceVersion are limited.
func TestWebhooksAreLimited(t *testing.T) {
	t.Parallel()

	const members = "kubernetes.io/metadata.name in (a,ops)"

	red := &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}}

	for name, tc := range map[string]struct {
		annotations, csv string
		selector         *metav1.LabelSelector
		then             string
		selects          string
	}{
		"to the members": {annotations: "operators=op webhooks=op", csv: "op.v1", selects: members},
		"beside what is there": {
			annotations: "operators=op webhooks=op", csv: "op.v1", selector: red, selects: members + ",team=red",
		},
		"not without annotation":   {annotations: "operators=op", csv: "op.v1", selects: "<none>"},
		"not those of others":      {annotations: "operators=op webhooks=op", csv: "another.v1", selects: "<none>"},
		"not without the injector": {annotations: "operators=op webhooks=op", csv: "op.v1", then: inert, selects: "<none>"},
		"and they get back theirs": {
			annotations: "operators=op webhooks=op", csv: "op.v1", selector: red, then: inert, selects: "team=red",
		},
		"to a member that joins": {
			annotations: "operators=op webhooks=op", csv: "op.v1", then: `{"namespaceMembers":["a>","b>"],"csvInjector":{"enable":true}}`,
			selects: "kubernetes.io/metadata.name in (a,b,ops)",
		},
		"and not to one that leaves": {
			annotations: "operators=op webhooks=op", csv: "op.v1", then: `{"csvInjector":{"enable":true}}`,
			selects: "kubernetes.io/metadata.name in (ops)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := begin(t)
			w.namespaces("ops", "a", "b")
			w.watch(w.ns(ops))
			w.packaged(tc.annotations, "", nil)
			hooks := w.webhooks(tc.csv, tc.selector)

			w.scopeThen(injecting, tc.then, w.settleWithCSVs)

			if err := w.client.Get(w.Context(), client.ObjectKeyFromObject(hooks), hooks); err != nil {
				t.Fatal(err)
			}

			is(w, "the selector", w.called(metav1.FormatLabelSelector(hooks.Webhooks[0].NamespaceSelector)), tc.selects)
		})
	}
}
