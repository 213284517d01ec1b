package waiting_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/waiting"
)

const (
	patience = 300 * time.Millisecond

	kinds = "/apis"
	list  = "/apis/example.com/v1/namespaces/a/widgets"
	roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
)

var served = map[string]string{
	kinds: `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":"example.com"},
		"versions":[{"version":"v1","resources":[{"resource":"widgets","scope":"Namespaced","singularResource":"widget",
		"responseKind":{"group":"example.com","version":"v1","kind":"Widget"},"verbs":["list","patch"]}]}]}]}`,
	list: `{"items":[{"metadata":{"name":"one","deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["example.com/f"]}}]}`,
	roles: `{"items":[{"metadata":{"name":"widgets"},
		"rules":[{"apiGroups":["example.com"],"resources":["widgets"],"verbs":["list","patch"]}]}]}`,
}

// apiServer answers one path with a status, or too late where that is 0, and the others as they are.
func apiServer(t *testing.T, path string, status int) *rest.Config {
	t.Helper()

	ends := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == path && status == 0:
			select {
			case <-ends:
			case <-r.Context().Done():
			}
		case r.URL.Path == path && status != http.StatusOK:
			http.Error(w, "it fails", status)
		case r.URL.Path == kinds:
			w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
			fmt.Fprint(w, served[kinds])
		case served[r.URL.Path] == "":
			http.NotFound(w, r)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, served[r.URL.Path])
		}
	}))

	t.Cleanup(s.Close)
	t.Cleanup(func() { close(ends) })

	return &rest.Config{Host: s.URL}
}

// TestOnlyAnAnswerIsOne: what nobody may see is unknown, once and for all; an API server that is late, or fails, gave no answer.
// Why not is said, and it is asked again. An operator that has work left does not lose its permissions because of it.
func TestOnlyAnAnswerIsOne(t *testing.T) {
	t.Parallel()

	const (
		none = "no answer: "
		one  = "widgets.example.com one"
	)

	for _, path := range []string{kinds, list, roles} {
		unseen := map[string]string{
			list: "widgets.example.com cannot be listed", roles: "what ClusterRole widgets allows cannot be read",
		}

		of := map[string]string{list: "listing widgets.example.com: "}

		for status, want := range map[int]string{
			http.StatusOK:                  one,
			0:                              none + of[path] + "the API server does not answer in time",
			http.StatusInternalServerError: none + of[path] + "the API server fails with code 500",
			http.StatusServiceUnavailable:  none + of[path] + "the API server fails with code 503",
			http.StatusTooManyRequests:     none + of[path] + "the API server is overloaded",
			http.StatusForbidden:           unseen[path],
		} {
			if want == "" {
				continue // Everybody may know which kinds there are.
			}

			t.Run(fmt.Sprint(path, " ", status), func(t *testing.T) {
				t.Parallel()

				finder := waiting.New(apiServer(t, path, status))
				if finder.Patience = time.Minute; status == 0 {
					finder.Patience = patience
				}

				if got := said(finder.Find(t.Context(), []waiting.Question{question()})); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

// TestKindsOfAServerThatIsDown: what an aggregated API server has is unknown while it is down, to those who may work on it.
func TestKindsOfAServerThatIsDown(t *testing.T) {
	t.Parallel()

	down := strings.Replace(served[kinds], `"items":[`, `"items":[`+
		`{"metadata":{"name":"example.net"},"versions":[{"version":"v1","freshness":"Stale"}]},`+
		`{"metadata":{"name":"apps"},"versions":[{"version":"v1","freshness":"Stale"}]},`, 1)

	for group, want := range map[string]string{
		"example.net": "the server of example.net does not answer", "example.org": "", "apps": "",
	} {
		finder := waiting.New(&rest.Config{Host: "http://example.com", Transport: roundTripper(
			func(r *http.Request) (*http.Response, error) {
				w := httptest.NewRecorder()
				if r.URL.Path == kinds {
					w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
					fmt.Fprint(w, down)
				} else {
					http.NotFound(w, r)
				}

				return w.Result(), nil
			})})

		q := question()
		q.Grants = []plan.Grant{{Accounts: []string{"op"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{group}, Resources: []string{"*"}, Verbs: []string{"*"}},
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get"}},
		}}}

		if got := said(finder.Find(t.Context(), []waiting.Question{q})); got != want {
			t.Errorf("for %s: got %q, want %q", group, got, want)
		}
	}
}

func question() waiting.Question {
	return waiting.Question{
		Namespace: "a", Grants: []plan.Grant{{Accounts: []string{"op"}, ClusterRole: "widgets"}},
		As: func(string) string { return "" },
	}
}

// TestWhatIsLateIsNotAskedForEachNamespace: a look ends in time however many namespaces it is about.
func TestWhatIsLateIsNotAskedForEachNamespace(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		asked := 0
		finder := waiting.New(&rest.Config{Host: "http://example.com", Transport: roundTripper(
			func(r *http.Request) (*http.Response, error) {
				w := httptest.NewRecorder()

				switch r.URL.Path {
				case kinds:
					asked++

					<-r.Context().Done()

					return nil, r.Context().Err()
				case roles:
					fmt.Fprint(w, served[roles])
				default:
					http.NotFound(w, r)
				}

				return w.Result(), nil
			})})

		began := time.Now()

		answers, unanswered := finder.Find(t.Context(), slices.Repeat([]waiting.Question{question()}, 10))
		if took := time.Since(began); len(answers) > 0 || len(unanswered) != 10 || asked != 1 || took != finder.Patience {
			t.Errorf("%d answers, and %d requests for the kinds, in %s", len(answers), asked, took)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func said(answers map[int]facts.Waiting, unanswered map[int]string) string {
	found, answered := answers[0]
	if !answered {
		return "no answer: " + unanswered[0]
	}

	return strings.Join(append(found.Objects, found.Unseen), "")
}
