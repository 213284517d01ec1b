package page

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/printable"
)

const (
	// answerTimeout is how long an answer may take.
	answerTimeout = time.Minute
	// heartbeat is how often a quiet stream sends something, so that both ends know that the other is there.
	heartbeat = 15 * time.Second
	// maxWord is how long a part of a question may be.
	maxWord = 512
)

var errBusy = errors.New("too much is being asked at once; try again in a moment")

// api answers a question in JSON, and errors with {"error": …}.
func (s *Server) api(w http.ResponseWriter, r *http.Request, name string) {
	if name == "live" {
		s.stream(w, r)

		return
	}

	ctx, cancel := context.WithTimeout(r.Context(), answerTimeout)
	defer cancel()

	data, err := s.answer(ctx, name, r.URL.Query())
	if err == nil {
		var text []byte
		if text, err = printable.CompactJSON(data); err == nil {
			send(w, http.StatusOK, text)

			return
		}
	}

	text, _ := printable.CompactJSON(map[string]string{"error": inWords(err)}) // A string can be encoded.
	send(w, statusOf(err), text)
}

// inWords says what went wrong, and what to do where the API server does not know any more who asks: credentials are read when
// the command begins.
func inWords(err error) string {
	if apierrors.IsUnauthorized(err) {
		err = fmt.Errorf("%w (the token or certificate given to the API server has expired; get another one, "+
			"and start ambit serve again)", err)
	}

	return printable.Text(err.Error())
}

func send(w http.ResponseWriter, status int, text []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) //nolint:gosec // G705: nosniff and the type keep it from being anything but data.
}

func statusOf(err error) int {
	switch {
	case errors.Is(err, errNothing), errors.Is(err, ErrNotThere):
		return http.StatusNotFound
	case errors.Is(err, ErrQuestion):
		return http.StatusBadRequest
	case errors.Is(err, ErrMayNot):
		return http.StatusForbidden
	case errors.Is(err, errBusy):
		return http.StatusServiceUnavailable
	default:
		return http.StatusBadGateway
	}
}

var errNothing = errors.New("there is no such answer")

func (s *Server) answer(ctx context.Context, name string, asked url.Values) (any, error) {
	switch name {
	case "overview":
		return s.live.first(ctx), nil
	case "changes":
		return s.past(asked.Get("after"))
	case "cell":
		return s.cell(ctx, asked)
	case "plan":
		return s.plan(asked)
	}

	ask, err := s.question(name, asked)
	if err != nil {
		return nil, err
	}

	select {
	case s.questions <- struct{}{}:
		defer func() { <-s.questions }()
	case <-ctx.Done():
		return nil, errBusy
	}

	return ask(ctx)
}

// question reads what is asked of the cluster. What cannot be a name is refused before the cluster is asked.
func (s *Server) question(name string, asked url.Values) (func(context.Context) (any, error), error) {
	namespace := asked.Get("namespace")

	switch name {
	case "operators":
		return func(ctx context.Context) (any, error) { return s.source.Operators(ctx, namespace) }, checkNamespace(namespace)
	case "why":
		q := &WhyQuestion{
			asked.Get("account"), namespace, asked.Get("verb"), asked.Get("resource"), asked.Get("name"),
		}

		return func(ctx context.Context) (any, error) { return s.source.Why(ctx, q) }, q.check()
	case "who-can":
		q := &WhoQuestion{asked.Get("verb"), asked.Get("resource"), namespace, asked.Get("name")}

		return func(ctx context.Context) (any, error) { return s.source.WhoCan(ctx, q) }, q.check()
	case "people":
		text := asked.Get("name")

		return func(ctx context.Context) (any, error) { return s.source.People(ctx, text) }, checkName(text)
	case "events":
		scope := asked.Get("scope")

		return func(ctx context.Context) (any, error) {
			events, err := s.source.Events(ctx, scope)

			return map[string]any{"events": append([]Event{}, events...)}, err
		}, checkScope(scope)
	default:
		return nil, errNothing
	}
}

// plan answers what the files would change; with a namespace, it lists the single writes there.
func (s *Server) plan(asked url.Values) (any, error) {
	if !asked.Has("namespace") {
		return s.live.shownPlan(), nil
	}

	namespace := asked.Get("namespace")
	if namespace != "" {
		if err := checkNamespace(namespace); err != nil {
			return nil, err
		}
	}

	return s.live.plannedIn(namespace), nil
}

func (q *WhyQuestion) check() error {
	if err := checkNamespace(q.Namespace); err != nil {
		return err
	}

	namespace, name, _ := strings.Cut(q.Account, "/")
	if checkNamespace(namespace) != nil || len(validation.IsDNS1123Subdomain(name)) > 0 {
		return fmt.Errorf("%w: account is no NAMESPACE/NAME", ErrQuestion)
	}

	if q.Verb == "" && q.Resource == "" && q.Name == "" {
		return nil
	}

	return checkRequest(q.Verb, q.Resource, q.Name)
}

