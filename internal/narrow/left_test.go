package narrow

import (
	"slices"
	"strings"
	"testing"
)

// TestCheckOfWhatMayStay holds that a new version asks for more where something gives more that the old one has and the new one
// leaves out: kubectl apply deletes nothing.
func TestCheckOfWhatMayStay(t *testing.T) {
	t.Parallel()

	const (
		secrets = "\nrules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]\n"
		none    = "\nrules: []\n"
		reads   = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: reads, labels: {for: taker}}"
		taker   = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: taker}\n" +
			"aggregationRule: {clusterRoleSelectors: [{matchLabels: {for: taker}}]}\n"
		role  = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: reads, namespace: ops}"
		toOp  = "subjects: [{kind: ServiceAccount, name: op, namespace: ops}]\n"
		binds = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: reads, namespace: ops}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reads}\n"
		nss     = "---\napiVersion: operator.ibm.com/v1\nkind: NamespaceScope\nmetadata: {name: s, namespace: ops}\nspec: {}\n"
		rules   = "rules: [{apiGroups: [''], resources: [secrets], verbs: [get]}]\n"
		deploys = "---\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: op, namespace: ops}\n" +
			"spec: {template: {metadata: {labels: {intent: LABEL}}, spec: {serviceAccountName: op}}}\n"
		toTaker  = "whoever is bound to ClusterRole taker may do more there, by ClusterRole reads: get secrets"
		toReads  = "whoever is bound to ClusterRole reads may do more there, by ClusterRole reads: get secrets"
		toRole   = "whoever is bound to Role reads may do more in namespace ops, by Role reads: get secrets"
		toTakers = "whoever is bound to ClusterRole taker may do more there, by ClusterRole taker: get secrets"
		served   = "whoever NamespaceScope ops/s serves may do more in its members, by NamespaceScope ops/s: accounts: op"
		inScopes = "ops/op may do more in namespace ops and in the members of the NamespaceScopes of namespace ops, " +
			"by Role reads: get secrets"
	)

	withRules, instead := strings.Replace(taker, "\nagg", "\n"+rules+"agg", 1), strings.Replace(reads, "reads", "taker", 1)
	beside := binds + toOp + role + secrets
	other, theirs := strings.Replace(deploys, "LABEL", "other", 1), strings.Replace(deploys, "LABEL", "projected", 1)

	for name, tc := range map[string]struct {
		before, after string
		want          []string
	}{
		"a ClusterRole that takes others":          {taker, reads + secrets, []string{toTaker}},
		"one that took the same":                   {taker + reads + secrets, reads + secrets, nil},
		"one that takes what was there":            {taker + reads + none, reads + secrets, []string{toTaker}},
		"a binding to a ClusterRole that was not":  {bound("", "reads"), reads + secrets, []string{toReads}},
		"a binding to a Role that was not there":   {binds + toOp, role + secrets, []string{toRole}},
		"a binding to a Role that was there":       {binds + toOp + role + secrets, role + secrets, nil},
		"a scope, which copies bindings beside it": {nss, binds + toOp + role + secrets, []string{inScopes}},
		"a scope, where pods get its labels":       {nss + beside + other, nss + beside + theirs, []string{served}},
		"a scope whose pods get its labels":        {nss + beside + other, beside + theirs, []string{served}},
		"a scope whose pods had its labels":        {nss + beside + theirs, beside + theirs, nil},
		"rules of a ClusterRole that took others in their place": {
			withRules, instead + secrets, []string{toTakers},
		},
		"rules of one that takes no others any more": {
			withRules, instead + secrets + "aggregationRule: null\n",
			[]string{toTakers},
		},
		"rules of one that takes others in their place": {
			withRules, withRules, nil,
		},
		"a binding of the account as a user":        {binds + toOp + role + secrets, binds + asUser + role + secrets, nil},
		"a binding of the account, in another form": {binds + asUser + role + secrets, binds + toOp + role + secrets, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := asks(t, tc.before, tc.after); !slices.Equal(got, tc.want) {
				t.Errorf("it asks for %q, want %q", got, tc.want)
			}
		})
	}
}

const asUser = "subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: 'system:serviceaccount:ops:op'}]\n"

// TestCheckOfPolicies holds that a new version asks for more where it changes or leaves out an admission policy, such as a fence:
// what that refused may be allowed then. A new policy refuses only more.
func TestCheckOfPolicies(t *testing.T) {
	t.Parallel()

	const (
		policy = "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\n" +
			"spec: {failurePolicy: Fail}\n"
		binding = "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: p}\n" +
			"spec: {policyName: p, validationActions: [Deny]}\n"
		other = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
		rules = "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\n" +
			"spec: {paramKind: {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole}}\n" +
			"---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: p}\n" +
			"spec: {policyName: p, paramRef: {name: r}}\n" +
			"---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\n" +
			"rules: [{apiGroups: [''], resources: [pods], verbs: [get]}]\n"
		by   = " limits may do more in the whole cluster, by ValidatingAdmissionPolicy"
		says = ": what it refused: the new version "
	)

	for name, tc := range map[string]struct {
		before, after string
		want          []string
	}{
		"new":             {other, policy + binding, nil},
		"as before":       {policy + binding, policy + binding + other, nil},
		"of an older API": {strings.ReplaceAll(policy+binding, "io/v1", "io/v1beta1"), policy + binding, nil},
		"with a label":    {policy, strings.Replace(policy, "name: p", "name: p, labels: {a: b}", 1), nil},
		"changed": {
			policy, strings.Replace(policy, "Fail", "Ignore", 1),
			[]string{"whoever ValidatingAdmissionPolicy p" + by + " p" + says + "changes it"},
		},
		"bound otherwise": {
			policy + binding, policy + strings.Replace(binding, "Deny", "Audit", 1),
			[]string{"whoever ValidatingAdmissionPolicyBinding p" + by + "Binding p" + says + "changes it"},
		},
		"rules as parameters": {rules, rules, nil},
		"other rules as parameters": {
			rules, strings.Replace(rules, "[get]", "[]", 1), []string{"whoever ValidatingAdmissionPolicyBinding p limits may do more in " +
				"the whole cluster, by ClusterRole r: what it refused, as ClusterRole r says: the new version changes that"},
		},
		"left out": {policy, other, []string{"whoever ValidatingAdmissionPolicy p" + by + " p" + says + "leaves it out"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := asks(t, tc.before, tc.after); !slices.Equal(got, tc.want) {
				t.Errorf("it asks for %q, want %q", got, tc.want)
			}
		})
	}
}
