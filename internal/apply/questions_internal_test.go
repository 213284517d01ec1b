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

// TestQuestionsAreBounded: what is not answered in time is not asked again for a while, about that namespace; every other
// question is.
func TestQuestionsAreBounded(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		a := &Applier{Now: time.Now}
		asked := 0
		ask := func(namespace string, takes time.Duration) error {
			return a.askBounded(t.Context(), reviewed{writer.ServiceAccount("ops", "a"), namespace}, func(ctx context.Context) error {
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
				t.Fatalf("what is not answered: %v", err)
			}
		}

		if took := time.Since(began); asked != 1 || took != memberWait {
			t.Errorf("asked %d times, within %s", asked, took)
		}

		if err := ask("fast", memberWait/2); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("another namespace: %v", err)
		}

		time.Sleep(askAgain)

		if err := ask("slow", memberWait/2); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("it is never asked again: %v", err)
		}
	})
}
