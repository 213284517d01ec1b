package install

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/servingcert"
)

func about(group string, resources ...string) admissionv1.RuleWithOperations {
	return admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.OperationAll},
		Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: resources},
	}
}

func hooked(rules ...admissionv1.RuleWithOperations) func(*olm.ClusterServiceVersion) {
	return func(c *olm.ClusterServiceVersion) {
		none := admissionv1.SideEffectClassNone
		c.Spec.WebhookDefinitions = append(c.Spec.WebhookDefinitions, olm.WebhookDescription{
			Type: olm.MutatingAdmissionWebhook, GenerateName: "m.example.com", DeploymentName: "op", Rules: rules,
			SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
		})
	}
}

// onPort is a webhook that answers at a port of its Service, and at another one of its pods.
func onPort(port int32, target int) func(*olm.ClusterServiceVersion) {
	return func(c *olm.ClusterServiceVersion) {
		hooked(about("", "pods"))(c)

		d := &c.Spec.WebhookDefinitions[len(c.Spec.WebhookDefinitions)-1]
		d.ContainerPort, d.TargetPort = port, new(intstr.FromInt(target))
	}
}

// answering is a webhook for which a Deployment answers.
func answering(deployment string) func(*olm.ClusterServiceVersion) {
	return func(c *olm.ClusterServiceVersion) {
		hooked(about("", "pods"))(c)
		c.Spec.WebhookDefinitions[len(c.Spec.WebhookDefinitions)-1].DeploymentName = deployment
	}
}

func converting(crds ...string) func(*olm.ClusterServiceVersion) {
	return func(c *olm.ClusterServiceVersion) {
		c.Spec.WebhookDefinitions = []olm.WebhookDescription{{
			Type: olm.ConversionWebhook, GenerateName: "c.example.com", DeploymentName: "op", ConversionCRDs: crds,
			AdmissionReviewVersions: []string{"v1"},
		}}
	}
}

// convertingAgain is a further webhook that converts the same, at a path.
func convertingAgain(path string) func(*olm.ClusterServiceVersion) {
	return func(c *olm.ClusterServiceVersion) {
		d := *c.Spec.WebhookDefinitions[0].DeepCopy()
		d.GenerateName, d.WebhookPath = "again.example.com", &path
		c.Spec.WebhookDefinitions = append(c.Spec.WebhookDefinitions, d)
	}
}

// twoDeployments are those of a CSV, but for their names.
func twoDeployments(first, second string) func(*olm.ClusterServiceVersion) {
	return func(c *olm.ClusterServiceVersion) {
		strategy := &c.Spec.InstallStrategy.StrategySpec
		strategy.DeploymentSpecs = append(strategy.DeploymentSpecs[:1], *strategy.DeploymentSpecs[0].DeepCopy())
		strategy.DeploymentSpecs[0].Name, strategy.DeploymentSpecs[1].Name = first, second
	}
}

// choosing has the Deployment choose its pods by an expression about the label tier alone.
func choosing(pods map[string]string, operator metav1.LabelSelectorOperator) func(*olm.ClusterServiceVersion) {
	return func(c *olm.ClusterServiceVersion) {
		spec := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec
		spec.Template.Labels = pods
		spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: operator}}}

		if operator == metav1.LabelSelectorOpIn {
			spec.Selector.MatchExpressions[0].Values = []string{"web", "db"}
		}
	}
}

func onlyAll(c *olm.ClusterServiceVersion) {
	supporting(olm.InstallModeTypeAllNamespaces)(c)
}

// knowing are worlds in which nodes and ClusterWidgets are known to be in no namespace.
func knowing(targets []string, edits ...func(*olm.ClusterServiceVersion)) *Snapshot {
	w := snapshotOf(targets, member("op.v1", edits...))
	w.IsClusterScoped = func(_, resource string) bool { return resource == "nodes" || resource == "clusterwidgets" }

	return w
}

