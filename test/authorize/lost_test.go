package authorize_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

// TestLostAnswer has the connection break after the grant was written. Each tool says to run it again, which completes it.
func TestLostAnswer(t *testing.T) {
	t.Parallel()

	withEachTool(t, func(h *house, tool string) {
		h.makeOperator()
		h.makeScope("namespacescope", operatorv1.NamespaceScopeSpec{})

		var lost atomic.Bool

		h.through(func(w http.ResponseWriter, r *http.Request, server http.Handler) {
			isRole := r.Method == http.MethodPatch && strings.Contains(r.URL.Path, "/roles/")
			if isRole && !r.URL.Query().Has("dryRun") && !lost.Swap(true) {
				server.ServeHTTP(httptest.NewRecorder(), r)
				panic(http.ErrAbortHandler)
			}

			server.ServeHTTP(w, r)
		})

		r := h.run(tool, "", "authorize", h.ns, "--to", h.ops)
		if r.code != 1 || !strings.Contains(r.err, "; run this again") && !strings.Contains(r.err, ": run this again") {
			h.Errorf("exit %d: %s", r.code, r.err)
		}

		h.must(tool, "authorize", h.ns, "--to", h.ops)
	})
}
