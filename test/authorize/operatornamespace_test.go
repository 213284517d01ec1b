package authorize_test

import (
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// inOperatorNamespace is what an account must be able to do in its own namespace, and notAtHome a sample of the rest.
var (
	inOperatorNamespace = []string{
		"create configmaps namespace-scope", "patch configmaps namespace-scope", "delete configmaps namespace-scope",
		"patch deployments.apps x", "patch statefulsets.apps x", "patch daemonsets.apps x", "create pods/eviction x",
	}
	notInOperatorNamespace = []string{
		"create configmaps other", "patch configmaps other", "delete configmaps other",
		"get configmaps namespace-scope", "create deployments.apps",
		"delete pods x", "create roles.rbac.authorization.k8s.io", "list secrets", injectCSV,
	}
)

// injectCSV is what a scope with a csvInjector needs besides.
const injectCSV = "patch clusterserviceversions.operators.coreos.com x"

// checkHome holds what the account may do in the operator namespace.
func (h *house) checkOperatorNamespace(user string, allowed, refused []string) {
	h.Helper()

	h.settles(user, h.ops, allowed, true)
	h.settles(user, h.ops, refused, false)
}

func TestInOperatorNamespace(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{ServiceAccountName: "delegate"})

		delegate := account(h.ops, "delegate")
		authorize := []string{"authorize", h.ops, "--to", h.ops}

		for _, dry := range []string{"--dry-run=client", "--dry-run=server"} {
			if out := h.must(tool, "authorize", h.ops, "--to", h.ops, dry); !strings.Contains(out, "pods/eviction") {
				h.Errorf("%s shows what would be granted: %s", dry, out)
			}

			h.untouched(dry)
		}

		h.must(tool, authorize[0], authorize[1:]...)
		h.checkOperatorNamespace(delegate, inOperatorNamespace, notInOperatorNamespace)

		if got := h.members("namespacescope"); len(got) > 0 {
			h.Errorf("a scope's own namespace is a member anyway, but listed: %v", got)
		}

		before := h.granted()
		h.must(tool, authorize[0], authorize[1:]...)

		if after := h.granted(); after.roles[0].ResourceVersion != before.roles[0].ResourceVersion {
			h.Error("repeating changes nothing, but the role was written")
		}

		h.must(tool, "revoke", h.ops, "--to", h.ops, "--dry-run=server")
		h.checkOperatorNamespace(delegate, inOperatorNamespace, nil)
		h.must(tool, "revoke", h.ops, "--to", h.ops)
		h.checkOperatorNamespace(delegate, nil, append(inOperatorNamespace, notInOperatorNamespace...))

		if left := h.granted(); len(left.roles)+len(left.bindings) > 0 {
			h.Errorf("left behind: %+v", left)
		}
	})
}

// TestManual has a scope that names no account: what it needs in the operator namespace is granted along with its first
// member.
func TestManual(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{ManualManagement: true})

		ambit := account(h.ops, "ambit")

		for _, dry := range []string{"--dry-run=client", "--dry-run=server"} {
			if out := h.must(tool, "authorize", h.ns, "--to", h.ops, dry); !strings.Contains(out, "pods/eviction") {
				h.Errorf("%s shows what would be granted at home: %s", dry, out)
			}

			h.untouched(dry)
		}

		h.must(tool, "authorize", h.ns, "--to", h.ops)
		h.must(tool, "authorize", h.ns, "--to", h.ops) // By now the account is there, and its own.
		h.check(ambit, needed, beyond)
		h.checkOperatorNamespace(ambit, inOperatorNamespace, notInOperatorNamespace)

		if err := h.Get(h.Context(), client.ObjectKey{Namespace: h.ops, Name: "ambit"}, &corev1.ServiceAccount{}); err != nil {
			h.Errorf("the account is made: %v", err)
		}

		out := h.must(tool, "revoke", h.ns, "--to", h.ops)
		if !strings.Contains(out, "other members may need") || !strings.Contains(out, h.ops+" -to "+h.ops) &&
			!strings.Contains(out, "ambit revoke "+h.ops+" --to "+h.ops) || !strings.Contains(out, "-grant-only") {
			h.Errorf("it says what stays, and how to take that back, even after the scope: %s", out)
		}

		h.check(ambit, nil, needed)
		h.checkOperatorNamespace(ambit, inOperatorNamespace, nil)
		h.must(tool, "revoke", h.ops, "--to", h.ops, "--scope", "operator.ibm.com/namespacescope", "--grant-only")
		h.checkOperatorNamespace(ambit, nil, inOperatorNamespace)
	})
}

// TestInOperatorNamespaceWithInjection has scopes that inject: into workloads by the right that restarts them, into
// ClusterServiceVersions by one more, which goes with the injector, though not before what was injected is put back.
func TestInOperatorNamespaceWithInjection(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		nss := h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{
			ManualManagement: true, WorkloadInjector: &operatorv1.WorkloadInjector{},
		})
		ambit := account(h.ops, "ambit")
		authorize := func() { h.must(tool, "authorize", h.ops, "--to", h.ops) }

		authorize()
		h.checkOperatorNamespace(ambit, inOperatorNamespace, notInOperatorNamespace)

		h.change(nss, func() { nss.Spec.CSVInjector = &operatorv1.Injector{} })
		authorize()
		h.checkOperatorNamespace(ambit, append([]string{injectCSV}, inOperatorNamespace...), []string{
			"get clusterserviceversions.operators.coreos.com x", "create clusterserviceversions.operators.coreos.com",
			"delete clusterserviceversions.operators.coreos.com x",
			"patch validatingwebhookconfigurations.admissionregistration.k8s.io x",
		})
		h.settles(ambit, h.ns, []string{injectCSV}, false)

		nss.Status.PatchedCSVList = []string{"operator"}
		if err := h.Status().Update(h.Context(), nss); err != nil {
			h.Fatal(err)
		}

		h.change(nss, func() { nss.Spec.CSVInjector.Enable = new(false) })
		authorize()
		h.checkOperatorNamespace(ambit, []string{injectCSV}, nil)

		nss.Status.PatchedCSVList = nil
		if err := h.Status().Update(h.Context(), nss); err != nil {
			h.Fatal(err)
		}

		authorize()
		h.checkOperatorNamespace(ambit, inOperatorNamespace, notInOperatorNamespace)
	})
}

