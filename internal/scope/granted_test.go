package scope_test

import (
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestGrantedAccount has who Ambit is in the members of a namespace, by who it runs as and whom it serves.
func TestGrantedAccount(t *testing.T) {
	t.Parallel()

	ambit := scope.AccountUser("a", "ambit")

	for name, tc := range map[string]struct {
		reason, user string
		served       []string
		ops, want    string
	}{
		"whole cluster": {"it has its rights without anybody's authorization", ambit, nil, "a", ""},
		"one":           {"there is nobody else", ambit, []string{"a"}, "a", ""},
		"one, twice":    {"it is one namespace", ambit, []string{"a", "a"}, "a", ""},
		"one elsewhere": {"authorizations of its account can mean only this one", ambit, []string{"b"}, "b", ""},
		"own of two":    {"owners granted to the account that it is", ambit, []string{"a", "b"}, "a", ""},
		"own, renamed":  {"whatever it is called", scope.AccountUser("a", "other"), []string{"a", "b"}, "a", ""},
		"other of two":  {"not what was granted to a", ambit, []string{"a", "b"}, "b", "ambit"},
		"longer name":   {"names that begin alike are two namespaces", ambit, []string{"a", "a:b"}, "a:b", "ambit"},
		"neither":       {"what was granted to c serves nobody", scope.AccountUser("c", "ambit"), []string{"a", "b"}, "a", "ambit"},
		"a person":      {"they are of no namespace", "jane", []string{"a", "b"}, "a", "ambit"},
		"unknown":       {"fail closed", "", []string{"a", "b"}, "a", "ambit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := scope.GrantedAccount(tc.user, tc.served, tc.ops); got != tc.want {
				t.Errorf("%s: got %q", tc.reason, got)
			}
		})
	}
}

// TestAccountOfUser holds that a user is a service account where the API server takes the name for one's, and nowhere else.
func TestAccountOfUser(t *testing.T) {
	t.Parallel()

	for user, want := range map[string][2]string{
		scope.AccountUser("ops", "op"):    {"ops", "op"},
		"jane":                            {},
		"ops:op":                          {},
		"system:serviceaccount:":          {},
		"system:serviceaccount:ops":       {},
		"system:serviceaccount:ops:":      {},
		"system:serviceaccount::op":       {},
		"system:serviceaccount:ops:op:op": {},
		"system:serviceaccounts:ops:op":   {},
	} {
		namespace, name, is := scope.AccountOfUser(user)
		if is != (want[0] != "") || is && [2]string{namespace, name} != want {
			t.Errorf("%s is service account %q of namespace %q: %t", user, name, namespace, is)
		}

		if got := scope.AccountIn("ops", user); got != want[1] {
			t.Errorf("of namespace ops, %s is %q", user, got)
		}
	}
}

// TestHolder: a subject has one form, in which two of the same can be compared.
func TestHolder(t *testing.T) {
	t.Parallel()

	of := func(kind, group, namespace, name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: kind, APIGroup: group, Namespace: namespace, Name: name}
	}
	user := scope.AccountUser("ops", "op")

	for reason, tc := range map[string]struct{ subject, want rbacv1.Subject }{
		"an account":                   {of("ServiceAccount", "", "ops", "op"), of("ServiceAccount", "", "ops", "op")},
		"a user that is one":           {of("User", rbacv1.GroupName, "", user), of("ServiceAccount", "", "ops", "op")},
		"another user":                 {of("User", rbacv1.GroupName, "", "jane"), of("User", "", "", "jane")},
		"a group called as an account": {of("Group", rbacv1.GroupName, "", user), of("Group", "", "", user)},
	} {
		if got := scope.Holder(&tc.subject); got != tc.want {
			t.Errorf("%s: %+v, want %+v", reason, got, tc.want)
		}
	}
}

// TestNamespaceOfGroup: what Ambit calls the group of a namespace's accounts, it knows again, and no other group.
func TestNamespaceOfGroup(t *testing.T) {
	t.Parallel()

	for group, want := range map[string]string{
		scope.GroupOfAccounts("ops"): "ops", "system:serviceaccounts:": "", "system:serviceaccounts": "", "ops": "",
		"system:authenticated": "",
	} {
		if got, is := scope.NamespaceOfGroup(group); is != (want != "") || got != want && is {
			t.Errorf("%s holds the accounts of %q: %t", group, got, is)
		}
	}

	if got := scope.GroupsOfAllAccounts(); len(got) != 2 || got[0] != "system:serviceaccounts" || got[1] != "system:authenticated" {
		t.Errorf("every account is in %v", got)
	}
}
