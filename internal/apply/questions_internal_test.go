package apply

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/writer"
)

type answers struct{ bytes int }

// RoundTrip answers with so many bytes.
func (a *answers) RoundTrip(request *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusCreated, Request: request, Body: io.NopCloser(strings.NewReader(strings.Repeat("x", a.bytes))),
	}, nil
}

// TestAnswersToReviewsAreBounded: who administers a namespace decides how much there is to say of what somebody may do there.
func TestAnswersToReviewsAreBounded(t *testing.T) {
	t.Parallel()

	const reviews, roles = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", "/apis/rbac.authorization.k8s.io/v1/roles"

	for reason, tc := range map[string]struct {
		path     string
		bytes    int
		tooLarge bool
	}{
		"as much as is compared":       {reviews, maxReviewBytes, false},
		"more than that":               {reviews, maxReviewBytes + 1, true},
		"what is read in another way":  {roles, maxReviewBytes + 1, false},
		"a namespace of the same name": {"/apis/x/v1/namespaces/selfsubjectrulesreviews/roles", maxReviewBytes + 1, false},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example.com"+tc.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}

		response, err := newBoundedReviews(&answers{tc.bytes}).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}

		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()

		if isTooLarge(err) != tc.tooLarge || (err != nil) != tc.tooLarge {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

// answering is a client of an API server that says who somebody is after a time.
type answering struct {
	client.Client

	after time.Duration
}

// Create answers a question.
func (s *answering) Create(ctx context.Context, _ client.Object, _ ...client.CreateOption) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.after):
		return nil
	}
}

// TestQuestionsAreBounded: what is not answered in time is not asked again for a while, about that namespace; every other
// question is. In time is within a second, or within five where the API server is slow with everything.
func TestQuestionsAreBounded(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		slow, atMost time.Duration
	}{
		"an API server that answers at once":             {0, memberWait},
		"one that answers soon":                          {memberWait / 100, memberWait + memberWait/10},
		"one that has much to do":                        {memberWait / 4, memberWait + timesSlower*memberWait/4},
		"one that answers nothing in time":               {time.Hour, memberWait + maxSlowness},
		"one that answers shortly before its time is up": {maxSlowness - memberWait, memberWait + maxSlowness},
	} {
		synctest.Test(t, func(t *testing.T) {
			server := &answering{after: tc.slow}
			a := newApplier(func(Identity) (client.Client, error) { return server, nil }, quiet{}, 1)
			asked := 0
			ask := func(namespace string, takes time.Duration) error {
				about := reviewed{writer.ServiceAccount("ops", "a"), namespace}

				return a.askBounded(t.Context(), about, func(ctx context.Context) error {
					asked++

					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(takes):
						return errors.ErrUnsupported
					}
				})
			}

			began := time.Now()

			for range 100 {
				if err := ask("slow", time.Hour); !errors.Is(err, errNotAnswered) {
					t.Fatalf("%s: what is not answered: %v", reason, err)
				}
			}

			if took := time.Since(began); asked != 1 || took != tc.atMost {
				t.Errorf("%s: asked %d times, within %s, want %s", reason, asked, took, tc.atMost)
			}

			if err := ask("fast", max(memberWait, tc.atMost)-1); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s: another namespace: %v", reason, err)
			}

			time.Sleep(askAgain)

			if err := ask("slow", memberWait/2); !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s: it is never asked again: %v", reason, err)
			}
		})
	}
}

// TestWhoeverAsksIsNotKept: a question ends with whoever asked it, and that is no reason not to ask it again.
func TestWhoeverAsksIsNotKept(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		a := newApplier(func(Identity) (client.Client, error) { return &answering{after: time.Hour}, nil }, quiet{}, 1)

		for _, after := range []time.Duration{memberWait / 2, 2 * memberWait} {
			ctx, cancel := context.WithTimeout(t.Context(), after)
			began := time.Now()

			err := a.askBounded(ctx, reviewed{namespace: "slow"}, func(ctx context.Context) error {
				<-ctx.Done()

				return ctx.Err()
			})

			cancel()

			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took != after {
				t.Errorf("%v after %s, want the end of %s", err, took, after)
			}
		}
	})
}
