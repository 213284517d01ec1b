package reconcile_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/transport"
)

// writes are the writes of one call of Reconcile that the API server did not refuse, in the order in which it answered, such as
// "create roles a/copy".
type writes struct {
	mu      sync.Mutex
	all     []string
	refused []string
	// as are those of all with who made them: "system:serviceaccount:a:b: create roles a/copy".
	as []string
	// refuses says with which status a write, or a read, is refused, 0 for none; nil when all come through.
	refuses func(what string) int
	// loses says whether the answer to a request that was carried out is lost; nil when all arrive.
	loses func(what string) bool
}

type writesKey struct{}

// noteWrites notes each write with the call of Reconcile that it is made for, which the context of the request knows.
func noteWrites(next http.RoundTripper) http.RoundTripper { return &noting{next} }

type noting struct{ next http.RoundTripper }

// RoundTrip notes a request that writes, after it was answered.
func (n *noting) RoundTrip(req *http.Request) (*http.Response, error) {
	w, called := req.Context().Value(writesKey{}).(*writes)
	what := wordsOf(req)

	if called && what != "" && w.refuses != nil {
		if status := w.refuses(what); status != 0 {
			return refusal(req, status), nil
		}
	}

	response, err := n.next.RoundTrip(req)
	if called && what != "" && req.Method != http.MethodGet && !strings.HasPrefix(what, "ask ") && err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()

		if response.StatusCode < http.StatusBadRequest {
			w.all = append(w.all, what)
			w.as = append(w.as, req.Header.Get(transport.ImpersonateUserHeader)+": "+what)
		} else {
			w.refused = append(w.refused, fmt.Sprintf("%s: %d", what, response.StatusCode))
		}
	}

	if called && err == nil && what != "" && w.loses != nil && w.loses(what) {
		_ = response.Body.Close()

		return refusal(req, http.StatusInternalServerError), nil
	}

	return response, err
}

// refusal is how the API server answers to a request that it, or the storage behind it, does not take.
func refusal(req *http.Request, status int) *http.Response {
	reason := map[int]metav1.StatusReason{
		http.StatusConflict: metav1.StatusReasonConflict, http.StatusForbidden: metav1.StatusReasonForbidden,
	}[status]
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","code":%d,"reason":%q,"message":"refused"}`,
		status, reason)

	return &http.Response{
		StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Request: req,
		Body: io.NopCloser(strings.NewReader(body)),
	}
}

func withWrites(ctx context.Context) (context.Context, *writes) {
	w := &writes{}

	return context.WithValue(ctx, writesKey{}, w), w
}

// wordsOf says what a request writes or reads, or what kind of question it asks, such as "ask selfsubjectrulesreviews"; nothing
// when it tries something, or asks what there is.
func wordsOf(req *http.Request) string {
	verb := map[string]string{
		http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
		http.MethodGet: "get",
	}[req.Method]

	// /api/v1/… or /apis/GROUP/VERSION/…
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	if verb == "" || len(parts) < 3 || parts[1] == "events.k8s.io" || req.URL.Query().Get("dryRun") != "" {
		return ""
	}

	if parts[1] == "authentication.k8s.io" || parts[1] == "authorization.k8s.io" {
		verb = "ask"
	}

	if parts[0] == "api" {
		parts = parts[2:]
	} else {
		parts = parts[3:]
	}

	if len(parts) == 0 {
		return "" // It asks which resources there are.
	}

	namespace := ""
	if parts[0] == "namespaces" && len(parts) > 2 {
		namespace, parts = parts[1]+"/", parts[2:]
	}

	name := strings.Join(parts[1:], "/")

	return strings.TrimSpace(fmt.Sprintf("%s %s %s%s", verb, parts[0], namespace, name))
}