// TestDecideWebhooks: what a CSV may stand in the way of. Whoever writes it must not gain by that what Ambit may do.
func TestDecideWebhooks(t *testing.T) {
	t.Parallel()

	some, all := []string{"a", "b"}, []string{""}
	refused := func(reason string, w *Snapshot, message string) decision {
		return decision{reason, w, olm.CSVPhaseFailed, olm.CSVReasonInvalidWebhookDescription, "", message}
	}
	fine := func(reason string, w *Snapshot) decision {
		return decision{reason, w, olm.CSVPhaseInstallReady, olm.CSVReasonRequirementsMet, "hi", ""}
	}
	clusterScope := about("", "nodes")
	scope := admissionv1.ClusterScope
	clusterScope.Scope = &scope

	table := map[string]decision{
		"Own":      fine("its own API", knowing(some, hooked(about("example.com", "widgets", "widgets/status")))),
		"Pods":     fine("limited to the targets", knowing(some, hooked(about("", "pods")))),
		"AllOf":    fine("limited to what is in namespaces", knowing(some, hooked(about("", "*")))),
		"Nodes":    refused("no selector keeps nodes out", knowing(some, hooked(about("", "nodes/status"))), "nodes"),
		"NodesAll": fine("its group is for everything", knowing(all, hooked(about("", "nodes")))),
		"Cluster":  refused("it says so itself", knowing(some, hooked(clusterScope)), "nodes"),
		"Namespaces": fine(
			"the selector is held against their own labels", knowing(some, hooked(about("", "namespaces"))),
		),
		"NoDeployment": refused("nobody answers", knowing(some, hooked(about("", "pods")), deploying("other")), `no deployment "op"`),
		"NoLabels": refused("a Service that selects nothing is for whoever writes its endpoints", knowing(some,
			hooked(about("", "pods")), choosing(nil, metav1.LabelSelectorOpDoesNotExist)),
			"no label by which a Service could find them"),
		"Expressions": fine("its pods have labels", knowing(some, hooked(about("", "pods")),
			choosing(map[string]string{"tier": "web"}, metav1.LabelSelectorOpIn))),
		"AllGroups": refused("all is too much, as with OLM", knowing(all, hooked(about("*", "pods"))), "all API groups"),
		"TooMany": refused("each is asked about every write", knowing(some, func(c *olm.ClusterServiceVersion) {
			c.Spec.WebhookDefinitions = make([]olm.WebhookDescription, 101)
		}), "100 are the most"),
		"Ports": fine("a Service can have both", knowing(some, onPort(0, 443), onPort(443, 443), onPort(9443, 443))),
		"Targets": refused("the API server takes no Service that has a port twice", knowing(some, onPort(443, 9443), onPort(0, 443)),
			"with another target port"),
		"Services": refused("two Deployments would have one", knowing(some, twoDeployments("x.y", "x-y"), answering("x.y"),
			answering("x-y")), "answers for webhooks by Service x-y-service, too"),
		"OneService":      fine("one of the two answers for nothing", knowing(some, twoDeployments("x.y", "x-y"), answering("x-y"))),
		"Conversion":      fine("its own definition, for all", knowing(all, converting(widgets), onlyAll)),
		"ConversionTwice": fine("it is one and the same", knowing(all, converting(widgets), convertingAgain(""), onlyAll)),
		"ConversionInTwoWays": refused("each would undo the other", knowing(all, converting(widgets), convertingAgain("/b"), onlyAll),
			"another one converts widgets.example.com, too"),
		"ConversionOfSome": refused(
			"it sees the objects of all namespaces", knowing(all, converting(widgets)), "support AllNamespaces and no other",
		),
		"ConversionOfOthers": refused("it is somebody else's", knowing(all, converting("others.example.com"), onlyAll), "does not own"),
		"ConversionOfNone":   refused("it converts nothing", knowing(all, converting(), onlyAll), "no definition"),
	}

	for _, group := range guarded() {
		table["Guarded "+group] = refused("whoever stands there speaks with Ambit's rights", knowing(all, hooked(about(group, "*"))),
			"no operator may stand in the way of")
	}

	check(t, table)
}

