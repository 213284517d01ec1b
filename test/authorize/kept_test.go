package authorize_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/grant"
)

// TestWhatAnAccountKeepsIsTold has an account that uses its grant to keep what it was granted: it takes the labels off the
// grant, by which the tools know it, and binds itself, all accounts of its namespace, and all of the cluster, to a role of its
// own. Whoever takes the grant back learns of each binding that stays, and how to remove it, and is not told that nothing is
// authorized any more.
func TestWhatAnAccountKeepsIsTold(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})

		ambit := account(h.ops, "ambit")
		granted := []string{"list secrets", "create rolebindings.rbac.authorization.k8s.io"}

		h.must(tool, "authorize", h.ns, "--to", h.ops, "--grant-only")
		h.settles(ambit, h.ns, granted, true)
		h.keep(h.as(ambit))

		hidden := "ambit-authorized-from-" + h.ops + ".namespacescope"
		want := []string{hidden, "kept", "everybody", "anybody"}

		if tool == "command" {
			want = append(want, "'$(touch x)'", "'~*'")
		}

		out := h.must(tool, "revoke", h.ns, "--to", h.ops, "--grant-only")
		h.tells("the labels are gone", out, want...)
		h.settles(ambit, h.ns, granted, true)

		if strings.Contains(out, "nothing of this is authorized") || strings.Contains(out, "stranger") ||
			strings.Contains(out, "-- $(") || strings.Contains(out, "-- ~") || strings.Contains(out, `-- "`) ||
			!strings.Contains(out, "$(touch x)") {
			h.Errorf("what is told is not so: %s", out)
		}

		for _, name := range []string{hidden, "kept", "everybody", "anybody", "$(touch x)", "~*"} {
			b := h.bind(name, "", "")
			b.Namespace = h.ns

			if err := h.Delete(h.Context(), b); err != nil {
				h.Fatal(err)
			}
		}

		out = h.must(tool, "revoke", h.ns, "--to", h.ops, "--grant-only")
		if !strings.Contains(out, "nothing of this is authorized") {
			h.Errorf("nothing stays, but: %s", out)
		}

		h.settles(ambit, h.ns, granted, false)
	})
}

// TestWhatOnlyClaimsToGoIsTold has an account bind itself by a RoleBinding that names its grant as owner in a way which garbage
// collection cannot follow, and so never removes, and by one that looks like the binding of a grant for another scope and is its
// own owner. Whoever takes the grant back learns that both stay, and nothing of the binding of a real grant for another scope,
// which was named before.
func TestWhatOnlyClaimsToGoIsTold(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})
		h.makeScope("other", operatorv1.NamespaceScopeSpec{})

		ambit := account(h.ops, "ambit")

		for scope, namespace := range map[string]string{"namespacescope": h.ops, "other": h.ns} {
			h.must(tool, "authorize", namespace, "--to", h.ops, "--scope", scope, "--grant-only")
		}

		h.must(tool, "authorize", h.ns, "--to", h.ops, "--scope", "namespacescope", "--grant-only")
		h.settles(ambit, h.ns, []string{"create rolebindings.rbac.authorization.k8s.io"}, true)

		roles, _ := h.grants()
		roles = slices.DeleteFunc(roles, func(r rbacv1.Role) bool { return strings.HasSuffix(r.Name, ".other") })
		own := h.role("kept", roles[0].Rules...)

		b := h.bind("kept", "Role", "kept", h.subject("ambit"))
		b.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "example.com/v1", Kind: "Role", Name: roles[0].Name, UID: roles[0].UID},
		}

		like := h.bind("like", "Role", "kept", h.subject("ambit"))
		like.Labels = map[string]string{"app.kubernetes.io/managed-by": grant.ManagedBy, grant.LabelTo: h.ops}
		like.Annotations = map[string]string{grant.AnnotationScope: "other"}

		h.makeInMember(h.as(ambit), own, b, like)

		patch := client.MergeFrom(like.DeepCopy())
		like.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "RoleBinding", Name: like.Name, UID: like.UID},
		}

		if err := h.as(ambit).Patch(h.Context(), like, patch); err != nil {
			h.Fatal(err)
		}

		out := h.must(tool, "revoke", h.ns, "--to", h.ops, "--scope", "namespacescope", "--grant-only")
		h.tells("its owner is none", out, "kept", "like")

		if strings.Count(out, "kubectl delete rolebinding") != 2 {
			h.Errorf("more is told than stays unasked: %s", out)
		}

		h.settles(ambit, h.ns, []string{"list secrets"}, true)
	})
}

// TestWhatALeftoverDoesNotHide has an account mark a Role as one that its scope projected, which nobody takes away. Whoever takes
// the grant back is told of that, and all the same of the binding that the account made for itself.
func TestWhatALeftoverDoesNotHide(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})
		h.must(tool, "authorize", h.ns, "--to", h.ops)

		left, kept := h.role("left"), h.bind("kept", "Role", "left", h.subject("ambit"))
		left.Annotations = map[string]string{"ambit.dev/owner": "NamespaceScope/" + h.ops + "/namespacescope"}
		h.makeInMember(h.Client, left, kept)

		r := h.run(tool, "", "revoke", h.ns, "--to", h.ops)
		if r.code != 1 || !strings.Contains(r.err, "the grant is taken back, but ") || strings.Contains(r.out, "Done") {
			h.Errorf("what is left is no failure: %+v", r)
		}

		h.tells("something is left", r.out, "kept")
	})
}

