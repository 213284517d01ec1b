package scope

import "strings"

// IsSystemNamespace says whether a namespace belongs to the cluster and not to a tenant: kube-*, openshift-* and
// Ambit's own. Labels never select one (CVE-2025-55205 and CVE-2024-39690 in Capsule: tenants put labels on system
// namespaces and were selected); it has to be named.
func IsSystemNamespace(name, ambit string) bool {
	return strings.HasPrefix(name, "kube-") ||
		name == "openshift" || strings.HasPrefix(name, "openshift-") ||
		(ambit != "" && name == ambit)
}