func (q *WhoQuestion) check() error {
	if q.Namespace != "" { // Without one it is about the whole cluster.
		if err := checkNamespace(q.Namespace); err != nil {
			return err
		}
	}

	return checkRequest(q.Verb, q.Resource, q.Name)
}

// checkRequest refuses what no request can be about.
func checkRequest(verb, resource, name string) error {
	if name != "" {
		if err := checkName(name); err != nil {
			return err
		}
	}

	if strings.HasPrefix(resource, "/") {
		return fmt.Errorf("%w: resource is none", ErrQuestion)
	}

	if err := checkWord("verb", verb); err != nil {
		return err
	}

	return checkWord("resource", resource)
}

// checkName refuses what no object, and nobody, is called.
func checkName(name string) error {
	if strings.TrimSpace(name) == "" || len(name) > maxWord || !printable.IsText(name) {
		return fmt.Errorf("%w: name is none", ErrQuestion)
	}

	return nil
}

func checkNamespace(name string) error {
	if len(validation.IsDNS1123Label(name)) > 0 {
		return fmt.Errorf("%w: namespace is no name of one", ErrQuestion)
	}

	return nil
}

// checkWord refuses what no verb or resource is.
func checkWord(what, word string) error {
	if word == "" || len(word) > maxWord || !printable.IsText(word) || strings.ContainsAny(word, " ,;") {
		return fmt.Errorf("%w: %s is none", ErrQuestion, what)
	}

	return nil
}

// scopeKinds are the kinds whose events the page shows.
func scopeKinds() []string {
	return []string{
		"NamespaceScope", "NamespaceScope.namespacescope.ibm.com", "ScopeTemplate", "ScopeInstance",
		"ClusterServiceVersion", "OperatorGroup",
	}
}

// checkScope refuses what is no scope, as "NamespaceScope ops/s".
func checkScope(scope string) error {
	kind, rest, _ := strings.Cut(scope, " ")
	namespace, name, namespaced := strings.Cut(rest, "/")

	if !namespaced {
		namespace, name = "default", rest
	}

	if !slices.Contains(scopeKinds(), kind) || name == "" || len(scope) > maxWord || len(content.IsPathSegmentName(name)) > 0 {
		return fmt.Errorf("%w: scope is none", ErrQuestion)
	}

	return checkNamespace(namespace)
}

// past answers with the changes after the first so many.
func (s *Server) past(after string) (any, error) {
	from := 0

	if after != "" {
		number, err := strconv.ParseUint(after, 10, 31)
		if err != nil {
			return nil, fmt.Errorf("%w: after is no number", ErrQuestion)
		}

		from = int(number)
	}

	changes, count := s.live.past(from)

	return map[string]any{"changes": changes, "count": count}, nil
}

// cell answers why an operator is in its state in a namespace, with the same services as ambit matrix.
func (s *Server) cell(ctx context.Context, asked url.Values) (any, error) {
	s.live.first(ctx)

	s.live.mu.Lock()
	snapshot := s.live.snapshot
	s.live.mu.Unlock()

	label, namespace := asked.Get("operator"), asked.Get("namespace")
	if snapshot == nil || label == "" || !utf8.ValidString(label) {
		return nil, fmt.Errorf("%w: there is no such operator", ErrQuestion)
	}

	cell := snapshot.Keep(overview.Filter{
		Operator: func(name string) bool { return name == label }, Namespace: func(name string) bool { return name == namespace },
	}).Matrix()

	for i := range cell.Cells {
		if cell.Cells[i].Namespace == namespace {
			return &cell.Cells[i], nil
		}
	}

	return nil, fmt.Errorf("%w: the operator is not in this namespace", ErrQuestion)
}

// stream tells a tab of changes until the tab is closed.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead || !s.live.join() {
		w.Header().Set("Retry-After", "10")
		say(w, http.StatusServiceUnavailable, "Too many tabs are open.")

		return
	}
	defer s.live.leave()

	out := http.NewResponseController(w)

	w.Header().Set("Content-Type", "text/event-stream")

	beat := time.NewTicker(heartbeat)
	defer beat.Stop()

	shown, news := s.live.shown()

	for {
		text := fmt.Sprintf("data: {\"version\":%d,\"changes\":%d,\"plan\":%d}\n\n", shown.Version, shown.Changes, shown.Plan)
		// A tab that reads nothing must not make the server keep anything for it.
		_ = out.SetWriteDeadline(time.Now().Add(heartbeat))

		if _, err := w.Write([]byte(text)); err != nil || out.Flush() != nil {
			return
		}

		select {
		case <-news:
		case <-beat.C:
		case <-r.Context().Done():
			return
		}

		shown, news = s.live.shown()
	}
}
