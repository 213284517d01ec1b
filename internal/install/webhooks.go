package install

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	labelWebhook = "olm.webhook-description-generate-name"

	defaultTimeout = 10
)

// webhookConfigurationName is that of the n-th webhook definition of a CSV. It is always the same, so that a crash leaves no
// second one.
func webhookConfigurationName(csv *olm.ClusterServiceVersion, n int) string {
	d := &csv.Spec.WebhookDefinitions[n]
	nth := collect.Count(csv.Spec.WebhookDefinitions[:n], func(other olm.WebhookDescription) bool {
		return other.Type == d.Type && other.GenerateName == d.GenerateName
	})
	name := projected.Slot(compile.CSVOwner(csv.Namespace, csv.Name).Hash(), projected.Source{
		Kind: fmt.Sprintf("%s %d", kindOfWebhook(d), nth), Namespace: csv.Namespace, Name: d.GenerateName,
	})

	// Other than that of a Role, it must not be cut after a dot.
	end := strings.LastIndex(name, "-")

	return strings.TrimRight(name[:end], ".") + name[end:]
}

func kindOfWebhook(d *olm.WebhookDescription) string {
	if d.Type == olm.MutatingAdmissionWebhook {
		return facts.MutatingWebhooks
	}

	return facts.ValidatingWebhooks
}

// WebhookNames are the names of all webhook configurations of a CSV.
func WebhookNames(csv *olm.ClusterServiceVersion) []string {
	named := WebhookResources(csv)

	return slices.Concat(named[resourceValidating], named[resourceMutating])
}

// The API resources of webhook configurations.
const (
	resourceValidating = "validatingwebhookconfigurations"
	resourceMutating   = "mutatingwebhookconfigurations"
)

// WebhookResources are the names of all webhook configurations of a CSV, by their resource.
func WebhookResources(csv *olm.ClusterServiceVersion) map[string][]string {
	out := map[string][]string{}

	for i := range csv.Spec.WebhookDefinitions {
		switch csv.Spec.WebhookDefinitions[i].Type {
		case olm.MutatingAdmissionWebhook:
			out[resourceMutating] = append(out[resourceMutating], webhookConfigurationName(csv, i))
		case olm.ValidatingAdmissionWebhook:
			out[resourceValidating] = append(out[resourceValidating], webhookConfigurationName(csv, i))
		case olm.ConversionWebhook:
		}
	}

	return out
}

// Webhooks are the webhook configurations of a CSV that are not as they should be.
type Webhooks struct {
	Write []*unstructured.Unstructured
	// Remove are those that exist and that API servers must not call any more.
	Remove []*unstructured.Unstructured
	// Beyond are those of Write, by name, that exist and are called for namespaces that are no targets.
	Beyond map[string]facts.InstalledWebhooks
}

// WebhooksToWrite are the webhook configurations of a CSV for targets. bundles are what API servers trust, by Deployment. None is
// made before somebody answers: with the failure policy Fail, every write that it is about would be refused until then. One that
// cannot be written, because it is not known whom to trust, is removed if it is called for namespaces that are no targets. One
// that is called for fewer stays: it checks those, and would not come back before all is installed.
func (w *Snapshot) WebhooksToWrite(
	csv *olm.ClusterServiceVersion, targets []string, bundles map[string][]byte,
) (Webhooks, error) {
	out := Webhooks{Beyond: map[string]facts.InstalledWebhooks{}}

	for i := range csv.Spec.WebhookDefinitions {
		d := &csv.Spec.WebhookDefinitions[i]
		if d.Type == olm.ConversionWebhook {
			continue
		}

		name := webhookConfigurationName(csv, i)
		live, exists := w.Webhooks[name]

		bundle := bundles[d.DeploymentName]
		if !exists && !w.answers(d, bundle) {
			continue
		}

		want, content := w.configuration(csv, d, name, targets, bundle)
		beyond := exists && !w.isWithin(&live, targets)

		// A CSV that has come to ask for too much, or of which nobody knows by which certificate it answers, keeps the configuration
		// that it had, if that is limited to the targets, and never gets what it asks for now.
		if len(bundle) == 0 || reachesTooFar(d.Rules) != "" {
			if exists && (live.Content == content || beyond) {
				out.Remove = append(out.Remove, LiveWebhooks(live))
			}

			continue
		}

		if exists && live.Content == content {
			continue
		}

		limitFurther(want, live.Limit)

		obj, err := writable(want)
		if err != nil {
			return out, err
		}

		if beyond {
			out.Beyond[name] = live
		}

		out.Write = append(out.Write, obj)
	}

	return out, nil
}

// answers says whether somebody answers for a webhook, by a certificate that is known.
func (w *Snapshot) answers(d *olm.WebhookDescription, bundle []byte) bool {
	return len(bundle) > 0 && waitsFor(w.Deployments[d.DeploymentName]) == ""
}

