package guard_test

import (
	"slices"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// tenant is somebody who may write OLM's kinds, and what the policies let them do.
type tenant struct {
	reason string
	who    *somebody
	// escalates, and uses the account writer, or any, or is the account writer.
	escalates, usesWriter, usesAny, isWriter bool
}

// tenants are everybody who may write these kinds in a namespace for one reason or another.
func tenants(h *house) map[string]tenant {
	writes := []grant{
		h.here(rule(olmGroup, "*", "*")), h.here(rule(core, "configmaps", "*")),
	}
	with := func(name string, more ...grant) *somebody { return h.user("olm-"+name, slices.Concat(writes, more)...) }
	impersonates := func(names ...string) grant { return h.here(rule(core, "serviceaccounts", "impersonate", names...)) }

	return map[string]tenant{
		"SystemMasters": {
			reason: "the group that every check lets through", escalates: true, usesWriter: true, usesAny: true,
		},
		"ClusterAdmin": {
			reason: "a cluster administrator may escalate clusterroles",
			who:    h.user("olm-root", everywhereAs("cluster-admin", rule("*", "*", "*"))),

			escalates: true, usesWriter: true, usesAny: true,
		},
		"ClusterAdminInOneNamespace": {
			reason:     "cluster-admin by a RoleBinding has every right in one namespace, and Ambit has them in all",
			who:        h.user("olm-namespace-root", h.hereAs("cluster-admin", rule("*", "*", "*"))),
			usesWriter: true, usesAny: true,
		},
		"Escalator": {
			reason: "escalate on clusterroles is not by itself the right to use an account",
			who:    with("escalator", everywhere(rule(rbacGroup, "clusterroles", "escalate"))), escalates: true,
		},
		"NamespaceAdmin": {
			reason: "may use every account of the namespace, and none of Ambit's rights",
			who:    with("admin", h.hereAs("admin", rule(core, "pods", "create"))), usesWriter: true, usesAny: true,
		},
		"NamespaceEditor": {
			reason: "may run pods with every account of the namespace",
			who:    with("editor", h.hereAs("edit", rule(core, "pods", "create"))), usesWriter: true, usesAny: true,
		},
		"NobodyElse": {
			reason: "whoever may write these kinds and nothing else has no rights to put to use",
			who:    with("only-kinds"),
		},
		"Impersonator": {
			reason: "may use exactly one account",
			who:    with("impersonator", impersonates(writer)), usesWriter: true,
		},
		"ImpersonatorOfAnother": {
			reason: "may use exactly one account, and it is not the group's",
			who:    with("other-impersonator", impersonates(other)),
		},
		"ImpersonatorOfAll": {
			reason: "may use whichever account a group will name",
			who:    with("all-impersonator", impersonates()), usesWriter: true, usesAny: true,
		},
		"PodCreator": {
			reason: "a pod may run as any account of its namespace",
			who:    with("pod-creator", h.here(rule(core, "pods", "create"))), usesWriter: true, usesAny: true,
		},
		"TheAccountItself": {
			reason:   "what it writes it could have installed itself; Ambit installs as it",
			who:      serviceAccount(h.namespace, writer, writes...),
			isWriter: true,
		},
		"AnotherAccount": {
			reason: "an account of the same namespace is another account",
			who:    serviceAccount(h.namespace, other, writes...),
		},
		"AccountOfAnotherNamespace": {
			reason: "an account of the same name in another namespace is another account",
			who:    serviceAccount(embedded.Namespace, writer, writes...),
		},
		"Ambit": {
			reason:    "nothing that Ambit writes may be in its own way",
			who:       serviceAccount(embedded.Namespace, embedded.ServiceAccount, writes...),
			escalates: true, usesWriter: true, usesAny: true,
		},
	}
}
