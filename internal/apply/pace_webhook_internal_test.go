package apply

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testcluster"
)

// TestWebhookCannotSlowDown: what an admission webhook of one namespace answers in the API server's name does not count as a
// refusal of the API server's own, whatever it says to wait.
func TestWebhookCannotSlowDown(t *testing.T) {
	t.Parallel()

	config := testcluster.Config(t)
	member := testcluster.Namespace(t, config, "apply")
	answerTooManyRequests(t, config, member)

	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		//nolint:bodyclose // Send closes it.
		response := testcluster.Send(t, config, http.MethodPost,
			"/apis/rbac.authorization.k8s.io/v1/namespaces/"+member+"/roles?dryRun=All",
			`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}}`)

		if response.StatusCode == http.StatusTooManyRequests {
			if got := response.Header.Get("Retry-After"); got != "3000" {
				t.Errorf("the setup: it says to wait for %q", got)
			}

			if wait, is := refusal(response); is {
				t.Errorf("it counts, and everybody waits for %s", wait)
			}

			return
		}

		if time.Now().After(deadline) {
			t.Fatalf("the API server does not ask the webhook; it answers %s", response.Status)
		}
	}
}

// TestNobodyWaitsForAWebhooksWord: client-go does not wait as long as a webhook says before it tries again.
func TestNobodyWaitsForAWebhooksWord(t *testing.T) {
	t.Parallel()

	config := rest.CopyConfig(testcluster.Config(t))
	member := testcluster.Namespace(t, config, "apply")
	answerTooManyRequests(t, config, member)
	config.Wrap(OnlyOwnLimits)

	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: member, Name: "r"}}
	for err == nil { // The API server does not ask the webhook at once.
		err = c.Create(ctx, role.DeepCopy(), client.DryRunAll)
	}

	if !apierrors.IsTooManyRequests(err) {
		t.Errorf("the answer is %v", err)
	}
}

// answerTooManyRequests has a webhook answer 429 to who makes Roles in a namespace.
func answerTooManyRequests(t *testing.T, config *rest.Config, namespace string) {
	t.Helper()

	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)

			return
		}

		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusTooManyRequests, Reason: metav1.StatusReasonTooManyRequests,
			Message: "Too many requests, please try again later.", Details: &metav1.StatusDetails{RetryAfterSeconds: 3000},
		}}

		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review) // Who asked would notice.
	}))
	t.Cleanup(server.Close)

	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}

	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	webhook := &registrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		Webhooks: []registrationv1.ValidatingWebhook{{
			Name: "refuses.example.com", AdmissionReviewVersions: []string{"v1"},
			ClientConfig:      registrationv1.WebhookClientConfig{URL: &server.URL, CABundle: authority},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": namespace}},
			SideEffects:       new(registrationv1.SideEffectClassNone),
			Rules: []registrationv1.RuleWithOperations{{
				Operations: []registrationv1.OperationType{registrationv1.Create},
				Rule: registrationv1.Rule{
					APIGroups: []string{rbacv1.GroupName}, APIVersions: []string{"v1"}, Resources: []string{"roles"},
				},
			}},
		}},
	}

	if err := c.Create(t.Context(), webhook); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), webhook) }) // The cluster ends soon.
}
