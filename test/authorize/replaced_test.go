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
