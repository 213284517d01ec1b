package narrow_test

import (
	"strings"
	"testing"
)

// of is a role or a binding that somebody else has.
const of = `---
apiVersion: rbac.authorization.k8s.io/v1
`

// TestNarrowGivesNobodyElseAnything holds that what is narrowed gets names of which nobody else has a use: neither those of
// something that the cluster has, nor those for which a binding waits, of the files or of the cluster.
func TestNarrowGivesNobodyElseAnything(t *testing.T) {
	const (
		jane  = "\nsubjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: 'jane:of:OPS'}]\n"
		waits = of + "kind: RoleBinding\nmetadata: {name: waits, namespace: OPS}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: OPS-op}" + jane
		waitsEverywhere = of + "kind: ClusterRoleBinding\nmetadata: {name: OPS-waits}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: OPS-op-cluster-scoped}" + jane
		role  = of + "kind: Role\nmetadata: {name: OPS-op, namespace: OPS}\nrules: []\n"
		bound = of + "kind: RoleBinding\nmetadata: {name: OPS-op, namespace: OPS}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: OPS-none}" + jane
		boundEverywhere = of + "kind: ClusterRoleBinding\nmetadata: {name: OPS-op-cluster-scoped}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: OPS-none}" + jane
		// uses keeps the vendor's ClusterRole as it is, so that another one is made beside it.
		uses = of + "kind: RoleBinding\nmetadata: {name: uses, namespace: OPS}\n" +
			"roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: OPS-op}\nsubjects: []\n"
		rest = of + "kind: ClusterRole\nmetadata: {name: OPS-op-cluster-scoped}\nrules: []\n"
	)

	for name, tc := range map[string]struct{ files, there string }{
		"a binding of the files waits":             {files: waits},
		"a binding of the files waits for another": {files: waitsEverywhere + uses},
		"bindings of the cluster wait":             {there: waits + waitsEverywhere + uses},
		"the cluster has the roles":                {there: waits + role + waitsEverywhere + rest + uses},
		"the cluster has bindings of these names":  {there: bound + boundEverywhere},
	} {
		t.Run(name, func(t *testing.T) {
			n := asShipped(t, func(n *narrowing) {
				n.input += strings.ReplaceAll(tc.files, "OPS", n.ops)
				n.applied(n.input)

				if tc.there != "" {
					n.applied(strings.ReplaceAll(tc.there, "OPS", n.ops))
				}
			})

			out, report := n.narrow("-f", write(n.World, n.input))
			n.applied(out)
			settled(n.World, objectsOf(n.World, out))
			n.deleted(report)
			n.narrowed()

			for i := range n.questions {
				for _, place := range []string{"", n.ops} {
					q := n.questions[i]
					if q.user, q.namespace = "jane:of:"+n.ops, place; askAll(n.World, []question{q})[0] {
						n.Fatalf("%s gained %s\n%s", q.user, &q, out)
					}
				}
			}

			if again, _ := n.narrow("-f", write(n.World, n.input)); again != out {
				t.Errorf("a second time, other manifests come out:\n%s", difference(out, again))
			}
		})
	}
}
