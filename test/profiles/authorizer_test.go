package profiles_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// What judges is judged, too: a contract that nothing can break says nothing.

// asked is a request of Ambit's account, about the resource of a namespace.
func asked(verb, resource, namespace string) request {
	return request{user: ambit, verb: verb, resource: resource, namespace: namespace}
}

func TestUnusedRightsAreFound(t *testing.T) {
	t.Parallel()

	own, everywhere := "Role own", "ClusterRole everywhere"

	for name, tc := range map[string]struct {
		reason   string
		grant    granted
		requests []request
		want     []string
	}{
		"Used": {
			reason:   "somebody needs it",
			grant:    granted{right{"list", "", "pods"}, everywhere, true},
			requests: []request{asked("list", "pods", "home")},
		},
		"NeverUsed": {
			reason:   "nobody does",
			grant:    granted{right{"get", "", "pods"}, everywhere, true},
			requests: []request{asked("list", "pods", "home")},
			want:     []string{"granted and never used: get pods (ClusterRole everywhere)"},
		},
		"OfAnotherGroup": {
			reason:   "groups are told apart",
			grant:    granted{right{"list", "apps", "pods"}, own, false},
			requests: []request{asked("list", "pods", "home")},
			want:     []string{"granted and never used: list pods of apps (Role own)"},
		},
		"BySomebodyElse": {
			reason:   "what others do is no use of Ambit's rights",
			grant:    granted{right{"list", "", "pods"}, everywhere, true},
			requests: []request{{user: "kubernetes-admin", verb: "list", resource: "pods", namespace: "home"}},
			want:     []string{"granted and never used: list pods (ClusterRole everywhere)"},
		},
		"AsSomebodyElse": {
			reason:   "nor is what Ambit does as a delegate",
			grant:    granted{right{"list", "", "pods"}, everywhere, true},
			requests: []request{{user: ambit, actingAs: "x", verb: "list", resource: "pods", namespace: "home"}},
			want:     []string{"granted and never used: list pods (ClusterRole everywhere)"},
		},
		"Refused": {
			reason:   "what was refused was not used",
			grant:    granted{right{"list", "", "pods"}, everywhere, true},
			requests: []request{{user: ambit, verb: "list", resource: "pods", namespace: "home", refused: true}},
			want:     []string{"granted and never used: list pods (ClusterRole everywhere)"},
		},
		"TooWide": {
			reason:   "a Role would do",
			grant:    granted{right{"list", "", "pods"}, everywhere, true},
			requests: []request{asked("list", "pods", embedded.Namespace)},
			want: []string{
				"granted everywhere and used in Ambit's own namespace only: list pods (ClusterRole everywhere)",
			},
		},
		"PatchThatMakes": {
			reason:   "the API server asks for the right to create",
			grant:    granted{right{"create", "", "configmaps"}, own, false},
			requests: []request{{user: ambit, verb: "patch", resource: "configmaps", namespace: "home", made: true}},
		},
		"PatchThatMakesNothing": {
			reason:   "and does not, where there is something to change",
			grant:    granted{right{"create", "", "configmaps"}, own, false},
			requests: []request{asked("patch", "configmaps", "home")},
			want:     []string{"granted and never used: create configmaps (Role own)"},
		},
		"Impersonation": {
			reason: "a request as an account uses the right to be it",
			grant:  granted{right{"impersonate", "", "serviceaccounts"}, everywhere, true},
			requests: []request{
				{user: ambit, actingAs: "system:serviceaccount:home:delegate", verb: "create", resource: "roles", namespace: "home"},
			},
		},
		"ConstrainedImpersonation": {
			reason: "one that is limited uses the right to be the account, and the right to do that",
			grant:  granted{right{"impersonate-on:serviceaccount:create", rbacv1.GroupName, "roles"}, everywhere, true},
			requests: []request{{
				user: ambit, actingAs: "system:serviceaccount:home:delegate", constraint: "impersonate:serviceaccount",
				verb: "create", group: rbacv1.GroupName, resource: "roles", namespace: "home",
			}},
		},
		"ConstrainedImpersonationIsNoOther": {
			reason: "and not the right without limits",
			grant:  granted{right{"impersonate", "", "serviceaccounts"}, everywhere, true},
			requests: []request{{
				user: ambit, actingAs: "system:serviceaccount:home:delegate", constraint: "impersonate:serviceaccount",
				verb: "create", group: rbacv1.GroupName, resource: "roles", namespace: "home",
			}},
			want: []string{"granted and never used: impersonate serviceaccounts (ClusterRole everywhere)"},
		},
		"NoImpersonation": {
			reason:   "no other does",
			grant:    granted{right{"impersonate", "", "serviceaccounts"}, everywhere, true},
			requests: []request{asked("create", "roles", "home")},
			want:     []string{"granted and never used: impersonate serviceaccounts (ClusterRole everywhere)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			uses := withImpersonation(usesOf(tc.requests, byAmbit), tc.requests)
			if got := unused([]granted{tc.grant}, uses); !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func TestRefusalsAreFound(t *testing.T) {
	t.Parallel()

	at := func(second int) time.Time { return time.Unix(int64(second), 0) }
	byOwner := (&grant.Grant{To: embedded.Namespace}).Name()
	// A namespace is opened in second 10, and asked to end in second 20.
	life := []request{
		{at: at(10), verb: "create", resource: "rolebindings", namespace: "member", name: byOwner},
		{at: at(20), verb: "delete", resource: "namespaces", namespace: "member", name: "member"},
	}
	no := func(second int, verb, resource string) request {
		return request{
			at: at(second), user: ambit, verb: verb, resource: resource, namespace: "member", refused: true, unauthorized: true,
		}
	}
	ends := no(21, "create", "roles")
	ends.unauthorized, ends.message = false, "forbidden: because it is being terminated"
	writer := no(15, "create", "roles")
	writer.actingAs = "system:serviceaccount:home:writer"

	for name, tc := range map[string]struct {
		reason   string
		profiles []string
		request  request
		excused  bool
	}{
		"Plain":       {"nobody provoked it", []string{"cluster", "delegated", "namespaced"}, no(15, "list", "roles"), false},
		"Ending":      {"nothing new comes into it", []string{"cluster", "delegated", "namespaced"}, ends, true},
		"Gone":        {"rights everywhere do not end", []string{"cluster", "delegated"}, no(21, "list", "roles"), false},
		"GoneRBAC":    {"rights in it end with it", []string{"namespaced"}, no(21, "create", "roles"), true},
		"Writer":      {"a test takes its rights", []string{"cluster", "delegated"}, writer, true},
		"NoWriter":    {"here is no such test", []string{"namespaced"}, writer, false},
		"Closed":      {"it may be asked", []string{"namespaced"}, no(9, "list", "roles"), true},
		"ClosedWrite": {"and nothing more", []string{"namespaced"}, no(9, "create", "roles"), false},
		"JustOpened":  {"the authorizer may not know yet", []string{"namespaced"}, no(11, "list", "rolebindings"), true},
		"Opened":      {"by now it does", []string{"namespaced"}, no(16, "list", "rolebindings"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			for _, profile := range tc.profiles {
				requests := slices.Concat(life, []request{tc.request})
				if found := refusals(requests, excuses(profile, requests)); len(found) == 0 != tc.excused {
					t.Errorf("%s: profile %s: want excused: %t, got %q", tc.reason, profile, tc.excused, found)
				}
			}
		})
	}
}

func TestRequestsAboutTheWholeClusterAreFound(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason  string
		request request
		found   bool
	}{
		"Namespaced":   {"about one namespace", asked("list", "roles", "member"), false},
		"Discovery":    {"what the API server serves", asked("get", "", ""), false},
		"AboutItself":  {"everybody may ask that", asked("create", "selfsubjectrulesreviews", ""), false},
		"ClusterWide":  {"about all namespaces", asked("watch", "roles", ""), true},
		"ClusterKind":  {"about a kind of the cluster", asked("list", "namespaces", ""), true},
		"OneNamespace": {"about a namespace itself", asked("get", "namespaces", "member"), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if found := clusterWide([]request{tc.request}); len(found) > 0 != tc.found {
				t.Errorf("%s: want found: %t, got %q", tc.reason, tc.found, found)
			}
		})
	}
}
