package reconcile_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// asking adds a webhook about ConfigMaps that only those objects meet which no case makes, after the edits.
func asking(name string, edits ...func(*olmv1alpha1.WebhookDescription)) func(*olmv1alpha1.ClusterServiceVersion) {
	return func(c *olmv1alpha1.ClusterServiceVersion) {
		d := olmv1alpha1.WebhookDescription{
			Type: olmv1alpha1.ValidatingAdmissionWebhook, GenerateName: name, DeploymentName: "op", ContainerPort: 443,
			TargetPort: new(intstr.FromInt32(9443)), SideEffects: new(admissionv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"}, WebhookPath: new("/validate"),
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"asked": "true"}},
			Rules:          about("", "configmaps"),
		}
		for _, edit := range edits {
			edit(&d)
		}

		c.Spec.WebhookDefinitions = append(c.Spec.WebhookDefinitions, d)
	}
}

func about(group string, resources ...string) []admissionv1.RuleWithOperations {
	return []admissionv1.RuleWithOperations{{
		Operations: []admissionv1.OperationType{admissionv1.Create},
		Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: resources},
	}}
}

func withRules(rules []admissionv1.RuleWithOperations) func(*olmv1alpha1.WebhookDescription) {
	return func(d *olmv1alpha1.WebhookDescription) { d.Rules = rules }
}

func mutates(d *olmv1alpha1.WebhookDescription) { d.Type = olmv1alpha1.MutatingAdmissionWebhook }

// rollOut has the Deployment be what it is asked to be: nobody rolls it out here.
func (w *world) rollOut() {
	w.Helper()
	w.rollOutIn(ops)
}

func (w *world) rollOutIn(short string) {
	w.Helper()

	d := &appsv1.Deployment{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(short), Name: "op"}, d); err != nil {
		w.Fatal(err)
	}

	d.Status = appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation, Replicas: 1, UpdatedReplicas: 1, ReadyReplicas: 1, AvailableReplicas: 1,
	}
	if err := w.client.Status().Update(w.Context(), d); err != nil {
		w.Fatal(err)
	}

	w.touch(d)
}

// installed reconciles until the operator runs, and fails the case if it does not get that far.
func (w *world) installed() {
	w.Helper()
	w.reconcileGroup()
	is(w, "phase before", w.phase(), installing)
	w.rollOut()
	w.reconcileGroup()
	is(w, "phase before", w.phase(), succeeded)
}

// consulting makes an operator of a and ops that is there, and is asked about these two.
func consulting(t *testing.T) *world {
	t.Helper()

	w := grouped(t)
	w.group("group", inA)
	w.csv("*", asking("v.example.com"))
	w.installed()
	is(w, "what is asked before", w.consulted(), []string{validating})

	return w
}

const (
	installing = "Installing InstallWaiting"
	succeeded  = "Succeeded InstallSucceeded"
)

// hook is a webhook of either kind, as the API server has it.
type hook struct {
	kind, name string
	config     client.Object
	rules      []admissionv1.RuleWithOperations
	selector   *metav1.LabelSelector
	client     *admissionv1.WebhookClientConfig
}

// hooks are the webhooks of which the configuration says that it goes with the operator's namespace.
func (w *world) hooks() []hook {
	w.Helper()

	var (
		validating admissionv1.ValidatingWebhookConfigurationList
		mutating   admissionv1.MutatingWebhookConfigurationList
		out        []hook
	)

	for _, list := range []client.ObjectList{&validating, &mutating} {
		if err := w.client.List(w.Context(), list, client.MatchingLabels{"olm.owner.namespace": w.ns(ops)}); err != nil {
			w.Fatal(err)
		}
	}

	for i := range validating.Items {
		c := &validating.Items[i]
		for j := range c.Webhooks {
			h := &c.Webhooks[j]
			out = append(out, hook{"Validating", h.Name, c, h.Rules, h.NamespaceSelector, &h.ClientConfig})
		}
	}

	for i := range mutating.Items {
		c := &mutating.Items[i]
		for j := range c.Webhooks {
			h := &c.Webhooks[j]
			out = append(out, hook{"Mutating", h.Name, c, h.Rules, h.NamespaceSelector, &h.ClientConfig})
		}
	}

	return out
}

