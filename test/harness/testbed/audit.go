package testbed

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/rand"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// Ambit is the user that Ambit runs as.
const Ambit = "system:serviceaccount:" + embedded.Namespace + ":" + embedded.ServiceAccount

var errNotLogged = errors.New("it does not have what was asked for just now")

// quiet is how often in a row Ambit must have asked for nothing more before it counts as at rest. That is two seconds at least: a
// change that waits for others does so for a second at most.
const quiet = int(2 * time.Second / lastPause)

// Request is what the API server noted in its audit log of a request that it answered.
type Request struct {
	Verb     string    `json:"verb"`
	URI      string    `json:"requestURI"`
	Stage    string    `json:"stage"`
	Received time.Time `json:"requestReceivedTimestamp"`
	User     user      `json:"user"`
	// As is whom the user impersonated, and How the way of that, with its constraint; empty for the one without limits.
	As     user           `json:"impersonatedUser"`
	How    authentication `json:"authenticationMetadata"`
	Object object         `json:"objectRef"`
	// Response is how the API server answered. If it refused to let somebody act as an account, the request says nothing of that
	// account.
	Response response `json:"responseStatus"`
	// Notes are those of the authorizer.
	Notes notes `json:"annotations"`
}

type authentication struct {
	Constraint string `json:"impersonationConstraint"`
}

type response struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

type notes struct {
	Decision string `json:"authorization.k8s.io/decision"`
}

type user struct {
	Name string `json:"username"`
}

type object struct {
	APIGroup    string `json:"apiGroup"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Namespace   string `json:"namespace"`
	Name        string `json:"name"`
}

// String names the request for people.
func (r *Request) String() string {
	o := &r.Object

	return fmt.Sprintf("%s %s.%s/%s %s/%s as %q", r.Verb, o.Resource, o.APIGroup, o.Subresource, o.Namespace, o.Name, r.As.Name)
}

// Requests returns what Ambit has asked of the API server so far, as itself or as others. An empty log, one that nobody writes
// any more, or one without Ambit would please every test that looks for what must not be in it. So the log has to show a request
// of the test's own first, which is made now, and something of Ambit's.
func (w *World) Requests() []Request {
	w.Helper()

	return w.requests(func(r *Request) bool { return r.User.Name == Ambit })
}

// RequestsAs returns what was asked as a user whom the test acted as, in the same way.
func (w *World) RequestsAs(user string) []Request {
	w.Helper()

	return w.requests(func(r *Request) bool { return r.As.Name == user })
}

func (w *World) requests(wanted func(*Request) bool) []Request {
	w.Helper()

	marker := "audit-marker-" + rand.String(10)
	if err := w.Client.Get(w.Context(), client.ObjectKey{Name: marker}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		w.Fatalf("asking for namespace %s, which does not exist: %v", marker, err)
	}

	var out []Request

	w.Eventually("the audit log is up to date", func() error {
		var marked bool
		if out, marked = w.readLog(marker, wanted); !marked {
			return errNotLogged
		}

		return nil
	})

	if len(out) == 0 {
		w.Fatal("the audit log holds no request of whom the test asks about")
	}

	return out
}

// Answered returns the requests that were answered so far, whoever made them.
func (b *Bed) Answered() ([]Request, error) { return b.audit.read(b.Cluster) }

// readLog returns the requests that are wanted, and whether the log has the one for a namespace that a test asked for.
func (w *World) readLog(marker string, wanted func(*Request) bool) (out []Request, marked bool) {
	w.Helper()

	all, err := w.Answered()
	if err != nil {
		w.Fatalf("reading the audit log: %v", err)
	}

	for i := range all {
		r := &all[i]
		marked = marked || r.Object.Name == marker

		if wanted(r) {
			out = append(out, *r)
		}
	}

	return out, marked
}

// auditLog is what was read of an audit log so far: each line once, however often tests look.
type auditLog struct {
	mu sync.Mutex
	// end is where the last whole line ends that was read, counted from the cluster's first.
	end      int64
	answered []Request
}

// read returns the requests that were answered. What it returns does not change; later ones come after it.
func (l *auditLog) read(of *embedded.Cluster) ([]Request, error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	log, err := of.OpenAuditLog()
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // It was only read.

	if _, err := log.Seek(l.end, io.SeekCurrent); err != nil {
		return nil, fmt.Errorf("finding byte %d: %w", l.end, err)
	}

	for lines := bufio.NewReader(log); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return slices.Clip(l.answered), nil // The last line may be half written.
		}

		if err != nil {
			return nil, fmt.Errorf("after byte %d: %w", l.end, err)
		}

		l.end += int64(len(line))

		var r Request
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("the line before byte %d: %w", l.end, err)
		}

		if r.Stage == "ResponseComplete" {
			l.answered = append(l.answered, r)
		}
	}
}

// Rest waits until Ambit asks for nothing any more, and counts what it had asked for since a moment, by "verb resource". It
// leaves out watches, events, leases, Secrets and SelfSubjectReviews, and the further resources that are named. No other test may
// run meanwhile.
func (w *World) Rest(since time.Time, besides ...string) map[string]int {
	w.Helper()

	besides = append([]string{"events", "leases", "secrets", "selfsubjectreviews"}, besides...)

	return w.rest(since, func(r *Request) bool { return !slices.Contains(besides, r.Object.Resource) })
}

// RestIn waits until Ambit asks for nothing any more in some namespaces, while other tests go on. It leaves out that Ambit asks
// every five seconds whether a member lets it in by now, since nothing tells it where it may not read: docs/limits.md.
func (w *World) RestIn(namespaces ...string) {
	w.Helper()
	w.rest(time.Now(), func(r *Request) bool {
		asksIn := r.Verb == "list" && r.Object.Resource == "roles" && r.Response.Code == http.StatusForbidden

		return !asksIn && r.Object.Resource != "events" && slices.Contains(namespaces, r.Object.Namespace)
	})
}

func (w *World) rest(since time.Time, wanted func(*Request) bool) map[string]int {
	w.Helper()

	counts, rests := stays(func() map[string]int { return w.Count(since, wanted) })
	if !rests {
		w.Fatalf("it does not come to rest: %v", counts)
	}

	return counts
}

// stays looks until what it sees stays the same, and says whether it does. It goes by looks, for each of which the API server
// answers, not by the time: as long as the API server stands still, nobody can ask it for anything.
func stays(look func() map[string]int) (map[string]int, bool) {
	now := look()

	for same, limit := 0, time.Now().Add(Patience); same < quiet; same++ {
		if time.Now().After(limit) {
			return now, false
		}

		time.Sleep(lastPause)

		before := now
		if now = look(); !maps.Equal(before, now) {
			same = -1
		}
	}

	return now, true
}

// Count counts what Ambit has asked for since a moment, by "verb resource": the requests that are wanted, without watches.
func (w *World) Count(since time.Time, wanted func(*Request) bool) map[string]int {
	w.Helper()

	counts := map[string]int{}
	requests := w.Requests()

	for i := range requests {
		if r := &requests[i]; !r.Received.Before(since) && r.Verb != "watch" && wanted(r) {
			counts[strings.TrimSuffix(r.Verb+" "+r.Object.Resource+"/"+r.Object.Subresource, "/")]++
		}
	}

	return counts
}