// change updates a scope as cluster-admin.
func (h *house) change(nss *operatorv1.NamespaceScope, edit func()) {
	h.Helper()
	edit()

	if err := h.Update(h.Context(), nss); err != nil {
		h.Fatal(err)
	}
}

// TestManualByOthers has an account that is somebody else's, and callers who may do something in one of the namespaces only.
func TestManualByOthers(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{ManualManagement: true})

		user := h.ns + "-owner"
		subject := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}
		everything := rule("*", "*", "*")
		inNamespace := metav1.ObjectMeta{Namespace: h.ns, Name: "owner"}
		h.make(
			&rbacv1.Role{ObjectMeta: inNamespace, Rules: []rbacv1.PolicyRule{everything}},
			&rbacv1.RoleBinding{
				ObjectMeta: inNamespace, Subjects: []rbacv1.Subject{subject},
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "owner"},
			},
			h.role("look", rule("*", "*", "get", "list"), rule("", "serviceaccounts", "create"),
				rule("operator.ibm.com", "namespacescopes", "patch")),
			h.bind("look", "Role", "look", subject),
		)
		h.settles(user, h.ops, []string{"list roles.rbac.authorization.k8s.io"}, true)
		h.settles(user, h.ns, []string{"create roles.rbac.authorization.k8s.io"}, true)

		h.refuses("who may grant nothing at home", tool, user, 1, []string{h.ops, "let somebody", "grant-only"},
			[]string{"authorize", h.ns, "--to", h.ops})
		h.untouched("who may grant nothing at home")

		r := h.run(tool, user, "authorize", h.ns, "--to", h.ops, "--grant-only")
		if r.code != 0 || !strings.Contains(r.out, "whoever may") || !strings.Contains(r.out, h.ops+" --to "+h.ops) &&
			!strings.Contains(r.out, h.ops+" -to "+h.ops) {
			h.Errorf("it says how to grant the rest: %+v", r)
		}

		h.check(account(h.ops, "ambit"), needed, beyond)
		h.checkOperatorNamespace(account(h.ops, "ambit"), nil, inOperatorNamespace)

		if err := h.Delete(h.Context(), h.account("ambit")); err != nil {
			h.Fatal(err)
		}

		h.make(h.account("ambit"))

		if out := h.must(tool, "authorize", h.ns, "--to", h.ops); !strings.Contains(out, "was not made by") {
			h.Errorf("it says that it leaves the account alone: %s", out)
		}

		h.checkOperatorNamespace(account(h.ops, "ambit"), nil, inOperatorNamespace)
		h.must(tool, "authorize", h.ops, "--to", h.ops)
		h.checkOperatorNamespace(account(h.ops, "ambit"), inOperatorNamespace, notInOperatorNamespace)
	})
}

// TestInOperatorNamespaceIsEnough writes in the operator namespace as the account that was granted to, in the way of the manager.
func TestInOperatorNamespaceIsEnough(t *testing.T) {
	t.Parallel()

	h := begin(t)
	h.make(h.account("operator"), h.deployment("operator", "operator", "projected"), h.pod("lonely", "operator"))
	h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{ManualManagement: true, ConfigmapName: "list"})
	h.must("command", "authorize", h.ops, "--to", h.ops)
	h.settles(account(h.ops, "ambit"), h.ops, []string{"patch configmaps list", "create pods/eviction x"}, true)

	ambit := h.as(account(h.ops, "ambit"))
	list := func(name string) *corev1.ConfigMap {
		return &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: h.meta(name), Data: map[string]string{"namespaces": "a,b"},
		}
	}
	apply := func(cm *corev1.ConfigMap) error {
		body, err := json.Marshal(cm)
		if err != nil {
			t.Fatal(err)
		}

		patch := client.RawPatch(types.ApplyPatchType, body)

		return ambit.Patch(t.Context(), cm, patch, client.FieldOwner("test"), client.ForceOwnership)
	}
	merge := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"template":{"metadata":{"annotations":{"a":"b"}}}}}`))

	for _, step := range []struct {
		what string
		err  error
	}{
		{"making the list", apply(list("list"))},
		{"writing it", apply(list("list"))},
		{"deleting it", ambit.Delete(t.Context(), list("list"))},
		{"restarting a workload", ambit.Patch(t.Context(), h.deployment("operator", "", ""), merge)},
		{"evicting a pod", ambit.SubResource("eviction").Create(t.Context(), h.pod("lonely", ""), &policyv1.Eviction{})},
	} {
		if step.err != nil {
			t.Errorf("%s: %v", step.what, step.err)
		}
	}

	h.make(list("other"))

	for what, err := range map[string]error{
		"another list":         apply(list("other")),
		"reading":              ambit.Get(t.Context(), client.ObjectKeyFromObject(list("other")), list("other")),
		"deleting a workload":  ambit.Delete(t.Context(), h.deployment("operator", "", "")),
		"deleting another one": ambit.Delete(t.Context(), list("other")),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s is refused, but: %v", what, err)
		}
	}
}