// TestLimitedWebhooks: what API servers ask about is in the targets, whatever the CSV says.
func TestLimitedWebhooks(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		targets  []string
		rules    []admissionv1.RuleWithOperations
		scopes   []admissionv1.ScopeType
		operator metav1.LabelSelectorOperator
		values   []string
	}{
		"Some": {
			[]string{"b", "a"}, []admissionv1.RuleWithOperations{about("", "*"), about("example.com", "widgets"), about("", "namespaces")},
			[]admissionv1.ScopeType{admissionv1.NamespacedScope, admissionv1.AllScopes, admissionv1.AllScopes},
			metav1.LabelSelectorOpIn, []string{"a", "b"},
		},
		"All but Ambit's own": {
			[]string{""}, []admissionv1.RuleWithOperations{about("", "pods")}, []admissionv1.ScopeType{admissionv1.AllScopes},
			metav1.LabelSelectorOpNotIn, []string{"ambit-system"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := knowing(tc.targets, hooked(tc.rules...))
			w.AmbitNamespace = "ambit-system"
			w.running(w.CSVs[0], 1)

			got := w.only(t, map[string][]byte{"op": []byte("authority")}).Webhooks[0]
			for i, rule := range got.Rules {
				if *rule.Scope != tc.scopes[i] {
					t.Errorf("rule %d is about %s, want %s", i, *rule.Scope, tc.scopes[i])
				}
			}

			e := got.NamespaceSelector.MatchExpressions
			if len(e) != 1 || e[0].Operator != tc.operator || !slices.Equal(e[0].Values, tc.values) {
				t.Errorf("it is limited to %+v", e)
			}
		})
	}
}

// only is the one webhook configuration that has to be written.
func (w *Snapshot) only(t *testing.T, bundles map[string][]byte) *admissionv1.MutatingWebhookConfiguration {
	t.Helper()

	hooks, err := w.WebhooksToWrite(w.CSVs[0], w.Group.Targets, bundles)
	if err != nil || len(hooks.Write) != 1 {
		t.Fatalf("to write are %v, %v", hooks.Write, err)
	}

	out := &admissionv1.MutatingWebhookConfiguration{}
	as(t, hooks.Write[0], out)

	return out
}

func as(t *testing.T, obj *unstructured.Unstructured, typed any) {
	t.Helper()

	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, typed); err != nil {
		t.Fatal(err)
	}
}

// TestWebhooksAreCompared: one that is as it should be is not written; one that nobody could answer is not made, and one that is
// asked about too much is known.
func TestWebhooksAreCompared(t *testing.T) {
	t.Parallel()

	w := knowing([]string{"a"}, hooked(about("", "pods")))
	bundles := map[string][]byte{"op": []byte("authority")}
	count := func(want int, reason string) Webhooks {
		t.Helper()

		hooks, err := w.WebhooksToWrite(w.CSVs[0], w.Group.Targets, bundles)
		if err != nil || len(hooks.Write) != want {
			t.Errorf("%s: %d are written, want %d (%v)", reason, len(hooks.Write), want, err)
		}

		return hooks
	}

	w.Deployments = map[string]*appsv1.Deployment{}
	count(0, "nobody answers yet")
	w.running(w.CSVs[0], 1)

	live := w.only(t, bundles)
	w.Webhooks = map[string]facts.InstalledWebhooks{live.Name: {
		Name: live.Name, Content: facts.Shape(live.Webhooks), Reach: facts.Shape(live.Webhooks[0].NamespaceSelector),
	}}
	count(0, "it is as it should be")

	w.Deployments = map[string]*appsv1.Deployment{}
	bundles["op"] = []byte("authority and the one before")

	if hooks := count(1, "API servers trust another"); len(hooks.Beyond) != 0 {
		t.Error("it is asked about the same")
	}

	w.Group.Targets = []string{"b"}
	if hooks := count(1, "another target"); len(hooks.Beyond) != 1 {
		t.Error("it is asked about a namespace that is no target")
	}

	clear(bundles)

	if hooks := count(0, "it is not known whom to trust"); len(hooks.Remove) != 1 {
		t.Error("it is asked about a namespace that is no target, by a certificate that is not known")
	}

	w.Group.Targets = []string{"a"}
	if hooks := count(0, "it is not known whom to trust"); len(hooks.Remove) != 0 {
		t.Error("it is asked about its targets only, and removed")
	}

	if gone := WebhooksToRemove(w.Webhooks, WebhookNames(w.CSVs[0])); len(gone) != 0 {
		t.Errorf("%v is asked for", gone)
	}

	if gone := WebhooksToRemove(w.Webhooks, nil); len(gone) != 1 {
		t.Error("nobody asks for it any more")
	}
}

