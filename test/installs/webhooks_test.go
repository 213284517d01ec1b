package installs_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/servingcert"
	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// asking adds a webhook that is asked about ConfigMaps with the label asked. Nobody answers, so every such write is refused.
func asking(name string, groups ...string) func(*olm.ClusterServiceVersion) {
	if len(groups) == 0 {
		groups = []string{""}
	}

	return func(c *olm.ClusterServiceVersion) {
		c.Spec.WebhookDefinitions = append(c.Spec.WebhookDefinitions, olm.WebhookDescription{
			Type: olm.ValidatingAdmissionWebhook, GenerateName: name, DeploymentName: "op", ContainerPort: 443,
			TargetPort: new(intstr.FromInt32(9443)), SideEffects: none(), AdmissionReviewVersions: []string{"v1"},
			TimeoutSeconds: new(int32(1)), WebhookPath: new("/validate"),
			ObjectSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"asked": "true"}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: groups, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		})
	}
}

var errAsked, errNotAsked = errors.New("the webhook is asked"), errors.New("the webhook is not asked")

// asked says whether the webhooks of an operator are asked about a namespace, by the API server's own word.
func (w *world) asked(namespace string, want bool) {
	w.Helper()
	w.Eventually(fmt.Sprintf("asked about %s is %t", namespace, want), func() error {
		err := w.Client.Create(w.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, GenerateName: "asked-", Labels: map[string]string{"asked": "true"},
		}}, client.DryRunAll)

		switch is := apierrors.IsInternalError(err); {
		case is && !want:
			return errAsked
		case !is && want:
			return fmt.Errorf("%w: %w", errNotAsked, err)
		case !is:
			return err
		}

		return nil
	})
}

func (w *world) secret(namespace string) *corev1.Secret {
	w.Helper()

	s := &corev1.Secret{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: namespace, Name: "op-service-cert"}, s); err != nil {
		w.Fatal(err)
	}

	return s
}

// hooks are the validating webhooks of a CSV.
func (w *world) hooks(c *olm.ClusterServiceVersion) []admissionv1.ValidatingWebhookConfiguration {
	w.Helper()

	var list admissionv1.ValidatingWebhookConfigurationList
	if err := w.Client.List(w.Context(), &list, client.MatchingLabels{
		"olm.owner.namespace": c.Namespace, "olm.owner": c.Name,
	}); err != nil {
		w.Fatal(err)
	}

	return list.Items
}

func (w *world) hook(c *olm.ClusterServiceVersion) *admissionv1.ValidatingWebhookConfiguration {
	w.Helper()

	all := w.hooks(c)
	if len(all) != 1 {
		w.Fatalf("%d webhook configurations", len(all))
	}

	return &all[0]
}

func pairIn(s *corev1.Secret) *servingcert.Pair {
	return &servingcert.Pair{Certificate: s.Data["tls.crt"], Key: s.Data["tls.key"], Authorities: s.Data["olmCAKey"]}
}

func hosts(namespace string) []string {
	return []string{"op-service." + namespace + ".svc", "op-service." + namespace}
}

// trusts waits until API servers trust what a Secret holds.
func (w *world) trusts(c *olm.ClusterServiceVersion) *servingcert.Pair {
	w.Helper()

	var pair *servingcert.Pair

	w.Eventually("API servers trust the certificate", func() error {
		pair = pairIn(w.secret(c.Namespace))
		if err := pair.Check(hosts(c.Namespace), time.Now()); err != nil {
			return err
		}

		if got := w.hook(c).Webhooks[0].ClientConfig.CABundle; !bytes.Equal(got, pair.Authorities) {
			return errNot
		}

		return nil
	})

	return pair
}