// consulted shows about what API servers ask whom: "Validating v: configmaps at op-service:443/validate if … in (a,ops)". Each
// trusts what the Secret of the operator says, or the case fails.
func (w *world) consulted() []string {
	w.Helper()

	out := []string{}

	for _, h := range w.hooks() {
		var what []string

		for _, r := range h.rules {
			words := strings.Join(r.Resources, ",")
			if *r.Scope != admissionv1.AllScopes {
				words += " (" + string(*r.Scope) + ")"
			}

			what = append(what, words)
		}

		s := h.client.Service
		if s == nil || s.Namespace != w.ns(ops) {
			w.Fatalf("webhook %s leads to %+v", h.name, h.client)
		}

		if _, ca := w.certificate(); !bytes.Equal(ca, h.client.CABundle) || len(ca) == 0 {
			w.Errorf("webhook %s trusts another certificate than the operator has", h.name)
		}

		out = append(out, w.called(fmt.Sprintf("%s %s: %s at %s:%d%s if %s", h.kind, h.name, strings.Join(what, ";"), s.Name, *s.Port,
			*s.Path, metav1.FormatLabelSelector(h.selector))))
	}

	slices.Sort(out)

	return out
}

// certificate is what the operator answers with, and the authorities that vouch for it.
func (w *world) certificate() (certificate, authorities []byte) {
	w.Helper()

	s := w.servingSecret()
	if err := w.client.Get(w.Context(), client.ObjectKeyFromObject(s), s); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}

	return s.Data[corev1.TLSCertKey], s.Data["olmCAKey"]
}

func (w *world) servingSecret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "op-service-cert"}}
}

func (w *world) service() *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "op-service"}}
}

// leads shows where the Service of the operator leads to: "443→9443 to name=op"; "-" when there is none.
func (w *world) leads() string {
	w.Helper()

	s := w.service()

	err := w.client.Get(w.Context(), client.ObjectKeyFromObject(s), s)
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}

	if err != nil {
		return "-"
	}

	ports := make([]string, 0, len(s.Spec.Ports))
	for _, p := range s.Spec.Ports {
		ports = append(ports, fmt.Sprintf("%d→%s", p.Port, p.TargetPort.String()))
	}

	return strings.Join(ports, " ") + " to " + metav1.FormatLabelSelector(&metav1.LabelSelector{MatchLabels: s.Spec.Selector})
}

// mounts shows where the operator's container finds the certificate: "/path/file" for each file, sorted.
func (w *world) mounts() []string {
	w.Helper()

	d := w.live("op")
	out := []string{}

	for _, m := range d.Spec.Template.Spec.Containers[0].VolumeMounts {
		for _, v := range d.Spec.Template.Spec.Volumes {
			if v.Name != m.Name || v.Secret == nil || v.Secret.SecretName != w.servingSecret().Name {
				continue
			}

			for _, item := range v.Secret.Items {
				out = append(out, m.MountPath+"/"+item.Path+" "+item.Key)
			}
		}
	}

	slices.Sort(out)

	return out
}

// live is a Deployment of the operator namespace as it is now.
func (w *world) live(name string) *appsv1.Deployment {
	w.Helper()

	d := &appsv1.Deployment{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: name}, d); err != nil {
		w.Fatal(err)
	}

	return d
}

const (
	inA     = `{"targetNamespaces":["a>","ops>"]}`
	leading = "443→9443 to name=op"

	validating = "Validating v.example.com: configmaps (Namespaced) at op-service:443/validate if " + toA
	toA        = "kubernetes.io/metadata.name in (a,ops)"
)

