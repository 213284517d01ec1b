package authorize_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// needed is what an account must be able to do in the member to project makeOperator; beyond is a sample of the rest.
var (
	needed = []string{
		"create roles.rbac.authorization.k8s.io",
		"delete rolebindings.rbac.authorization.k8s.io x", "watch rolebindings.rbac.authorization.k8s.io",
		"list secrets", "delete certificates.example.com x", "bind clusterroles.rbac.authorization.k8s.io view",
	}
	beyond = []string{
		"delete secrets x", "create pods", "get configmaps x", "escalate roles.rbac.authorization.k8s.io x",
		"bind roles.rbac.authorization.k8s.io x", "bind clusterroles.rbac.authorization.k8s.io cluster-admin",
		"deletecollection roles.rbac.authorization.k8s.io",
	}
)

// check holds what the account may do in the member, and that it may do nothing of it elsewhere.
func (h *house) check(user string, allowed, refused []string) {
	h.Helper()

	h.settles(user, h.ns, allowed, true)
	h.settles(user, h.ns, refused, false)

	for _, what := range allowed {
		if h.may(user, h.ops, what) || h.may(user, "", what) {
			h.Errorf("%s may %s outside of the namespace", user, what)
		}
	}
}

func TestTheLeast(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})

		ambit := account(h.ops, "ambit")
		h.check(ambit, nil, append(needed, beyond...))

		out := h.must(tool, "authorize", h.ns, "--to", h.ops)
		for _, word := range []string{"kind: Role\n", "kind: RoleBinding\n", "certificates", h.ns, "view"} {
			if !strings.Contains(out, word) {
				h.Errorf("what is granted is shown; %q is missing in\n%s", word, out)
			}
		}

		h.check(ambit, needed, beyond)

		if got := h.members("namespacescope"); !slices.Equal(got, []string{h.ns}) {
			h.Errorf("the members are %v", got)
		}

		before, bindings := h.grants()
		if len(before) != 1 || len(bindings) != 1 {
			h.Fatalf("one role and one binding are granted, not %d and %d", len(before), len(bindings))
		}

		h.must(tool, "authorize", h.ns, "--to", h.ops)

		if after, _ := h.grants(); after[0].ResourceVersion != before[0].ResourceVersion {
			h.Error("repeating changes nothing, but the role was written")
		}

		h.must(tool, "revoke", h.ns, "--to", h.ops)
		h.check(ambit, nil, append(needed, beyond...))

		if roles, bindings := h.grants(); len(roles)+len(bindings) > 0 || len(h.members("namespacescope")) > 0 {
			h.Errorf("left behind: %v %v %v", roles, bindings, h.members("namespacescope"))
		}

		h.must(tool, "revoke", h.ns, "--to", h.ops)
	})
}

// TestTheLeastIsEnough writes what the scope projects as the account that was granted to. The API server lets it, and
// refuses whatever goes beyond.
func TestTheLeastIsEnough(t *testing.T) {
	t.Parallel()

	h := begin(t)
	h.makeZoo()
	nss := h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{ServiceAccountMembers: []string{"listed"}})
	h.must("command", "authorize", h.ns, "--to", h.ops, "--grant-only")
	h.settles(account(h.ops, "ambit"), h.ns, []string{"create roles.rbac.authorization.k8s.io"}, true)

	ambit := h.as(account(h.ops, "ambit"))
	names := map[string]string{}

	for _, c := range h.plan(compile.NamespaceScope(nss)).Copies {
		// Without the marks, and with other names: a manager that runs beside would see to objects of its own.
		meta := metav1.ObjectMeta{Namespace: h.ns, Name: "test-" + c.Name}
		obj := client.Object(&rbacv1.Role{ObjectMeta: meta, Rules: c.Rules})
		names[c.Name] = meta.Name

		if c.Kind == "RoleBinding" {
			ref := c.RoleRef
			if ref.Kind == "Role" {
				ref.Name = names[ref.Name]
			}

			obj = &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: c.Subjects}
		}

		if err := ambit.Create(t.Context(), obj); err != nil {
			t.Errorf("%s %s: %v", c.Kind, c.Name, err)
		}

		if err := ambit.Delete(t.Context(), obj); err != nil {
			t.Errorf("deleting %s %s: %v", c.Kind, c.Name, err)
		}

		obj.SetResourceVersion("")

		if err := ambit.Create(t.Context(), obj); err != nil {
			t.Errorf("%s %s: %v", c.Kind, c.Name, err)
		}
	}

	if len(names) < 10 {
		t.Errorf("the scope projects only %d objects, which is not what this test is about", len(names))
	}

	more := metav1.ObjectMeta{Namespace: h.ns, Name: "more"}
	for reason, obj := range map[string]client.Object{
		"a rule that no source has": &rbacv1.Role{ObjectMeta: more, Rules: []rbacv1.PolicyRule{rule("", "secrets", "delete")}},
		"a rule of an operator outside of the scope": &rbacv1.Role{
			ObjectMeta: more, Rules: []rbacv1.PolicyRule{rule("", "endpoints", "get")},
		},
		"a ClusterRole that is not projected": &rbacv1.RoleBinding{
			ObjectMeta: more, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		},
		"what is no RBAC": &corev1.ConfigMap{ObjectMeta: more},
	} {
		if err := ambit.Create(t.Context(), obj); !apierrors.IsForbidden(err) {
			t.Errorf("%s is refused, but: %v", reason, err)
		}
	}
}

func TestAll(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.must(tool, "authorize", h.ns, "--to", h.ops, "--all", "--grant-only")
		h.check(account(h.ops, "ambit"), []string{
			"create pods", "deletecollection secrets", "get certificates.example.com x",
			"escalate roles.rbac.authorization.k8s.io x", "bind roles.rbac.authorization.k8s.io x",
		}, []string{"impersonate serviceaccounts x", "bind clusterroles.rbac.authorization.k8s.io view"})

		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})
		h.must(tool, "authorize", h.ns, "--to", h.ops, "--all")

		if roles, _ := h.grants(); len(roles) != 2 {
			h.Errorf("there is a grant without and one for the scope, not %d", len(roles))
		}

		h.must(tool, "revoke", h.ns, "--to", h.ops)
		h.check(account(h.ops, "ambit"), nil, []string{"create pods", "get roles.rbac.authorization.k8s.io"})

		if roles, bindings := h.grants(); len(roles)+len(bindings) > 0 {
			h.Errorf("left behind: %v %v", roles, bindings)
		}
	})
}

func (h *house) plan(s scope.Scope) *plan.ScopePlan {
	h.Helper()

	f, err := reading.ReadNamespace(h.Context(), h.Client, h.ops)
	if err != nil {
		h.Fatal(err)
	}

	p, err := reading.PlanOne(h.Context(), h.Client, f, &s)
	if err != nil {
		h.Fatal(err)
	}

	return p
}
