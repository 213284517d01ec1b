package narrow_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

var errOther = errors.New("the API server answers otherwise")

// settles waits until the API server answers so.
func settles(w *testbed.World, q *question, want bool) {
	w.Helper()
	w.Eventually(fmt.Sprintf("%s: %t", q, want), func() error {
		if is, err := ask(w, q); err != nil || is != want {
			return errors.Join(errOther, err)
		}

		return nil
	})
}

// TestCheckAsksTheCluster holds that the rules of a role that is not in the files are those of the cluster's, and that a role
// that the cluster does not have either may give anything.
func TestCheckAsksTheCluster(t *testing.T) {
	w := begin(t)
	ops := w.Namespace("ops")
	old := write(w, strings.ReplaceAll(mighty, `["*"], resources: ["*"]`, `[""], resources: [pods]`))

	for role, want := range map[string]string{
		"system:node-proxier": "endpointslices",
		"of-" + ops:           "anything",
	} {
		young := write(w, strings.ReplaceAll(mighty, "kind: ClusterRole, name: OPS", "kind: ClusterRole, name: "+role))

		out, errOut, code := ambit(w, "narrow", "--check", old, "-f", young)
		if code != 3 || !strings.Contains(out, want) || (want != "anything") == strings.Contains(out, "anything") {
			t.Errorf("of %s, exit %d\n%s\n%s", role, code, out, errOut)
		}
	}
}

// TestCheckKnowsWhoIsBoundBefore holds that a role which the new version makes is compared also where the cluster alone has a
// binding to it: that gave nothing for want of the role.
func TestCheckKnowsWhoIsBoundBefore(t *testing.T) {
	w := begin(t)
	ops := w.Namespace("ops")
	account := strings.ReplaceAll("apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: op, namespace: OPS}\n", "OPS", ops)
	old := write(w, account)

	for kind, q := range map[string]*question{
		"ClusterRole": {user: "system:serviceaccount:" + ops + ":op", verb: "get", resource: "nodes"},
		"Role":        {user: "system:serviceaccount:" + ops + ":op", verb: "get", resource: "pods", namespace: ops},
	} {
		role := "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: " + kind + "\nmetadata: {name: waited-OPS, namespace: OPS}\n" +
			"rules: [{apiGroups: [''], resources: [" + q.resource + "], verbs: [get]}]\n"
		young := account + strings.ReplaceAll(role, "OPS", ops)

		if out, errOut, code := ambit(w, "narrow", "--check", old, "-f", write(w, young)); code != 0 {
			t.Errorf("nobody is bound to %s, but exit %d\n%s\n%s", kind, code, out, errOut)
		}

		kubectl(w, strings.NewReplacer("OPS", ops, "KIND", kind).Replace(`apiVersion: rbac.authorization.k8s.io/v1
kind: KINDBinding
metadata: {name: waits-OPS, namespace: OPS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: KIND, name: waited-OPS}
subjects: [{kind: ServiceAccount, name: op, namespace: OPS}]
`), "apply", "-f", "-", "--validate=false")
		settles(w, q, false)

		out, errOut, code := ambit(w, "narrow", "--check", old, "-f", write(w, young))
		if code != 3 || !strings.Contains(out, q.resource) || !strings.Contains(out, "bound to "+kind+" waited-"+ops) {
			t.Errorf("exit %d\n%s\n%s", code, out, errOut)
		}

		kubectl(w, young, "apply", "-f", "-")
		settles(w, q, true)
	}
}

// TestCheckReadsJSONAsKubectlDoes holds that a new version in JSON that YAML does not take is compared, with the escapes and tabs
// that JSON has.
func TestCheckReadsJSONAsKubectlDoes(t *testing.T) {
	w := begin(t)
	ops := w.Namespace("ops")
	old := strings.NewReplacer("OPS", ops, `["*"], resources: ["*"], verbs: ["*"]`, `[""], resources: [pods], verbs: [get]`).
		Replace(mighty)
	q := &question{user: "system:serviceaccount:" + ops + ":op", verb: "create", resource: "pods", sub: "exec", namespace: ops}

	kubectl(w, old, "apply", "-f", "-")
	settles(w, q, false)

	young := strings.ReplaceAll("\t{\n\t\"apiVersion\": \"rbac.authorization.k8s.io\\/v1\", \"kind\": \"ClusterRole\",\n"+
		"\t\"metadata\": {\"name\": \"OPS\", \"annotations\": {\"a\": \"\\ud83d\\ude00\"}},\n"+
		"\t\"rules\":\t[{\"apiGroups\": [\"\"], \"resources\": [\"pods\\/exec\"],\t\"verbs\": [\"create\"]}]\n}\n", "OPS", ops)

	out, errOut, code := ambit(w, "narrow", "--check", write(w, old), "-f", write(w, young))
	if code != 3 || !strings.Contains(out, "pods/exec") {
		t.Errorf("exit %d\n%s\n%s", code, out, errOut)
	}

	kubectl(w, young, "apply", "-f", "-")
	settles(w, q, true)
}

