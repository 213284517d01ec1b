package scope

import "strings"

// usualGroup is the group of a scope that an authorization names without one.
const usualGroup = "operator.ibm.com"

// AuthorizationFor reads which scope an authorization is for, from NAME or GROUP/NAME; both are empty where it is for none in
// particular.
func AuthorizationFor(value string) (group, name string) {
	group, name, found := strings.Cut(value, "/")
	if !found {
		group, name = usualGroup, group
	}

	if name == "" {
		return "", ""
	}

	return group, name
}
