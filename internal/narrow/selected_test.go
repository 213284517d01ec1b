package narrow

import (
	"slices"
	"strings"
	"testing"
)

// TestCheckOfLabelsThatSelect holds that a version asks for more where a label of a Namespace changes by which a webhook, a
// policy or a scope selects namespaces: the policy refuses nothing there any more, for example. Other labels are nothing.
func TestCheckOfLabelsThatSelect(t *testing.T) {
	t.Parallel()

	const (
		policy = `---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: p}
spec:
  matchResources:
    namespaceSelector: {matchLabels: {guarded: 'yes'}, matchExpressions: [{key: trusted, operator: DoesNotExist}]}
`
		scope = "---\napiVersion: operator.ibm.com/v1\nkind: NamespaceScope\nmetadata: {name: s, namespace: ops}\n" +
			"spec: {namespaceSelector: {team: a}, serviceAccountMembers: [op]}\n"
		by = "whatever selects namespaces by labels may do more in namespace shop, by Namespace shop: "
	)

	of := func(labels string) string {
		return "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {" + labels + "}}\n"
	}

	for name, tc := range map[string]struct {
		before, after string
		want          []string
	}{
		"of a policy, taken away": {policy + of("guarded: 'yes'"), policy + of(""), []string{by + "no label guarded"}},
		"of a policy, another":    {policy + of("guarded: 'yes'"), policy + of("guarded: 'no'"), []string{by + "label guarded: no"}},
		"of a policy, new":        {policy + of(""), policy + of("trusted: ''"), []string{by + "label trusted: "}},
		"of a scope":              {scope, scope + of("team: a"), []string{by + "label team: a"}},
		"of nothing":              {policy + scope, policy + scope + of("helm.sh/chart: b"), []string{}},
		"as before":               {policy + of("guarded: 'yes'"), policy + of("guarded: 'yes'"), []string{}},
		"of another version":      {scope + of(""), of("team: a"), []string{by + "label team: a"}},
	} {
		if got := asks(t, tc.before, tc.after); !slices.Equal(got, tc.want) {
			t.Errorf("%s: asked for is\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(tc.want, "\n"))
		}
	}
}
