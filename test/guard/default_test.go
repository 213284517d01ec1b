package guard_test

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// TestDefaultAccount: where the manager has --default-service-account, the policies can be told, and then ask for the right
// to use that account of whoever names none. In an API group of its own, so that other tests do not notice.
func TestDefaultAccount(t *testing.T) {
	h := begin(t)

	client, err := dynamic.NewForConfig(h.config)
	if err != nil {
		t.Fatal(err)
	}

	resource := schema.GroupVersionResource{Group: h.namespace + ".guard.test", Version: "v1", Resource: scopes.Resource}
	h.serve(client, resource, before)
	ownPolicy, delegatePolicy := h.guard(client, resource.Group)
	h.untilInForce(resource, ownPolicy, delegatePolicy)

	writesScopes := h.here(rule(resource.Group, resource.Resource, "*"))
	user := h.request(h.welcome(h.user("user", writesScopes,
		h.here(rule(core, "serviceaccounts", "impersonate", writer)))), resource, dryRun)
	stranger := h.request(h.welcome(h.user("stranger", writesScopes)), resource, dryRun)

	for _, policy := range []string{ownPolicy, delegatePolicy} {
		policies := client.Resource(schema.GroupVersionResource{
			Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingadmissionpolicies",
		})

		_, err := policies.Patch(t.Context(), policy, types.JSONPatchType, []byte(`[
			{"op":"test","path":"/spec/variables/0/name","value":"byDefault"},
			{"op":"replace","path":"/spec/variables/0/expression","value":"'writer'"}
		]`), metav1.PatchOptions{})
		if err != nil {
			t.Fatalf("changing %s: %v", policy, err)
		}
	}

	namesNone := create(fresh, map[string]any{})

	h.eventually("waiting until whoever may use the default is let through", func(context.Context) error {
		return namesNone(user)
	})
	h.eventually("waiting until nobody else is", func(context.Context) error {
		return refusal(namesNone(stranger), delegatePolicy)
	})

	if err := create(fresh, map[string]any{account: other})(user); refusedBy(err) != delegatePolicy {
		t.Errorf("a scope that names an account does not have the default; want: refused by %s, got: %v", delegatePolicy, err)
	}
}
