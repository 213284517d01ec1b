package apply

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// maxReviewBytes bounds what the API server may say of what somebody may do in a namespace. Whoever administers it can bind one
// Role of a megabyte a thousand times, to the account of anybody's scope, and the API server says all of it each time.
const maxReviewBytes = maxRuleBytes

// askAgain is for how long what was not answered in time is not asked again. An API server that has much to do is slow, too.
const askAgain = 10 * time.Second

const (
	// timesSlower is how many times as long a question may take as one that is answered from nothing, where that is longer than
	// memberWait.
	timesSlower = 10
	// maxSlowness bounds what a slow API server adds to that.
	maxSlowness = 4 * time.Second
)

var errNotAnswered = errors.New("the API server did not answer in time; Ambit asks again later, and nothing else waits")

// boundedReviews reads no more than that of such an answer.
type boundedReviews struct{ next http.RoundTripper }

func newBoundedReviews(next http.RoundTripper) http.RoundTripper { return &boundedReviews{next} }

// RoundTrip makes a request.
func (b *boundedReviews) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := b.next.RoundTrip(request)
	if err != nil {
		return nil, err //nolint:wrapcheck // The caller knows it by its type.
	}

	if strings.HasSuffix(request.URL.Path, "/selfsubjectrulesreviews") {
		response.Body = http.MaxBytesReader(nil, response.Body, maxReviewBytes)
	}

	return response, nil
}

// isTooLarge says whether an answer was larger than that.
func isTooLarge(err error) bool {
	_, is := errors.AsType[*http.MaxBytesError](err)

	return is
}

// askBounded asks the API server about what is in a namespace, for no longer than others can wait: whoever administers the
// namespace decides how long it takes to answer. Where it did not answer, it is not asked again for a while. An API server that
// is slow with everything gets more time: without what a member grants, its operators would begin again twice, once without it.
func (a *Applier) askBounded(ctx context.Context, about reviewed, ask func(context.Context) error) error {
	if _, is := a.unanswered.Get(about); is {
		return errNotAnswered
	}

	asking, cancel := context.WithCancel(ctx)
	defer cancel()

	measured, held := withHeldBack(asking)
	answered := make(chan error, 1)

	go func() { answered <- ask(measured) }()

	limited, enough := withLimit(measured, held, memberWait)
	defer enough()

	select {
	case err := <-answered:
		return err
	case <-limited.Done():
	}

	more := a.slowness(ctx)

	select {
	case err := <-answered:
		return err
	case <-time.After(more):
	}

	isLate := len(answered) == 0 // It may have come while the API server was asked who Ambit is.

	cancel()

	if err := <-answered; err == nil || !isLate || ctx.Err() != nil {
		return err
	}

	a.unanswered.Add(about, nil, askAgain)

	return errNotAnswered
}

// isSilent says whether a write that began at a time and was not answered failed because the API server answers nothing, like one
// whose machine stands still. Then it says nothing of its namespace, in which more would wait for longer than that lasts.
func (a *Applier) isSilent(ctx context.Context, began time.Time, err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || isAnswer(err) || time.Since(began) < longTime {
		return false
	}

	err = a.askWhoIsAsking(context.WithoutCancel(ctx), memberWait)

	return err != nil && !isAnswer(err)
}

// askWhoIsAsking has the API server say who Ambit is, which nobody else has a part in.
func (a *Applier) askWhoIsAsking(ctx context.Context, atMost time.Duration) error {
	own, err := a.as(Own())
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()

	return own.Create(ctx, &authenticationv1.SelfSubjectReview{}) //nolint:wrapcheck // Only its class matters.
}

func isAnswer(err error) bool {
	var answer apierrors.APIStatus

	return errors.As(err, &answer)
}

// slowness is how much longer a question may take than usual: some times what the API server takes to say who Ambit is. It
// returns after what is left of that.
func (a *Applier) slowness(ctx context.Context) time.Duration {
	began := time.Now()
	_ = a.askWhoIsAsking(ctx, maxSlowness) // A refusal is an answer, too.
	took := time.Since(began)

	return min(timesSlower*took, maxSlowness) - took
}
