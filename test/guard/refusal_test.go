package guard_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// TestRefusals checks what somebody reads who may write scopes and nothing else.
func TestRefusals(t *testing.T) {
	h := begin(t)
	h.furnish()
	t.Cleanup(h.clear)

	who := h.welcome(h.user("reader", h.hereAs("ambit-edit", rule(scopes.Group, scopes.Resource, "create"))))

	for name, tc := range map[string]struct {
		reason string
		group  string
		do     func(*request) error
		code   int32
		says   []string
	}{
		"NamesNone": {
			reason: "what is missing, who may do it all the same, and what to do next",
			do:     create(fresh, map[string]any{}),
			code:   http.StatusForbidden,
			says: []string{
				"this scope names no serviceAccountName", "with its own rights", "users who may escalate clusterroles",
				"Give it a service account in spec.serviceAccountName", "ask a cluster administrator",
			},
		},
		"NamesNoneAnyMore": {
			reason: "it helps to name one again",
			do:     patch(delegated, types.MergePatchType, `{"spec":{"serviceAccountName":null}}`),
			code:   http.StatusForbidden,
			says:   []string{"this scope names no serviceAccountName", "Give it a service account in spec.serviceAccountName"},
		},
		"NamedNoneBefore": {
			reason: "it does not help to name one now",
			do:     patch(own, types.MergePatchType, `{"spec":{"namespaceMembers":["team-b"]}}`),
			code:   http.StatusForbidden,
			says: []string{
				"has named no serviceAccountName so far", "Delete the scope and create it again", "ask a cluster administrator",
			},
		},
		"NamesAccount": {
			reason: "which account and which namespace it is about",
			do:     create(fresh, map[string]any{account: writer}),
			code:   http.StatusForbidden,
			says: []string{
				"names the service account writer", "neither impersonate it", "nor create pods in namespace " + h.namespace,
				"Name an account that you may use",
			},
		},
		"Manual": {
			reason: "which account it is, although the scope does not name it",
			do:     create(fresh, map[string]any{manualField: true}),
			code:   http.StatusForbidden,
			says: []string{
				"this scope has manualManagement, which means the service account ambit", "neither impersonate it",
				"nor create pods in namespace " + h.namespace,
			},
		},
		"ManualNoMore": {
			reason: "it helps to name an account instead",
			do:     patch(manual, types.MergePatchType, `{"spec":{"manualManagement":false}}`),
			code:   http.StatusForbidden,
			says:   []string{"Ambit would write with its own rights", "Give it a service account in spec.serviceAccountName"},
		},
		"Older": {
			reason: "the older group has no field for an account, so it is of no use to speak of one", group: olderGroup,
			do:   create(fresh, map[string]any{}),
			code: http.StatusForbidden,
			says: []string{
				"with its own rights", "Give it spec.manualManagement: true, by which the service account ambit of its namespace writes",
			},
		},
		"OlderNotManualBefore": {
			reason: "what to do about a scope that Ambit has written itself so far", group: olderGroup,
			do:   patch(own, types.MergePatchType, `{"spec":{"namespaceMembers":["team-b"]}}`),
			code: http.StatusForbidden,
			says: []string{"Delete the scope and create it again with spec.manualManagement: true", "ask a cluster administrator"},
		},
		"OlderManual": {
			reason: "the same as in the other group", group: olderGroup,
			do:   create(fresh, map[string]any{manualField: true}),
			code: http.StatusForbidden,
			says: []string{"this scope has manualManagement, which means the service account ambit", "neither impersonate it"},
		},
		"EmptyName": {
			reason: "the API refuses it for everybody, before anything asks for rights",
			do:     create(fresh, map[string]any{account: ""}),
			code:   http.StatusUnprocessableEntity,
			says:   []string{"spec.serviceAccountName", "at least 1 chars"},
		},
		"EmptyNameLater": {
			reason: "the same in an update",
			do:     patch(delegated, types.MergePatchType, `{"spec":{"serviceAccountName":""}}`),
			code:   http.StatusUnprocessableEntity,
			says:   []string{"spec.serviceAccountName", "at least 1 chars"},
		},
		"AccountOfAnotherNamespace": {
			reason: "only accounts of the scope's own namespace can be named",
			do:     create(fresh, map[string]any{account: "kube-system/" + writer}),
			code:   http.StatusUnprocessableEntity,
			says:   []string{"spec.serviceAccountName"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.do(h.request(who, resourceOf(tc.group), nil))

			var status *apierrors.StatusError
			if !errors.As(err, &status) || status.ErrStatus.Code != tc.code {
				t.Fatalf("%s\nwant: refused with code %d, got: %v", tc.reason, tc.code, err)
			}

			for _, words := range tc.says {
				if !strings.Contains(err.Error(), words) {
					t.Errorf("%s\nwant: %q, got: %v", tc.reason, words, err)
				}
			}
		})
	}
}

// TestStatusDoesNotMatter: whoever may write the status may write it, and with it nothing else.
func TestStatusDoesNotMatter(t *testing.T) {
	h := begin(t)
	h.furnish()
	t.Cleanup(h.clear)

	who := h.welcome(h.user("reporter", h.here(rule(scopes.Group, "namespacescopes/status", "*"))))

	for name, needs := range map[string]authority{own: asAmbit, delegated: asWriter, manual: asManual} {
		scope, err := h.as(who, scopes).Patch(t.Context(), name, types.MergePatchType,
			[]byte(`{"status":{"observedGeneration":7},"spec":{"namespaceMembers":["kube-system"],"serviceAccountName":null,`+
				`"manualManagement":null}}`),
			metav1.PatchOptions{}, "status")
		if err != nil {
			t.Errorf("a status is written by whoever RBAC lets write it, without the right to %s: %v", needs, err)

			continue
		}

		spec := fmt.Sprint(scope.Object["spec"])
		if strings.Contains(spec, "kube-system") || (name == delegated) != strings.Contains(spec, account) ||
			(name == manual) != strings.Contains(spec, manualField) {
			t.Errorf("writing the status of %s changed its spec: %s", name, spec)
		}
	}
}

// TestScopeOnItsWayOut: a scope that waits for its finalizer is still written for.
func TestScopeOnItsWayOut(t *testing.T) {
	h := begin(t)
	h.furnish()
	t.Cleanup(h.clear)

	who := h.welcome(h.user("late", h.hereAs("ambit-edit", rule(scopes.Group, scopes.Resource, "create"))))
	late := h.request(who, scopes, nil)

	// A finalizer that no manager takes away.
	hold := patch(own, types.MergePatchType, `{"metadata":{"finalizers":["finalizer.nss.operator.ibm.com","guard.test/hold"]}}`)
	if err := hold(h.request(nil, scopes, nil)); err != nil {
		t.Fatal(err)
	}

	if err := remove(own)(late); err != nil {
		t.Fatalf("deleting a scope is a matter of RBAC alone: %v", err)
	}

	err := patch(own, types.MergePatchType, `{"spec":{"configmapName":"another"}}`)(late)
	if refusedBy(err) != ownIdentity {
		t.Errorf("the spec of a deleted scope says what Ambit takes away with its own rights; want it refused, got: %v", err)
	}

	// Ambit's may be off by now, where a manager runs.
	err = update(own, func(scope *unstructured.Unstructured) error {
		scope.SetFinalizers(slices.DeleteFunc(scope.GetFinalizers(), func(f string) bool { return f == "guard.test/hold" }))

		return nil
	})(late)
	if err != nil {
		t.Errorf("removing other finalizers changes no spec: %v", err)
	}
}
