package apply_test

import (
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/apply"
)

// Where the profile delegated lacks a right that somebody has to choose, status says so, and what to do.
func TestMessageNamesTheChoice(t *testing.T) {
	t.Parallel()

	reviews := schema.GroupResource{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"}
	accounts := schema.GroupResource{Resource: "serviceaccounts"}
	limited := schema.GroupResource{Group: "authentication.k8s.io", Resource: "serviceaccounts"}

	for name, tc := range map[string]struct {
		err    error
		advice string
	}{
		"Older": {
			apierrors.NewForbidden(accounts, "writer", errors.New(
				`User "system:serviceaccount:ambit-system:ambit" cannot impersonate resource "serviceaccounts" in API group "" `+
					`in the namespace "ops"`)),
			"legacyImpersonation",
		},
		"Newer": {
			apierrors.NewForbidden(limited, "writer", errors.New(
				`User "system:serviceaccount:ambit-system:ambit" cannot impersonate:serviceaccount resource "serviceaccounts" in API group `+
					`"authentication.k8s.io" in the namespace "ops"`)),
			"",
		},
		"Certificates": {
			apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "op-service-cert", errors.New(
				`User "system:serviceaccount:ambit-system:ambit" cannot impersonate-on:serviceaccount:get resource "secrets" `+
					`in API group ""`)),
			"webhookCertificates",
		},
		"Asking": {
			apierrors.NewForbidden(reviews, "", errors.New(
				`User "system:serviceaccount:ops:writer" cannot create resource "selfsubjectrulesreviews" in API group `+
					`"authorization.k8s.io" at the cluster scope`)),
			"system:basic-user",
		},
		"Other": {
			apierrors.NewForbidden(accounts, "writer", errors.New(
				`User "jane" cannot create resource "serviceaccounts" in API group ""`)),
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			message := apply.Message(tc.err)
			if !strings.Contains(message, tc.err.Error()) {
				t.Errorf("the API server's own words are missing: %s", message)
			}

			advice := strings.Replace(message, tc.err.Error(), "", 1)
			if !strings.Contains(advice, tc.advice) || (tc.advice == "") != (advice == "") {
				t.Errorf("what to do is %q, want %q", advice, tc.advice)
			}
		})
	}
}

// TestOutcomeWroteWhatWasWritten: what was refused changed nothing, and whatever was deleted did.
func TestOutcomeWroteWhatWasWritten(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		outcome apply.Outcome
		want    bool
	}{
		"Nothing":         {apply.Outcome{}, false},
		"Restart":         {apply.Outcome{Restarts: []apply.WriteOutcome{{Result: apply.Configured}}}, true},
		"RefusedRestart":  {apply.Outcome{Restarts: []apply.WriteOutcome{{Result: apply.Failed, Err: errors.New("no")}}}, false},
		"DeletedObject":   {apply.Outcome{Objects: []apply.WriteOutcome{{Result: apply.Deleted}}}, true},
		"UnchangedObject": {apply.Outcome{Objects: []apply.WriteOutcome{{Result: apply.Unchanged}}}, false},
	} {
		if got := tc.outcome.Wrote(); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

// TestTransientFailureIsToldOnce: whether it is one of writes or came after them.
func TestTransientFailureIsToldOnce(t *testing.T) {
	t.Parallel()

	after, written := apierrors.NewTooManyRequestsError("status"), apierrors.NewTooManyRequestsError("list")
	lists := []apply.ListOutcome{{WriteOutcome: apply.WriteOutcome{Err: written}}}

	for name, tc := range map[string]struct {
		outcome apply.Outcome
		err     error
		want    string
	}{
		"After":  {apply.Outcome{}, after, after.Error()},
		"Writes": {apply.Outcome{Lists: lists}, nil, written.Error()},
		"Both":   {apply.Outcome{Lists: lists}, after, after.Error() + "\n" + written.Error()},
	} {
		failed, transient := tc.outcome.Failed(tc.err)
		if !failed || transient == nil || transient.Error() != tc.want {
			t.Errorf("%s: got %t, %v, want %s", name, failed, transient, tc.want)
		}
	}
}