// TestFinalizersOnAGrant has an account put a finalizer on its own grant, which then outlives its deletion and goes on
// giving what it gave. Whoever takes it back is not kept waiting, and nothing stays.
func TestFinalizersOnAGrant(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})

		ambit := account(h.ops, "ambit")

		h.must(tool, "authorize", h.ns, "--to", h.ops, "--grant-only")
		h.settles(ambit, h.ns, []string{"list secrets", "patch rolebindings.rbac.authorization.k8s.io x"}, true)

		h.finalizeGrant(ambit, "example.com/keep")

		h.must(tool, "revoke", h.ns, "--to", h.ops, "--grant-only")
		h.settles(ambit, h.ns, []string{"list secrets"}, false)

		if roles, bindings := h.grants(); len(roles)+len(bindings) > 0 {
			h.Errorf("a finalizer keeps %v %v", roles, bindings)
		}
	})
}

// finalizeGrant has an account put a finalizer on the grant that it holds.
func (h *house) finalizeGrant(as, finalizer string) {
	h.Helper()

	roles, bindings := h.grants()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["`+finalizer+`"]}}`))

	for _, obj := range []client.Object{&roles[0], &bindings[0]} {
		if err := h.as(as).Patch(h.Context(), obj, patch); err != nil {
			h.Fatal(err)
		}
	}
}

// TestWhatGoesWithAGrantIsNotOrphaned has an account put the finalizer "orphan" on its own grant: garbage collection takes the
// grant off the owners of what belongs to it then, unless whoever deletes the grant says otherwise. What goes with a grant is not
// told, and goes.
func TestWhatGoesWithAGrantIsNotOrphaned(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})

		ambit := account(h.ops, "ambit")

		h.must(tool, "authorize", h.ns, "--to", h.ops, "--grant-only")
		h.settles(ambit, h.ns, []string{"create rolebindings.rbac.authorization.k8s.io"}, true)

		roles, _ := h.grants()
		own := h.role("kept", roles[0].Rules...)

		b := h.bind("kept", "Role", "kept", h.subject("ambit"))
		b.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "Role", Name: roles[0].Name, UID: roles[0].UID},
		}

		h.makeInMember(h.as(ambit), own, b)

		h.finalizeGrant(ambit, metav1.FinalizerOrphanDependents)

		h.must(tool, "revoke", h.ns, "--to", h.ops, "--grant-only")
		h.settles(ambit, h.ns, []string{"list secrets"}, false)
	})
}

// TestRevokeWhereANamespaceGoes has an account keep its grant, and so the whole namespace, by a finalizer: whoever takes it back
// is not told to wait for that. What a namespace that is gone was granted is taken back as well, before somebody makes it again.
func TestRevokeWhereANamespaceGoes(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})

		ambit := account(h.ops, "ambit")

		h.must(tool, "authorize", h.ns, "--to", h.ops)
		h.settles(ambit, h.ns, []string{"list secrets"}, true)

		orphan := h.role("orphan")
		orphan.Labels = map[string]string{"app.kubernetes.io/managed-by": grant.ManagedBy, grant.LabelTo: "nowhere"}
		h.makeInMember(h.Client, orphan)
		h.refuses("grants to it outlive it", tool, "", 1, []string{"-grant-only"}, []string{"revoke", h.ns, "--to", "nowhere"})
		h.must(tool, "revoke", h.ns, "--to", "nowhere", "--grant-only")

		if err := h.Get(h.Context(), client.ObjectKeyFromObject(orphan), orphan); !apierrors.IsNotFound(err) {
			h.Errorf("what was granted to a namespace that is gone: %v", err)
		}

		_, bindings := h.grants()
		held := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["example.com/keep"]}}`))

		if err := h.as(ambit).Patch(h.Context(), &bindings[0], held); err != nil {
			h.Fatal(err)
		}

		if err := h.Delete(h.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: h.ns}}); err != nil {
			h.Fatal(err)
		}

		h.must(tool, "revoke", h.ns, "--to", h.ops)
		h.settles(ambit, h.ns, []string{"list secrets"}, false)

		if members := h.members("namespacescope"); len(members) > 0 {
			h.Errorf("members are %v", members)
		}

		h.refuses("nothing is granted there", tool, "", 1, []string{h.ns}, []string{"authorize", h.ns, "--to", h.ops})
	})
}

// keep does, as an account, what lets it keep what it was granted in ns.
func (h *house) keep(as client.Client) {
	h.Helper()

	roles, bindings := h.grants()
	unlabelled := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":null,"annotations":null}}`))

	own := h.role("kept", roles[0].Rules...)
	all := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + h.ops}
	stranger := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: account(h.ops+"-2", "ambit")}
	every, known := all, all
	every.Name, known.Name = "system:serviceaccounts", "system:authenticated"

	h.makeInMember(as, own,
		h.bind("kept", "Role", "kept", h.subject("ambit")), h.bind("$(touch x)", "Role", "kept", all),
		h.bind("~*", "Role", "kept", all), h.bind("everybody", "Role", "kept", every), h.bind("anybody", "Role", "kept", known),
		h.bind("stranger", "Role", "kept", stranger),
	)

	for _, obj := range []client.Object{&roles[0], &bindings[0]} {
		if err := as.Patch(h.Context(), obj, unlabelled); err != nil {
			h.Fatal(err)
		}
	}
}

// tells fails unless each binding is named together with the command that removes it.
func (h *house) tells(reason, out string, names ...string) {
	h.Helper()

	for _, name := range names {
		if command := "kubectl delete rolebinding -n " + h.ns + " -- " + name; !strings.Contains(out, command) {
			h.Errorf("%s: %q is missing in\n%s", reason, command, out)
		}
	}
}
