package authorize_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// TestWhatIsMadeAgainKeepsItsFinalizers has an account let go of its grant, and make others under the same names, at the moment
// in which whoever takes the grant back takes the finalizers off it. What is no grant keeps its own.
func TestWhatIsMadeAgainKeepsItsFinalizers(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})

		ambit := account(h.ops, "ambit")

		h.must(tool, "authorize", h.ns, "--to", h.ops, "--grant-only")
		h.settles(ambit, h.ns, []string{"patch roles.rbac.authorization.k8s.io x"}, true)
		h.finalizeGrant(ambit, "example.com/keep")

		roles, bindings := h.grants()
		role, binding := h.role(roles[0].Name), h.bind(bindings[0].Name, "Role", roles[0].Name)
		again := map[string][2]client.Object{"roles": {&roles[0], role}, "rolebindings": {&bindings[0], binding}}

		h.through(func(w http.ResponseWriter, r *http.Request, server http.Handler) {
			for resource, objects := range again {
				patched := r.Method == http.MethodPatch && !r.URL.Query().Has("dryRun") &&
					strings.HasSuffix(r.URL.Path, "/"+resource+"/"+objects[0].GetName())

				if patched && objects[1].GetUID() == "" {
					h.replace(objects[0], objects[1])
				}
			}

			server.ServeHTTP(w, r)
		})
		h.must(tool, "revoke", h.ns, "--to", h.ops, "--grant-only")

		for _, objects := range again {
			made := objects[1]
			uid := made.GetUID()

			if err := h.Get(h.Context(), client.ObjectKeyFromObject(made), made); err != nil {
				h.Fatal(err)
			}

			if made.GetUID() != uid || !slices.Equal(made.GetFinalizers(), []string{"example.com/theirs"}) {
				h.Errorf("%T has the finalizers %q", made, made.GetFinalizers())
			}

			made.SetFinalizers(nil)

			if err := h.Update(h.Context(), made); err != nil {
				h.Error(err)
			}
		}
	})
}

// replace lets an object go that is being deleted, and makes another one in its place, with a finalizer.
func (h *house) replace(old, made client.Object) {
	gone := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := h.Patch(h.Context(), old, gone); err != nil {
		h.Error(err)
	}

	meta := metav1.ObjectMeta{Namespace: h.ns, Name: old.GetName(), Finalizers: []string{"example.com/theirs"}}

	switch made := made.(type) {
	case *rbacv1.Role:
		made.ObjectMeta = meta
	case *rbacv1.RoleBinding:
		made.ObjectMeta = meta
	}

	if err := h.Create(h.Context(), made); err != nil {
		h.Error(err)
	}
}

// TestGrantThatIsReplacedAllTheTime has somebody put another binding in the place of that of a grant just before it is deleted,
// as an account can that has a binding of its own beside it. The Role goes all the same, without which no binding gives anything.
func TestGrantThatIsReplacedAllTheTime(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})
		h.must(tool, "authorize", h.ns, "--to", h.ops, "--grant-only")

		_, bindings := h.grants()

		h.through(func(w http.ResponseWriter, r *http.Request, server http.Handler) {
			if r.Method == http.MethodDelete && !r.URL.Query().Has("dryRun") && strings.HasSuffix(r.URL.Path, "/"+bindings[0].Name) &&
				strings.Contains(r.URL.Path, "/rolebindings/") {
				other := bindings[0].DeepCopy()
				other.ObjectMeta = metav1.ObjectMeta{
					Namespace: h.ns, Name: other.Name, Labels: other.Labels, Annotations: other.Annotations,
				}

				if err := h.Delete(r.Context(), bindings[0].DeepCopy()); err != nil {
					h.Error(err)
				}

				if err := h.Create(r.Context(), other); err != nil {
					h.Error(err)
				}
			}

			server.ServeHTTP(w, r)
		})

		_ = h.run(tool, "", "revoke", h.ns, "--to", h.ops, "--grant-only")

		if roles, _ := h.grants(); len(roles) > 0 {
			h.Errorf("the Role %s stays, and gives what it gave", roles[0].Name)
		}

		h.settles(account(h.ops, "ambit"), h.ns, []string{"list secrets"}, false)
	})
}
