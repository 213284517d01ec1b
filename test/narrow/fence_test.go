package narrow_test

import (
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// mighty is an operator that may do everything and keeps it, so that nothing but its fence refuses.
const mighty = `apiVersion: v1
kind: ServiceAccount
metadata: {name: op, namespace: OPS}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: OPS}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: OPS}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: OPS}
subjects: [{kind: ServiceAccount, name: op, namespace: OPS}]
`

// fenced says whether a write was refused by a fence, and fails for every other error.
func fenced(err error) (bool, error) {
	switch {
	case err == nil || apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsForbidden(err) && strings.Contains(err.Error(), "the fence of this account"):
		return true, nil
	default:
		return false, err
	}
}

func expect(w *testbed.World, what string, want bool, write func() error) {
	w.Helper()
	w.Eventually(what, func() error {
		is, err := fenced(write())
		if err == nil && is != want {
			err = fmt.Errorf("fenced: %t", is)
		}

		return err
	})
}

func configMap(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// TestFence holds that an operator with a fence writes where the list says, and nobody else is concerned.
func TestFence(t *testing.T) {
	w := begin(t)
	ops, member, outside := w.Namespace("ops"), w.Namespace("member"), w.Namespace("outside")

	input := write(w, strings.ReplaceAll(mighty, "OPS", ops))

	out, errOut, code := ambit(w, "narrow", "-f", input, "--members", member, "--keep", "* *", "--fence")
	if code != 0 {
		w.Fatal(errOut)
	}

	kubectl(w, out, "apply", "-f", "-")
	settled(w, objectsOf(w, out))

	op := w.As("system:serviceaccount:"+ops+":op", "system:serviceaccounts", "system:serviceaccounts:"+ops, "system:authenticated")
	ctx, dry := w.Context(), client.DryRunAll
	create := func(obj client.Object) func() error {
		return func() error { return op.Create(ctx, obj.DeepCopyObject().(client.Object), dry) }
	}

	expect(w, "it writes in its member", false, create(configMap(member, "x")))
	expect(w, "it writes at home", false, create(configMap(ops, "x")))
	expect(w, "it writes nowhere else", true, create(configMap(outside, "x")))
	expect(w, "it makes no namespace", true, create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "of-" + ops}}))
	expect(w, "it deletes no collection elsewhere", true, func() error {
		return op.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(outside), dry)
	})
	expect(w, "it deletes no collection with its list", true, func() error {
		return op.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(ops), dry)
	})
	expect(w, "it does not change its list", true, func() error {
		return op.Patch(ctx, configMap(ops, "op-namespaces"), client.RawPatch("application/merge-patch+json",
			[]byte(`{"data":{"namespaces":"`+outside+`"}}`)), dry)
	})
	expect(w, "it makes no token elsewhere", true, func() error {
		return op.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
			Namespace: outside, Name: "default",
		}}, &authenticationv1.TokenRequest{})
	})

	if err := w.Client.Create(ctx, configMap(outside, "y"), dry); err != nil {
		t.Errorf("others are fenced in, too: %v", err)
	}

	if err := op.List(ctx, &corev1.SecretList{}); err != nil {
		t.Errorf("it may not read any more: %v", err)
	}
}

// fenceWithoutScope narrows an operator to a member, with a fence, and applies that without the scope, so that nobody keeps the
// list. It returns what was printed.
func fenceWithoutScope(w *testbed.World, vendor, member string) string {
	w.Helper()

	out, errOut, code := ambit(w, "narrow", "-f", write(w, vendor), "--members", member, "--keep", "* *", "--fence")
	if code != 0 {
		w.Fatal(errOut)
	}

	for document := range strings.SplitSeq(out, "---\n") {
		if !strings.Contains(document, "kind: NamespaceScope\n") {
			kubectl(w, document, "apply", "-f", "-")
		}
	}

	return out
}

// TestFenceOfAListWithoutNames holds that a list which names no namespace lets an account write nowhere, what has no namespace
// included, whatever the list looks like. Nobody keeps this one: there is no scope.
func TestFenceOfAListWithoutNames(t *testing.T) {
	w := begin(t)
	ops, member := w.Namespace("ops"), w.Namespace("member")

	fenceWithoutScope(w, strings.ReplaceAll(mighty, "OPS", ops), member)

	op := w.As("system:serviceaccount:"+ops+":op", "system:serviceaccounts", "system:serviceaccounts:"+ops, "system:authenticated")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "of-" + ops}}

	for _, list := range []string{member, "", member + ",", ",", ",,", "," + member} {
		kubectl(w, `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "op-namespaces", "namespace": "`+ops+`"},
			"data": {"namespaces": "`+list+`"}}`, "apply", "-f", "-")

		expect(w, fmt.Sprintf("with the list %q it writes in its member", list), !strings.Contains(list, member), func() error {
			return op.Create(w.Context(), configMap(member, "x"), client.DryRunAll)
		})
		expect(w, fmt.Sprintf("with the list %q it writes in the cluster", list), true, func() error {
			return op.Create(w.Context(), role.DeepCopy(), client.DryRunAll)
		})
	}
}