// TestWebhooksBeyondTheTargets: where nobody knows whom API servers are to trust, or a version has come to ask for too much, only
// what is asked about others than the targets is removed; and only that is when its write is refused. What is asked about fewer
// checks those still.
func TestWebhooksBeyondTheTargets(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		targets    []string
		namespaces string
		beyond     bool
	}{
		"a target came":                 {[]string{"a", "b", "ops"}, "a,ops", false},
		"a target went":                 {[]string{"a", "ops"}, "a,b,ops", true},
		"a target took another's place": {[]string{"b", "ops"}, "a,ops", true},
		"all became targets":            {[]string{""}, "a,ops", false},
		"all became targets, of one that is asked about Ambit": {[]string{""}, "a,ambit-system", true},
		"all were targets":   {[]string{"a", "ops"}, "", true},
		"no target is ready": {nil, "a,ops", true},
	} {
		for why, rules := range map[string]admissionv1.RuleWithOperations{
			"its certificate is not known": about("", "pods"), "it is refused": about("", "pods"),
			"it asks for too much": about("*", "pods"),
		} {
			w := knowing(tc.targets, hooked(rules))
			w.AmbitNamespace = "ambit-system"

			bundles := map[string][]byte{"op": []byte("authority")}
			if why == "its certificate is not known" {
				clear(bundles)
			}

			live := facts.InstalledWebhooks{
				Name: webhookConfigurationName(w.CSVs[0], 0), Content: "that before", Reach: "that before", Namespaces: tc.namespaces,
			}
			w.Webhooks = map[string]facts.InstalledWebhooks{live.Name: live}

			hooks, err := w.WebhooksToWrite(w.CSVs[0], tc.targets, bundles)
			if err != nil {
				t.Fatal(err)
			}

			if got := len(hooks.Remove)+len(hooks.Beyond) == 1; got != tc.beyond {
				t.Errorf("%s, and %s: it goes is %t", name, why, got)
			}
		}
	}
}

// TestWebhooksWithin: which webhook configurations stay of a version that cannot be read.
func TestWebhooksWithin(t *testing.T) {
	t.Parallel()

	ours := compile.CSVOwner("ops", "op.v1")

	for name, tc := range map[string]struct {
		targets    []string
		namespaces string
		owner      scope.Owner
		stays      bool
	}{
		"of the targets":                      {[]string{"a", "b"}, "a,b", ours, true},
		"of fewer":                            {[]string{"a", "b"}, "a", ours, true},
		"of one that left":                    {[]string{"a"}, "a,b", ours, false},
		"of all":                              {[]string{"a"}, "", ours, false},
		"of some, for all":                    {[]string{""}, "a,b", ours, true},
		"of Ambit's own namespace, for all":   {[]string{""}, "a,ambit-system", ours, false},
		"of a group without targets":          {nil, "a", ours, false},
		"of a version that can be read again": {[]string{"a"}, "a", compile.CSVOwner("ops", "op.v2"), false},
	} {
		w := knowing(tc.targets)
		w.AmbitNamespace = "ambit-system"
		w.Webhooks = map[string]facts.InstalledWebhooks{"v": {Name: "v", Owner: tc.owner.Hash(), Namespaces: tc.namespaces}}

		if got := len(w.WebhooksWithin(ours)) == 1; got != tc.stays {
			t.Errorf("%s: stays is %t", name, got)
		}
	}
}

// TestServing: the Deployment finds its certificate where OLM puts it, whatever the CSV mounts there.
func TestServing(t *testing.T) {
	t.Parallel()

	w := knowing([]string{"a"}, hooked(about("", "pods")), hooked(about("", "secrets")), func(c *olm.ClusterServiceVersion) {
		pods := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec
		pods.Volumes = []corev1.Volume{{Name: "webhook-cert"}, {Name: "data"}}
		pods.Containers[0].VolumeMounts = []corev1.VolumeMount{
			{Name: "own", MountPath: "/tmp/k8s-webhook-server/serving-certs"}, {Name: "data", MountPath: "/data"},
		}
	})
	w.Certificates = map[string]string{"op": "hash"}
	csv := w.CSVs[0]

	d := w.deployments(csv, nil)[0]
	if got := d.Spec.Template.Annotations["olmcahash"]; got != "hash" {
		t.Errorf("pods are told of %q", got)
	}

	where := map[string]string{}
	for _, m := range d.Spec.Template.Spec.Containers[0].VolumeMounts {
		where[m.MountPath] = m.Name
	}

	if len(where) != 3 || where["/tmp/k8s-webhook-server/serving-certs"] != "webhook-cert" ||
		where["/apiserver.local.config/certificates"] != "apiservice-cert" || len(d.Spec.Template.Spec.Volumes) != 3 {
		t.Errorf("mounted are %v, of %v", where, d.Spec.Template.Spec.Volumes)
	}

	s := ServingOf(csv)
	if len(s) != 1 || s[0].Secret != "op-service-cert" || s[0].Hosts[0] != "op-service.ops.svc" {
		t.Fatalf("serving are %+v", s)
	}

	if _, err := w.ServiceToWrite(csv, &s[0]); err != nil {
		t.Error(err)
	}

	w.Services = map[string]facts.Service{"op-service": {}}
	if _, err := w.ServiceToWrite(csv, &s[0]); err == nil || !strings.Contains(err.Error(), "Ambit did not make") {
		t.Errorf("somebody else's Service is taken: %v", err)
	}
}

