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
		"Other": {
			apierrors.NewForbidden(accounts, "writer", errors.New(
				`User "jane" cannot create resource "serviceaccounts" in API group ""`)),
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			message := apply.Message(tc.err)
			if !strings.HasPrefix(message, tc.err.Error()) {
				t.Errorf("the API server's own words are missing: %s", message)
			}

			advice := strings.TrimPrefix(message, tc.err.Error())
			if !strings.Contains(advice, tc.advice) || (tc.advice == "") != (advice == "") {
				t.Errorf("what to do is %q, want %q", advice, tc.advice)
			}
		})
	}
}
