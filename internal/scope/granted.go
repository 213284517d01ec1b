package scope

import "strings"

// accountPrefix begins the user name of every service account.
const accountPrefix = "system:serviceaccount:"

// AccountIn is the service account of a namespace that a user is; empty when the user is none of that namespace.
func AccountIn(namespace, user string) string {
	name, is := strings.CutPrefix(user, accountPrefix+namespace+":")
	if !is {
		return ""
	}

	return name
}

// AccountUser is the user name of a service account.
func AccountUser(namespace, name string) string { return accountPrefix + namespace + ":" + name }

// GrantedAccount is the service account of an operator namespace to which the owners of members grant, where that is not the
// user that the manager runs as; empty where it is. What one account holds serves all that act as it. So a manager that serves
// several namespaces, each with what was granted to it, acts in members as the account of the one whose scope it is, and as its
// own user for its own namespace alone.
func GrantedAccount(user string, served []string, key string) string {
	for _, name := range served {
		if name != served[0] && AccountIn(key, user) == "" {
			return ManualDelegate
		}
	}

	return ""
}