// TestCSVWebhooks: what API servers ask the operator of a ClusterServiceVersion about, where, and when they begin to.
func TestCSVWebhooks(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		group, modes string
		hooks        []func(*olmv1alpha1.ClusterServiceVersion)
		brings       bool
		leads        string
		asked        []string
	}{
		"one that validates": {
			hooks: []func(*olmv1alpha1.ClusterServiceVersion){asking("v.example.com")}, leads: leading, asked: []string{validating},
		},
		"one that changes": {
			hooks: []func(*olmv1alpha1.ClusterServiceVersion){asking("m.example.com", mutates)}, leads: leading,
			asked: []string{"Mutating m.example.com: configmaps (Namespaced) at op-service:443/validate if " + toA},
		},
		"two of one name and kind are two": {
			hooks: []func(*olmv1alpha1.ClusterServiceVersion){
				asking("v.example.com"), asking("v.example.com", withRules(about("", "secrets"))),
			},
			leads: leading, asked: []string{validating, strings.Replace(validating, "configmaps", "secrets", 1)},
		},
		"two of one name and different kinds are two": {
			hooks: []func(*olmv1alpha1.ClusterServiceVersion){asking("v.example.com"), asking("v.example.com", mutates)},
			leads: leading, asked: []string{strings.Replace(validating, "Validating", "Mutating", 1), validating},
		},
		"two ports are two of one Service": {
			hooks: []func(*olmv1alpha1.ClusterServiceVersion){
				asking("v.example.com"), asking("w.example.com", func(d *olmv1alpha1.WebhookDescription) {
					d.ContainerPort, d.TargetPort = 8443, nil
				}),
			},
			leads: "443→9443 8443→8443 to name=op",
			asked: []string{validating, strings.NewReplacer("v.example", "w.example", ":443", ":8443").Replace(validating)},
		},
		"about everything is about what is in namespaces": {
			hooks: []func(*olmv1alpha1.ClusterServiceVersion){asking("v.example.com", withRules(about("", "*")))},
			leads: leading, asked: []string{strings.Replace(validating, "configmaps", "*", 1)},
		},
		"about namespaces is about the targets themselves": {
			hooks: []func(*olmv1alpha1.ClusterServiceVersion){asking("v.example.com", withRules(about("", "namespaces")))},
			leads: leading, asked: []string{strings.Replace(validating, "configmaps (Namespaced)", "namespaces", 1)},
		},
		"about namespaces and more is about both": {
			hooks: []func(*olmv1alpha1.ClusterServiceVersion){
				asking("v.example.com", withRules(about("", "namespaces", "configmaps"))),
			},
			leads: leading, asked: []string{
				strings.Replace(validating, "configmaps", "namespaces;namespaces,configmaps", 1),
			},
		},
		"about what the operator brings, wherever that is": {
			hooks:  []func(*olmv1alpha1.ClusterServiceVersion){asking("v.example.com", withRules(about(apiGroup, "things")))},
			brings: true, leads: leading, asked: []string{strings.Replace(validating, "configmaps (Namespaced)", "things", 1)},
		},
		"of all namespaces, but Ambit's own": {
			group: `{}`, hooks: []func(*olmv1alpha1.ClusterServiceVersion){asking("v.example.com", withRules(about(apiGroup, "things")))},
			brings: true, leads: leading, asked: []string{
				"Validating v.example.com: things at op-service:443/validate if kubernetes.io/metadata.name notin (ambit-system)",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			if tc.brings {
				w.definition("things", "Thing")
				tc.hooks = append(tc.hooks, w.owning("things", "Thing"))
			}

			if tc.group == "" {
				tc.group = inA
			}

			w.group("group", tc.group)
			w.csv("*", append(tc.hooks, w.named)...)

			// Nobody answers yet: with the failure policy Fail, everything would be refused that it is about.
			w.reconcileGroup()
			is(w, "phase before it runs", w.phase(), installing)
			is(w, "what is asked before it runs", w.consulted(), []string{})
			is(w, "the Service", w.leads(), tc.leads)
			is(w, "the certificate", w.mounts(), []string{
				"/apiserver.local.config/certificates/apiserver.crt tls.crt", "/apiserver.local.config/certificates/apiserver.key tls.key",
				"/tmp/k8s-webhook-server/serving-certs/tls.crt tls.crt", "/tmp/k8s-webhook-server/serving-certs/tls.key tls.key",
			})

			w.rollOut()
			w.reconcileGroup()
			is(w, "phase", w.phase(), succeeded)
			is(w, "what is asked", w.consulted(), tc.asked)
		})
	}
}

// named puts the API group of the case in the place of its short name.
func (w *world) named(c *olmv1alpha1.ClusterServiceVersion) {
	for i := range c.Spec.WebhookDefinitions {
		d := &c.Spec.WebhookDefinitions[i]
		for j := range d.ConversionCRDs {
			d.ConversionCRDs[j] = w.long(d.ConversionCRDs[j])
		}

		for j := range d.Rules {
			for k := range d.Rules[j].APIGroups {
				d.Rules[j].APIGroups[k] = w.long(d.Rules[j].APIGroups[k])
			}
		}
	}
}
