// Package scrape lets those read Ambit's metrics whom the API server authorizes: requests need a token that it authenticates, of
// a user who may get the path. decisions/0035 says why that is not controller-runtime's own filter.
package scrape

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// allowed is how long the API server's yes is good for, and so how long somebody who lost the right can still read. refused is
	// how long its no is, and so how long somebody who has just been given the right waits.
	allowed = time.Minute
	refused = 5 * time.Second
	// knownLife is how long a token that was admitted may be asked about without waiting its turn, and maxKnown how many such
	// there are. A token that the API server knows is one that it made or trusts.
	knownLife = time.Hour
	maxKnown  = 64
	// Of tokens that were not admitted before, reviewsPerSecond and no more are asked about, after reviewsAtOnce. Everybody who
	// reaches the port can invent tokens.
	reviewsPerSecond = 5
	reviewsAtOnce    = 20
	// MaxToken is longer than any token that an API server issues.
	MaxToken = 16 << 10
	// reviewTimeout is how long the API server may take for both questions.
	reviewTimeout = 10 * time.Second
)

// key stands for a token, so that no token is kept.
type key [sha256.Size]byte

// guard says who may read.
type guard struct {
	// review asks the API server, and returns the status for a request with a token for a path.
	review func(ctx context.Context, token, path string) (int, error)
	now    func() time.Time
	limit  *rate.Limiter

	mu      sync.Mutex
	answers map[key]answer
	// known are the tokens that were admitted, each for a path, and until when they need not wait their turn.
	known map[key]time.Time
}

type answer struct {
	status int
	until  time.Time
}

// Filter answers everybody but those whom the API server authorizes with 401 or 403.
func Filter(config *rest.Config, httpClient *http.Client) (func(log logr.Logger, next http.Handler) http.Handler, error) {
	// The two kinds that are asked for need no discovery.
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(authenticationv1.SchemeGroupVersion.WithKind("TokenReview"), meta.RESTScopeRoot)
	mapper.Add(authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"), meta.RESTScopeRoot)

	c, err := client.New(config, client.Options{HTTPClient: httpClient, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("making the client that asks who may read metrics: %w", err)
	}

	return newGuard(func(ctx context.Context, token, path string) (int, error) { return review(ctx, c, token, path) }).handler, nil
}

func newGuard(review func(ctx context.Context, token, path string) (int, error)) *guard {
	return &guard{
		review: review, now: time.Now, limit: rate.NewLimiter(reviewsPerSecond, reviewsAtOnce),
		answers: map[key]answer{}, known: map[key]time.Time{},
	}
}

func (g *guard) handler(log logr.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusMethodNotAllowed
		if r.Method == http.MethodGet {
			status = g.status(log, r)
		}

		switch status {
		case http.StatusOK:
			next.ServeHTTP(w, r)

			return
		case http.StatusUnauthorized:
			w.Header().Set("WWW-Authenticate", "Bearer")
		case http.StatusTooManyRequests:
			w.Header().Set("Retry-After", "1")
		}

		http.Error(w, http.StatusText(status), status)
	})
}

// status is the HTTP status of the answer to a request. What cannot be decided is not admitted.
func (g *guard) status(log logr.Logger, r *http.Request) int {
	token, found := bearer(r)
	if !found {
		return http.StatusUnauthorized
	}

	// The answer depends on the path, too; its length keeps path and token apart.
	asked := key(sha256.Sum256(fmt.Appendf(nil, "%d %s%s", len(r.URL.Path), r.URL.Path, token)))

	status, waits := g.recall(asked)
	if status != 0 {
		return status
	}

	if waits && !g.limit.AllowN(g.now(), 1) {
		return http.StatusTooManyRequests
	}

	ctx, cancel := context.WithTimeout(r.Context(), reviewTimeout)
	defer cancel()

	status, err := g.review(ctx, token, r.URL.Path)
	if err != nil {
		log.Error(err, "Metrics are not served: the API server does not say whether they may be read. Ambit needs the right to "+
			"create tokenreviews and subjectaccessreviews; --metrics-secure=false serves them to everybody")

		return http.StatusServiceUnavailable
	}

	g.remember(asked, status)

	return status
}

// bearer is the token that a request bears.
func bearer(r *http.Request) (token string, found bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)

	return token, strings.EqualFold(scheme, "Bearer") && token != "" && len(token) <= MaxToken
}

// recall is what the API server said a moment ago, 0 if nothing; and whether to ask has to wait its turn.
func (g *guard) recall(asked key) (status int, waits bool) {
	g.mu.Lock()
	defer g.mu.Unlock()

	now := g.now()
	if a := g.answers[asked]; now.Before(a.until) {
		return a.status, false
	}

	return 0, !now.Before(g.known[asked])
}

func (g *guard) remember(asked key, status int) {
	g.mu.Lock()
	defer g.mu.Unlock()

	now := g.now()

	// Because of the limit, there are only as many answers as there are questions in a minute.
	maps.DeleteFunc(g.answers, func(_ key, a answer) bool { return !now.Before(a.until) })
	maps.DeleteFunc(g.known, func(_ key, until time.Time) bool { return !now.Before(until) })

	good := refused
	if status == http.StatusOK {
		good = allowed
	}

	g.answers[asked] = answer{status, now.Add(good)}

	if _, is := g.known[asked]; status == http.StatusOK && (is || len(g.known) < maxKnown) {
		g.known[asked] = now.Add(knownLife)
	}
}

// review asks the API server whose token it is, and whether that user may get the path.
func review(ctx context.Context, c client.Client, token, path string) (int, error) {
	who := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := c.Create(ctx, who); err != nil {
		return 0, fmt.Errorf("asking whose token it is: %w", err)
	}

	if !who.Status.Authenticated {
		return http.StatusUnauthorized, nil
	}

	user := who.Status.User
	may := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, Groups: user.Groups, UID: user.UID, Extra: map[string]authorizationv1.ExtraValue{},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
	}}

	for name, values := range user.Extra {
		may.Spec.Extra[name] = authorizationv1.ExtraValue(values)
	}

	if err := c.Create(ctx, may); err != nil {
		return 0, fmt.Errorf("asking whether somebody may get %s: %w", path, err)
	}

	if !may.Status.Allowed || may.Status.Denied {
		return http.StatusForbidden, nil
	}

	return http.StatusOK, nil
}
