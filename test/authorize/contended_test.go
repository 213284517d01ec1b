package authorize_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// TestScopeThatIsWrittenAllTheTime has somebody write the scope before each write of its members, as whoever may write scopes can
// do without end. Whoever takes a grant back gets it back all the same, and learns that the namespace is still a member.
func TestScopeThatIsWrittenAllTheTime(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})
		h.must(tool, "authorize", h.ns, "--to", h.ops)

		h.contend(1 << 30)

		r := h.run(tool, "", "revoke", h.ns, "--to", h.ops)
		if r.code != 1 || !strings.Contains(r.err, "the grant is taken back, but ") || !strings.Contains(r.err, "still a member") {
			h.Errorf("exit %d: %s%s", r.code, r.out, r.err)
		}

		if roles, bindings := h.grants(); len(roles)+len(bindings) > 0 {
			h.Errorf("the grant stays: %v %v", roles, bindings)
		}
	})
}

// TestManyAuthorizeAtOnce has others change the scope a few times at the wrong moment, as when the owners of dozens of namespaces
// authorize them together: none of them has to run the command again.
func TestManyAuthorizeAtOnce(t *testing.T) {
	t.Parallel()

	h := begin(t)
	h.makeOperator()
	h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})
	h.contend(10)

	h.must("command", "authorize", h.ns, "--to", h.ops)

	if got := h.members("namespacescope"); !slices.Contains(got, h.ns) {
		h.Errorf("the members are %v", got)
	}
}

// contend has somebody else write the scope just before each write of a tool, as often as is said.
func (h *house) contend(times int64) {
	h.Helper()

	var writes atomic.Int64

	h.through(func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		if r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/namespacescopes/") {
			if n := writes.Add(1); n <= times {
				nss := &operatorv1.NamespaceScope{ObjectMeta: h.meta("namespacescope")}
				body := []byte(`{"metadata":{"annotations":{"written":"` + strconv.FormatInt(n, 10) + `"}}}`)

				if err := h.Patch(r.Context(), nss, client.RawPatch(types.MergePatchType, body)); err != nil {
					h.Error(err)
				}
			}
		}

		server.ServeHTTP(w, r)
	})
}