// TestServiceOfExpressions: a Service has no expressions, and selects by the labels that they are about.
func TestServiceOfExpressions(t *testing.T) {
	t.Parallel()

	const in, notIn = metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn

	for name, tc := range map[string]struct {
		reason string
		edit   func(*olm.ClusterServiceVersion)
		want   string
	}{
		"labels":      {"they are the same", func(*olm.ClusterServiceVersion) {}, "app=op"},
		"expressions": {"the pods have one of the values", choosing(map[string]string{"tier": "web", "hash": "1"}, in), "tier=web"},
		"absence":     {"what is not there selects nothing", choosing(map[string]string{"app": "op"}, notIn), "app=op"},
		"both": {
			"either is asked for", func(c *olm.ClusterServiceVersion) {
				choosing(map[string]string{"app": "op", "tier": "web", "hash": "1"}, in)(c)
				c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Selector.MatchLabels = map[string]string{"app": "op"}
			}, "app=op,tier=web",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			csv := member("op.v1", hooked(about("", "pods")), tc.edit)
			w := snapshotOf([]string{"a"}, csv)

			service, err := w.ServiceToWrite(csv, &ServingOf(csv)[0])
			if err != nil {
				t.Fatal(err)
			}

			selector, _, _ := unstructured.NestedStringMap(service.Object, "spec", "selector")
			if got := labels.FormatLabels(selector); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestPairOf: a certificate that somebody put where Ambit looks for its own is not used.
func TestPairOf(t *testing.T) {
	t.Parallel()

	w := knowing([]string{"a"}, hooked(about("", "pods")))
	csv := w.CSVs[0]
	s := ServingOf(csv)[0]

	pair, err := servingcert.Make(s.Hosts, midnight, nil)
	if err != nil {
		t.Fatal(err)
	}

	obj, err := SecretToWrite(csv, &s, pair)
	if err != nil {
		t.Fatal(err)
	}

	secret := &corev1.Secret{}
	as(t, obj, secret)

	if got := w.PairOf(secret); !reflect.DeepEqual(got, pair) || !IsOwnedBy(secret, csv) {
		t.Errorf("its own is not known again: %v", got)
	}

	foreign := secret.DeepCopy()
	foreign.OwnerReferences = nil

	if w.PairOf(foreign) != nil || w.PairOf(nil) != nil {
		t.Error("what goes with no ClusterServiceVersion is used")
	}

	opaque := secret.DeepCopy()
	opaque.Type = corev1.SecretTypeOpaque

	if w.PairOf(opaque) != nil {
		t.Error("anything is used")
	}
}

// TestLongNamesOfWebhooks: a webhook may have a name that its configuration, or a label, cannot have.
func TestLongNamesOfWebhooks(t *testing.T) {
	t.Parallel()

	for length := range 80 {
		name := strings.Repeat("ab.", 30)[:length] + "c.example.com"
		w := knowing([]string{"a"}, hooked(about("", "pods")))
		d := &w.CSVs[0].Spec.WebhookDefinitions[0]
		d.GenerateName = name

		made, _ := w.configuration(w.CSVs[0], d, webhookConfigurationName(w.CSVs[0], 0), []string{"a"}, []byte("ca"))

		c, is := made.(*admissionv1.MutatingWebhookConfiguration)
		if !is || c.Webhooks[0].Name != name {
			t.Fatalf("%s: made %+v", name, made)
		}

		if wrong := validation.IsDNS1123Subdomain(c.Name); len(wrong) > 0 {
			t.Errorf("%s: the configuration is called %s: %s", name, c.Name, wrong[0])
		}

		if wrong := validation.IsValidLabelValue(c.Labels[labelWebhook]); len(wrong) > 0 {
			t.Errorf("%s: the label is %s: %s", name, c.Labels[labelWebhook], wrong[0])
		}
	}
}
