package install

import (
	"cmp"
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// Conversion is how the objects of a definition get from one version to another.
type Conversion struct {
	Definition string
	Want       *apiextensionsv1.CustomResourceConversion
}

// conversionProblem says why a conversion webhook cannot be set up. Whoever converts sees and changes the objects of all
// namespaces, so it is for operators of all namespaces, and about their own definitions, as with OLM
// (createOrUpdateConversionWebhook in pkg/controller/install/webhook.go). A definition has room for one of them.
func conversionProblem(csv *olm.ClusterServiceVersion, before []olm.WebhookDescription, d *olm.WebhookDescription) string {
	for _, mode := range csv.Spec.InstallModes {
		if mode.Supported != (mode.Type == olm.InstallModeTypeAllNamespaces) {
			return "objects of all namespaces are converted by it, so the ClusterServiceVersion has to support AllNamespaces and " +
				"no other install mode"
		}
	}

	if len(d.ConversionCRDs) == 0 {
		return "it names no definition in conversionCRDs"
	}

	for _, name := range d.ConversionCRDs {
		if !slices.ContainsFunc(csv.Spec.CustomResourceDefinitions.Owned, func(c olm.CRDDescription) bool { return c.Name == name }) {
			return "the operator does not own " + name
		}

		if slices.ContainsFunc(before, func(o olm.WebhookDescription) bool {
			return o.Type == d.Type && slices.Contains(o.ConversionCRDs, name) &&
				facts.Shape(conversionBy(csv, &o, nil)) != facts.Shape(conversionBy(csv, d, nil))
		}) {
			return "another one converts " + name + ", too, in another way"
		}
	}

	return ""
}

// ConversionsToWrite are those that the definitions of a CSV lack. Like admission webhooks, they are set up once the Deployment
// can answer: until then a definition is not taken from another Service, which may answer. A definition is converted by one
// operator: of two that bring it, the one that is in no conflict. Otherwise each would undo what the other writes.
func (w *Snapshot) ConversionsToWrite(csv *olm.ClusterServiceVersion, bundles map[string][]byte) []Conversion {
	if w.conflict(csv).message != "" {
		return nil
	}

	var out []Conversion

	decided := sets.Set[string]{}

	for i := range csv.Spec.WebhookDefinitions {
		d := &csv.Spec.WebhookDefinitions[i]

		bundle := bundles[d.DeploymentName]
		if d.Type != olm.ConversionWebhook || len(bundle) == 0 {
			continue
		}

		for _, name := range d.ConversionCRDs {
			if decided.Has(name) {
				continue // By another one, which this one would undo.
			}

			decided.Insert(name)

			want := conversionBy(csv, d, bundle)

			shape, converter := ConversionShape(want)
			if live := w.CRDs[name]; live.Conversion == shape || live.Converter != converter && !w.answers(d, bundle) {
				continue
			}

			out = append(out, Conversion{Definition: name, Want: want})
		}
	}

	return out
}

func conversionBy(
	csv *olm.ClusterServiceVersion, d *olm.WebhookDescription, bundle []byte,
) *apiextensionsv1.CustomResourceConversion {
	path, port := cmp.Or(ptr.Deref(d.WebhookPath, ""), "/"), portOf(d)

	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{
				Service: &apiextensionsv1.ServiceReference{
					Namespace: csv.Namespace, Name: serviceOf(d.DeploymentName), Path: &path, Port: &port,
				},
				CABundle: bundle,
			},
			ConversionReviewVersions: d.AdmissionReviewVersions,
		},
	}
}

// ConversionShape tells conversions by webhook apart, and names the Service that converts; both are empty for every other.
// CutConversion keeps nothing else.
func ConversionShape(c *apiextensionsv1.CustomResourceConversion) (shape, converter string) {
	switch {
	case c == nil || c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook == nil:
		return "", ""
	case c.Webhook.ClientConfig == nil && len(c.Webhook.ConversionReviewVersions) == cutLength:
		return c.Webhook.ConversionReviewVersions[0], c.Webhook.ConversionReviewVersions[1]
	}

	if config := c.Webhook.ClientConfig; config != nil && config.Service != nil {
		converter = config.Service.Namespace + "/" + config.Service.Name
	}

	return facts.Shape(c), converter
}

// cutLength is how many words CutConversion keeps, in the place of versions.
const cutLength = 2

// CutConversion keeps of a conversion what tells it apart.
func CutConversion(c *apiextensionsv1.CustomResourceConversion) *apiextensionsv1.CustomResourceConversion {
	shape, converter := ConversionShape(c)
	if shape == "" {
		return nil
	}

	return &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ConversionReviewVersions: []string{shape, converter}},
	}
}
