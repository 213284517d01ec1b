package scope

import (
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// accountPrefix begins the user name of every service account.
const accountPrefix = "system:serviceaccount:"

// AccountIn is the service account of a namespace that a user is; empty when the user is none of that namespace.
func AccountIn(namespace, user string) string {
	if in, name, is := AccountOfUser(user); is && in == namespace {
		return name
	}

	return ""
}

// DefaultAccount is the service account that is there in every namespace, and never Ambit's to make. It is meant where none is
// named.
const DefaultAccount = "default"

// AccountUser is the user name of a service account.
func AccountUser(namespace, name string) string { return accountPrefix + namespace + ":" + name }

// GrantedAccount is the service account of an operator namespace to which the owners of members grant, where that is not the user
// that the manager runs as; empty where it is. What one account holds serves everybody who acts as it. So a manager that serves
// several namespaces, each with what was granted to it, acts in members as an account of the namespace whose scope it is, and as
// its own user only for its own namespace.
func GrantedAccount(user string, served []string, operatorNamespace string) string {
	for _, name := range served {
		if name != served[0] && AccountIn(operatorNamespace, user) == "" {
			return ManualDelegate
		}
	}

	return ""
}

// The groups of every service account (k8s.io/apiserver/pkg/authentication/serviceaccount). The second has all other users who
// are known, too.
const (
	GroupAccounts      = "system:serviceaccounts"
	GroupAuthenticated = "system:authenticated"
)

// GroupsOfAllAccounts are the groups in which every service account of the cluster is.
func GroupsOfAllAccounts() []string { return []string{GroupAccounts, GroupAuthenticated} }

// GroupOfAccounts is the group of the service accounts of a namespace.
func GroupOfAccounts(namespace string) string { return GroupAccounts + ":" + namespace }

// NamespaceOfGroup is the namespace whose service accounts a group holds; false for every other group.
func NamespaceOfGroup(group string) (string, bool) {
	namespace, is := strings.CutPrefix(group, GroupAccounts+":")

	return namespace, is && namespace != ""
}

// AccountOfUser is the service account that a user is; false for every other user, as in SplitUsername of
// k8s.io/apiserver/pkg/authentication/serviceaccount.
func AccountOfUser(user string) (namespace, name string, is bool) {
	rest, is := strings.CutPrefix(user, accountPrefix)
	namespace, name, _ = strings.Cut(rest, ":")

	return namespace, name, is && namespace != "" && name != "" && !strings.Contains(name, ":")
}

// Impersonated is what the right to act as a user is about: the resource and the object, as the API server has it
// (k8s.io/apiserver/pkg/endpoints/filters/impersonation).
func Impersonated(user string) (resource, namespace, name string) {
	if namespace, name, is := AccountOfUser(user); is {
		return "serviceaccounts", namespace, name
	}

	return "users", "", user
}

// Holder is a subject in one form: a user that is a service account becomes one, and the API group is left out, since the kind
// implies it.
func Holder(s *rbacv1.Subject) rbacv1.Subject {
	if namespace, name, is := AccountOfUser(s.Name); is && s.Kind == rbacv1.UserKind {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}

	return rbacv1.Subject{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}
}
