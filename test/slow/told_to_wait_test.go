package slow_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	reviewv1 "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestWebhookThatSaysToWaitDelaysNoRevocation: an admission webhook refuses every status of a scope, and says in the API server's
// name to try again in an hour. What is revoked in that operator namespace goes at once.
func TestWebhookThatSaysToWaitDelaysNoRevocation(t *testing.T) {
	w := beds.Begin(t, "cluster")
	ops, member := w.Namespace("home"), w.Namespace("member")
	w.Operator(ops, "op", "get secrets", "list pods")

	nss := w.Scope(ops, testbed.Members(member))
	w.Reports(nss, yes, "Reconciled")

	url, authority, asked := saysToWait(w)
	webhook := &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: ops},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "waits.example.com", AdmissionReviewVersions: []string{"v1"},
			ClientConfig:      admissionv1.WebhookClientConfig{URL: &url, CABundle: authority},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: ops}},
			SideEffects:       new(admissionv1.SideEffectClassNone),
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.OperationAll},
				Rule: admissionv1.Rule{
					APIGroups: []string{"operator.ibm.com"}, APIVersions: []string{"*"}, Resources: []string{"namespacescopes/status"},
				},
			}},
		}},
	}
	w.Make(webhook)

	missing := "not-there-" + ops

	w.Eventually("a status is refused", func() error {
		// Each name is another status to write, until the API server asks the webhook.
		missing += "x"
		w.Change(nss, func() { nss.Spec = testbed.Members(member, missing) })

		if asked.Load() == 0 {
			return errMissing
		}

		return nil
	})

	w.Remove(testbed.Bind(ops, "Role", "op-role", ops, "op"))
	w.MayNot(ops, "op", member, "get secrets")
	w.Remove(webhook)
}

// saysToWait serves a webhook that refuses everything, with 429 and an hour to wait. It returns how often it was asked.
func saysToWait(w *testbed.World) (url string, authority []byte, asked *atomic.Int64) {
	w.Helper()

	asked = &atomic.Int64{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		review := &reviewv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
			http.Error(rw, "no review", http.StatusBadRequest)

			return
		}

		asked.Add(1)

		review.Response = &reviewv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
			Details: &metav1.StatusDetails{RetryAfterSeconds: 3600},
		}}

		rw.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(rw).Encode(review) // Who asked would notice.
	}))
	w.Cleanup(server.Close)

	return server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), asked
}