// configuration is a webhook configuration, and what tells it apart. Everything that the API server would fill in is filled in,
// so that it can be compared.
func (w *Snapshot) configuration(
	csv *olm.ClusterServiceVersion, from *olm.WebhookDescription, name string, targets []string, bundle []byte,
) (want runtime.Object, content string) {
	d := from.DeepCopy()
	complete(d)
	d.Rules = w.limited(csv, d.Rules, compile.IsEverywhere(targets))

	namespaces := w.selectorOf(targets)
	meta := metav1.ObjectMeta{Name: name, Labels: merged(ownerLabels(csv), map[string]string{
		labelWebhook: scope.LabelValue(d.GenerateName),
	})}

	if d.Type == olm.MutatingAdmissionWebhook {
		c := &admissionv1.MutatingWebhookConfiguration{
			TypeMeta: metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: facts.MutatingWebhooks}, ObjectMeta: meta,
			Webhooks: []admissionv1.MutatingWebhook{d.GetMutatingWebhook(csv.Namespace, namespaces, bundle)},
		}

		return c, facts.Shape(c.Webhooks)
	}

	c := &admissionv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: facts.ValidatingWebhooks},
		ObjectMeta: meta,
		Webhooks:   []admissionv1.ValidatingWebhook{d.GetValidatingWebhook(csv.Namespace, namespaces, bundle)},
	}

	return c, facts.Shape(c.Webhooks)
}

// limitFurther adds the limit of a scope to a configuration that is written for another reason, so that it is not without the
// limit for a moment. The scope itself changes and ends it, so it tells no configurations apart.
func limitFurther(want runtime.Object, limit string) {
	if limit == "" {
		return
	}

	var selector *metav1.LabelSelector

	switch c := want.(type) {
	case *admissionv1.MutatingWebhookConfiguration:
		selector = c.Webhooks[0].NamespaceSelector
	case *admissionv1.ValidatingWebhookConfiguration:
		selector = c.Webhooks[0].NamespaceSelector
	}

	selector.MatchExpressions = append(selector.MatchExpressions, facts.LimitTo(limit))
}

// complete fills in what the API server would (SetDefaults_ValidatingWebhook and SetDefaults_MutatingWebhook in
// k8s.io/kubernetes/pkg/apis/admissionregistration/v1/defaults.go).
func complete(d *olm.WebhookDescription) {
	d.ContainerPort = portOf(d)
	d.FailurePolicy = cmp.Or(d.FailurePolicy, new(admissionv1.Fail))
	d.MatchPolicy = cmp.Or(d.MatchPolicy, new(admissionv1.Equivalent))
	d.TimeoutSeconds = cmp.Or(d.TimeoutSeconds, new(int32(defaultTimeout)))
	d.ObjectSelector = cmp.Or(d.ObjectSelector, &metav1.LabelSelector{})
	d.ReinvocationPolicy = cmp.Or(d.ReinvocationPolicy, new(admissionv1.NeverReinvocationPolicy))

	for i := range d.Rules {
		d.Rules[i].Scope = cmp.Or(d.Rules[i].Scope, new(admissionv1.AllScopes))
	}
}

// selectorOf limits webhooks to targets. All namespaces are all but Ambit's own: whoever changes the pods there has every right
// that Ambit has.
func (w *Snapshot) selectorOf(targets []string) *metav1.LabelSelector {
	if !compile.IsEverywhere(targets) {
		names := slices.Clone(targets)
		slices.Sort(names)

		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: slices.Compact(names),
		}}}
	}

	if w.AmbitNamespace == "" {
		return &metav1.LabelSelector{}
	}

	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
		Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpNotIn, Values: []string{w.AmbitNamespace},
	}}}
}

// WebhooksWithin are the names of the webhook configurations of a CSV, which may be one that cannot be read, by which API servers
// ask about nothing beyond the targets of the group.
func (w *Snapshot) WebhooksWithin(csv scope.Owner) []string {
	if w.Group == nil || len(w.Group.Targets) == 0 {
		return nil
	}

	var names []string

	of := csv.Hash()

	for _, live := range w.Webhooks {
		if live.Owner == of && w.isWithin(&live, w.Group.Targets) {
			names = append(names, live.Name)
		}
	}

	return names
}

// isWithin says whether API servers ask about nothing beyond targets by a webhook configuration that exists.
func (w *Snapshot) isWithin(live *facts.InstalledWebhooks, targets []string) bool {
	if live.Reach == facts.Shape(w.selectorOf(targets)) {
		return true
	}

	if live.Namespaces == "" {
		return false
	}

	within, everywhere := sets.New(targets...), compile.IsEverywhere(targets)
	for name := range strings.SplitSeq(live.Namespaces, ",") {
		if !within.Has(name) && (!everywhere || name == w.AmbitNamespace) {
			return false
		}
	}

	return true
}

// AskedAbout are the namespaces to which the webhook configurations of a CSV are limited by name.
func (w *Snapshot) AskedAbout(csv *olm.ClusterServiceVersion) sets.Set[string] {
	out, owner := sets.Set[string]{}, compile.CSVOwner(csv.Namespace, csv.Name).Hash()

	for _, live := range w.Webhooks {
		if live.Owner == owner {
			out.Insert(strings.Split(live.Namespaces, ",")...)
		}
	}

	return out
}

// WebhooksToRemove are those of a namespace's CSVs that nobody asks for any more, sorted by name.
func WebhooksToRemove(there map[string]facts.InstalledWebhooks, asked []string) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured

	for _, name := range slices.Sorted(maps.Keys(there)) {
		if !slices.Contains(asked, name) {
			out = append(out, LiveWebhooks(there[name]))
		}
	}

	return out
}

// LiveWebhooks refers to a webhook configuration that exists.
func LiveWebhooks(live facts.InstalledWebhooks) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind(live.Kind))
	obj.SetName(live.Name)
	obj.SetUID(types.UID(live.UID))

	return obj
}