// TestWebhooks: an operator answers for its webhooks with a certificate that API servers trust, about the targets of its group
// and nothing else, and none of it outlives the operator.
func TestWebhooks(t *testing.T) {
	w := begin(t, "cluster")
	own, a, b := w.Namespace("own"), w.Namespace("a"), w.Namespace("b")
	g := w.group(own, targets(own, a))
	op := csv(own, "op.v1", asking("v.example.com"))
	w.Make(op)
	w.succeeds(op)

	first := w.trusts(op)
	w.asked(a, true)
	w.asked(own, true)
	w.asked(b, false)
	w.asked("default", false)
	w.mounted(own)

	w.Change(g, func() { g.Spec.TargetNamespaces = []string{own, b} })
	w.asked(b, true)
	w.asked(a, false)

	// Whoever widens it, and whoever takes the Service away, is undone.
	wider := w.hook(op)
	w.Change(wider, func() { wider.Webhooks[0].NamespaceSelector = &metav1.LabelSelector{} })
	w.asked(a, false)

	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "op-service"}}
	w.Remove(service)
	w.Eventually("the Service is back", func() error {
		service = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "op-service"}}
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(service), service); err != nil {
			return err
		}

		p := service.Spec.Ports
		if len(p) != 1 || p[0].Port != 443 || p[0].TargetPort.IntValue() != 9443 || service.Spec.Selector["app"] != "op" {
			return fmt.Errorf("it leads to %+v", service.Spec)
		}

		return nil
	})

	if again := w.trusts(op); !reflect.DeepEqual(again, first) {
		t.Error("the certificate was made anew for nothing")
	}

	w.Remove(op)
	w.Eventually("nobody is asked any more", func() error {
		if n := len(w.hooks(op)); n > 0 {
			return fmt.Errorf("%d webhook configurations are left", n)
		}

		return nil
	})
	w.asked(b, false)
}

func (w *world) mounted(own string) {
	w.Helper()

	d := &appsv1.Deployment{}
	if err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: own, Name: "op"}, d); err != nil {
		w.Fatal(err)
	}

	paths := map[string]bool{}
	for _, m := range d.Spec.Template.Spec.Containers[0].VolumeMounts {
		paths[m.MountPath] = true
	}

	if !paths["/apiserver.local.config/certificates"] || !paths["/tmp/k8s-webhook-server/serving-certs"] {
		w.Errorf("mounted are %v", paths)
	}
}

// TestWebhooksByAnAccount: everything is written as the account of the group, which needs what is said to be missing and no more.
func TestWebhooksByAnAccount(t *testing.T) {
	beds.Together(t)

	for _, profile := range profiles {
		t.Run(profile, func(t *testing.T) {
			w := begin(t, profile)
			own, a, b := w.Namespace("own"), w.Namespace("a"), w.Namespace("b")
			g := w.scoped(own, a)
			op := csv(own, "op.v1", asking("v.example.com"))
			w.Make(op)
			w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "validatingwebhookconfigurations", "in the cluster")

			for i, place := range install.Needs(op, own, []string{a, b}) {
				w.give(own, fmt.Sprintf("asked-%d-%s", i, own), place)
			}

			w.makesGroupRoles(own)

			if profile == "delegated" {
				w.choosesCertificates(op)
			}

			w.succeeds(op)
			w.asked(a, true)
			w.asked(b, false)
			w.writtenAs(own, "system:serviceaccount:"+own+":scoped")

			for _, r := range w.Requests() {
				if r.Object.Resource == "secrets" && r.Object.Namespace == own && r.As.Name == "" && r.Response.Code != http.StatusForbidden {
					t.Errorf("Ambit itself: %s", r.String())
				}
			}

			w.Change(g, func() { g.Spec.TargetNamespaces = []string{b} })
			w.asked(b, true)
			w.asked(a, false)

			if profile == "delegated" {
				w.webhooksMayGo(op)
			}
		})
	}
}

// choosesCertificates gives Ambit the right to write Secrets as other accounts, once it was said to be missing.
func (w *world) choosesCertificates(op *olm.ClusterServiceVersion) {
	w.Helper()

	w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "secrets", "webhookCertificates")
	w.noted(op, true)

	dir := filepath.Join(testcluster.Root(), "config", "rbac", "impersonate-certificates")
	if out, err := w.Cluster.Kubectl(w.Context(), "apply", "--server-side", "-k", dir); err != nil {
		w.Fatalf("%v\n%s", err, out)
	}

	w.noted(op, false)
}

// noted holds whether preflight says that Ambit itself lacks the right.
func (w *world) noted(op *olm.ClusterServiceVersion, is bool) {
	w.Helper()

	if out, _ := w.Ambit("preflight", "csv/"+op.Name, "-n", op.Namespace); strings.Contains(out, "webhookCertificates") != is {
		w.Errorf("preflight says %s", out)
	}
}