// TestCheckTellsOfAListThatIsFilled holds that a new version which names namespaces in the list of a fence asks for more: the
// account may write there once it is applied.
func TestCheckTellsOfAListThatIsFilled(t *testing.T) {
	w := begin(t)
	ops, member, outside := w.Namespace("ops"), w.Namespace("member"), w.Namespace("outside")

	old, errOut, code := ambit(w, "narrow", "-f", write(w, strings.ReplaceAll(mighty, "OPS", ops)), "--members", member,
		"--keep", "* *", "--fence")
	if code != 0 {
		t.Fatal(errOut)
	}

	if out, errOut, code := ambit(w, "narrow", "--check", write(w, old), "-f", write(w, old)); code != 0 {
		t.Errorf("the same: exit %d\n%s\n%s", code, out, errOut)
	}

	young := strings.Replace(old, "kind: ConfigMap\n", "kind: ConfigMap\ndata: {namespaces: "+outside+"}\n", 1)

	out, errOut, code := ambit(w, "narrow", "--check", write(w, old), "-f", write(w, young))
	if code != 3 || !strings.Contains(out, "ConfigMap "+ops+"/op-namespaces") {
		t.Errorf("exit %d\n%s\n%s", code, out, errOut)
	}

	op := w.As("system:serviceaccount:"+ops+":op", "system:serviceaccounts", "system:serviceaccounts:"+ops, "system:authenticated")

	for i, text := range []string{old, young} {
		refused := i == 0

		for document := range strings.SplitSeq(text, "---\n") {
			if !strings.Contains(document, "kind: NamespaceScope\n") {
				kubectl(w, document, "apply", "-f", "-")
			}
		}

		expect(w, fmt.Sprintf("it is refused to write there: %t", refused), refused, func() error {
			return op.Create(w.Context(), configMap(outside, "x"), client.DryRunAll)
		})
	}
}

// TestCheckReadsKeysAsKubectlDoes holds that a version is refused in which a label is another one for kubectl than for the check:
// by the label, a ClusterRole would take rules that the check does not see.
func TestCheckReadsKeysAsKubectlDoes(t *testing.T) {
	w := begin(t)
	ops := w.Namespace("ops")
	q := &question{user: "system:serviceaccount:" + ops + ":op", verb: "get", resource: "secrets", namespace: ops}

	old := strings.ReplaceAll(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: OPS, labels: {OPS: "", other: ""}}
rules: []
aggregationRule: {clusterRoleSelectors: [{matchLabels: {none: OPS}}]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: OPS-part, labels: {"true": OPS}}
rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: OPS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: OPS}
subjects: [{kind: ServiceAccount, name: op, namespace: OPS}]
`, "OPS", ops)
	young := strings.Replace(old, "none:", "yes:", 1)

	isRefused(w, old, young, "in quotes", q)
}

// isRefused holds that a check refuses to compare two versions, the younger of which allows somebody what the older does not.
func isRefused(w *testbed.World, old, young, words string, q *question) {
	w.Helper()

	if out, errOut, code := ambit(w, "narrow", "--check", write(w, old), "-f", write(w, young)); code != 1 ||
		!strings.Contains(errOut, words) {
		w.Errorf("exit %d\n%s\n%s", code, out, errOut)
	}

	kubectl(w, old, "apply", "-f", "-")
	settles(w, q, false)
	kubectl(w, young, "apply", "-f", "-")
	settles(w, q, true)
}

// TestCheckRefusesABindingThatIsThereTwice holds that an old version with two bindings of one name is refused: the later one
// replaces the subjects of the first, which hold nothing.
func TestCheckRefusesABindingThatIsThereTwice(t *testing.T) {
	w := begin(t)
	ops := w.Namespace("ops")
	q := &question{user: "system:serviceaccount:" + ops + ":op", verb: "create", resource: "pods", sub: "exec", namespace: ops}
	young := strings.ReplaceAll(mighty, "OPS", ops)
	old := young + strings.ReplaceAll(young[strings.LastIndex(young, "---\n"):], "name: op,", "name: other,")

	isRefused(w, old, young, "is there twice", q)
}

// TestCheckTellsOfAFenceThatEnds holds that a new version counts that writes the list of a fence which the cluster alone has, or
// gives the fence an owner that is not there: the garbage collector deletes it then.
func TestCheckTellsOfAFenceThatEnds(t *testing.T) {
	w := begin(t)
	ops, member, outside := w.Namespace("ops"), w.Namespace("member"), w.Namespace("outside")
	vendor := strings.ReplaceAll(mighty, "OPS", ops)

	narrowed := fenceWithoutScope(w, vendor, member)
	op := w.As("system:serviceaccount:"+ops+":op", "system:serviceaccounts", "system:serviceaccounts:"+ops, "system:authenticated")
	outsideIs := func(refused bool) {
		expect(w, fmt.Sprintf("it is refused to write there: %t", refused), refused, func() error {
			return op.Create(w.Context(), configMap(outside, "x"), client.DryRunAll)
		})
	}
	outsideIs(true)

	list := "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: op-namespaces, namespace: " + ops + "}\n" +
		"data: {namespaces: " + outside + "}\n"
	owned := strings.ReplaceAll(narrowed, "kind: ValidatingAdmissionPolicyBinding\nmetadata:\n",
		"kind: ValidatingAdmissionPolicyBinding\nmetadata:\n  ownerReferences:\n"+
			"    - {apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, name: gone-"+ops+", uid: none}\n")

	for young, old := range map[string]string{vendor + list: vendor, owned: narrowed} {
		out, errOut, code := ambit(w, "narrow", "--check", write(w, old), "-f", write(w, young))
		if code != 3 || !strings.Contains(out, "ValidatingAdmissionPolicyBinding ambit-fence-"+ops) {
			t.Errorf("exit %d\n%s\n%s", code, out, errOut)
		}
	}

	for document := range strings.SplitSeq(owned, "---\n") {
		if strings.Contains(document, "kind: ValidatingAdmissionPolicyBinding\n") {
			kubectl(w, document, "apply", "-f", "-")
		}
	}

	outsideIs(false)
}
