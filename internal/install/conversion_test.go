package install

import (
	"testing"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestConversionsToWrite: a definition is converted by its operator once that can answer, and is not written again.
func TestConversionsToWrite(t *testing.T) {
	t.Parallel()

	path := "/convert"
	bundles := map[string][]byte{"op": []byte("bundle")}
	by := func(edit func(*olm.WebhookDescription)) *olm.ClusterServiceVersion {
		return member("op.v1", converting(widgets), onlyAll, func(c *olm.ClusterServiceVersion) { edit(&c.Spec.WebhookDefinitions[0]) })
	}

	plain := by(func(*olm.WebhookDescription) {})
	mutates := by(func(d *olm.WebhookDescription) { d.Type = olm.MutatingAdmissionWebhook })
	more := by(func(d *olm.WebhookDescription) { d.ConversionCRDs = []string{widgets, "b"} })
	elsewhere := by(func(d *olm.WebhookDescription) { d.WebhookPath = &path })
	nowhere := by(func(d *olm.WebhookDescription) { d.WebhookPath = new("") })
	twice := by(func(*olm.WebhookDescription) {})
	convertingAgain("/b")(twice)

	same, own := ConversionShape(conversionBy(plain, &plain.Spec.WebhookDefinitions[0], bundles["op"]))

	for reason, tc := range map[string]struct {
		csv     *olm.ClusterServiceVersion
		live    string
		by      string
		runs    bool
		bundles map[string][]byte
		want    int
	}{
		"it answers":                           {plain, "", "", true, bundles, 1},
		"it does not yet":                      {plain, "", "", false, bundles, 0},
		"it did, and trusted is another one":   {plain, "other", own, false, bundles, 1},
		"it does not yet, and another one may": {plain, "other", "ops/other", false, bundles, 0},
		"it answers, and another one is asked": {plain, "other", "ops/other", true, bundles, 1},
		"it is asked already":                  {plain, same, own, true, bundles, 0},
		"nobody could trust it":                {plain, "", "", true, nil, 0},
		"a webhook that converts nothing":      {mutates, "", "", true, bundles, 0},
		"a webhook that is about more":         {more, "", "", true, bundles, 2},
		"at a place of its own":                {elsewhere, same, own, true, bundles, 1},
		"of two, the first one":                {twice, "other", own, true, bundles, 1},
		"which is asked already":               {twice, same, own, true, bundles, 0},
		"at no place, which is the usual one":  {nowhere, same, own, true, bundles, 0},
	} {
		w := snapshotOf([]string{""}, tc.csv)
		w.CRDs[widgets] = CRD{UID: "u", Served: []string{"v1"}, Conversion: tc.live, Converter: tc.by}

		if tc.runs {
			w.running(tc.csv, 1)
		}

		got := w.ConversionsToWrite(tc.csv, tc.bundles)
		if len(got) != tc.want {
			t.Errorf("%s: written are %+v", reason, got)
		}

		for i := range got {
			config := got[i].Want.Webhook.ClientConfig
			if got[0].Definition != widgets || string(config.CABundle) != "bundle" || config.Service.Namespace != ownNamespace {
				t.Errorf("%s: %+v", reason, got[i])
			}
		}
	}
}

// TestOneOperatorConverts: of two operators of different groups that run and bring a definition, the one of the older group
// converts it, whatever the other one would write.
func TestOneOperatorConverts(t *testing.T) {
	t.Parallel()

	csv := member("op.v1", converting(widgets), onlyAll)

	for age, want := range map[time.Duration]int{time.Hour: 1, -time.Hour: 0} {
		for _, live := range []string{"", "other"} {
			w := snapshotOf([]string{""}, csv)
			w.CRDs[widgets] = CRD{UID: "u", Served: []string{"v1"}, Conversion: live}
			w.running(csv, 1)
			w.Holding = map[string]map[string]struct{}{csv.Name: {"": {}}}
			w.Others = []Operator{{
				Namespace: "theirs", Group: "g", UID: "u", Created: midnight.Add(age), APIs: Provided(csv), Serves: []string{"theirs"},
				Everywhere: true,
			}}

			if got := w.ConversionsToWrite(csv, map[string][]byte{"op": []byte("bundle")}); len(got) != want {
				t.Errorf("the other group came %s later, and %q converts: written are %+v", age, live, got)
			}
		}
	}
}

// TestConversionShape: what is kept of a conversion tells it apart, and is the same when it is cut once more.
func TestConversionShape(t *testing.T) {
	t.Parallel()

	by := func(edit func(*apiextensionsv1.CustomResourceConversion)) *apiextensionsv1.CustomResourceConversion {
		c := &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig: &apiextensionsv1.WebhookClientConfig{
					CABundle: []byte("a"), Service: &apiextensionsv1.ServiceReference{Namespace: "ops", Name: "s"},
				},
				ConversionReviewVersions: []string{"v1"},
			},
		}
		edit(c)

		return c
	}
	one := by(func(*apiextensionsv1.CustomResourceConversion) {})

	for reason, other := range map[string]*apiextensionsv1.CustomResourceConversion{
		"none": nil, "no webhook": by(func(c *apiextensionsv1.CustomResourceConversion) { c.Webhook = nil }),
		"another way": by(func(c *apiextensionsv1.CustomResourceConversion) { c.Strategy = apiextensionsv1.NoneConverter }),
	} {
		if shape, converter := ConversionShape(other); shape+converter != "" || CutConversion(other) != nil {
			t.Errorf("%s: it is converted by no webhook, and %s is kept", reason, shape)
		}
	}

	shape, converter := ConversionShape(one)
	if converter != "ops/s" {
		t.Errorf("it is converted by %q", converter)
	}

	other := by(func(c *apiextensionsv1.CustomResourceConversion) { c.Webhook.ClientConfig.CABundle = []byte("b") })
	if another, _ := ConversionShape(other); another == shape {
		t.Error("another bundle makes no difference")
	}

	byURL := by(func(c *apiextensionsv1.CustomResourceConversion) { c.Webhook.ClientConfig.Service = nil })
	if another, of := ConversionShape(CutConversion(byURL)); another == "" || of != "" {
		t.Errorf("by no Service, it is %s by %q", another, of)
	}

	cut := CutConversion(CutConversion(one))
	if again, by := ConversionShape(cut); again != shape || by != converter || cut.Webhook.ClientConfig != nil {
		t.Errorf("cut, it is %+v", cut)
	}
}
