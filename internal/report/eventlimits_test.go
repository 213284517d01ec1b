package report_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/report"
)

// hanging answers for no namespace called evil.
type hanging struct{ asked, open, most atomic.Int64 }

func (h *hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.Contains(r.URL.Path, "/evil/") {
		return &http.Response{StatusCode: http.StatusCreated, Header: http.Header{}, Body: http.NoBody}, nil
	}

	h.asked.Add(1)
	h.most.Store(max(h.most.Load(), h.open.Add(1)))
	<-r.Context().Done()
	h.open.Add(-1)

	return nil, r.Context().Err()
}

// TestEventsThatHangAreFew: of a namespace in which events hang, few do so at a time, and none for long; then it is left alone
// for a while. Those of other namespaces, and everything else, wait for nothing.
func TestEventsThatHangAreFew(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		const many, atOnce, limit = 300, 4, 5 * time.Second

		hangs := &hanging{}
		limited := report.LimitEvents()(hangs)

		write := func(path string) int {
			response, err := limited.RoundTrip(httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, http.NoBody))
			if err != nil {
				t.Errorf("%s: %v", path, err)

				return 0
			}

			_ = response.Body.Close()

			return response.StatusCode
		}

		const events = "/apis/events.k8s.io/v1/namespaces/"

		inEvil := func() {
			if code := write(events + "evil/events"); code != http.StatusGatewayTimeout {
				t.Errorf("the answer is %d", code)
			}
		}

		var all sync.WaitGroup

		began := time.Now()

		for range many {
			all.Go(inEvil)
		}

		synctest.Wait()

		for _, path := range []string{events + "good/events", "/api/v1/namespaces/evil-twin/pods"} {
			if code := write(path); code != http.StatusCreated {
				t.Errorf("%s: the answer is %d", path, code)
			}
		}

		if took := time.Since(began); took > 0 {
			t.Errorf("others waited %v", took)
		}

		all.Wait()

		if took, most := time.Since(began), hangs.most.Load(); took != limit || most != atOnce || hangs.asked.Load() != atOnce {
			t.Errorf("%d of %d events hung, %d at once, for %v", hangs.asked.Load(), many, most, took)
		}

		time.Sleep(limit)
		inEvil()

		if n := hangs.asked.Load(); n != atOnce {
			t.Errorf("%d were sent though the last ones hung", n)
		}

		time.Sleep(time.Minute)
		inEvil()

		if n := hangs.asked.Load(); n != atOnce+1 {
			t.Errorf("%d were sent, of which one should have tried whether they still hang", n)
		}
	})
}

type counted struct{ sent int }

func (c *counted) Eventf(runtime.Object, runtime.Object, string, string, string, string, ...any) {
	c.sent++
}

// TestEventsOfANamespaceAreLimited: client-go remembers each event for minutes. A namespace that has too many gets no more
// for a while, whatever they are about; others do.
func TestEventsOfANamespaceAreLimited(t *testing.T) {
	t.Parallel()

	synctest.Test(t, func(t *testing.T) {
		const burst, minute = 1_000, 60

		sent := &counted{}
		limited := report.Limited(sent)
		event := report.Event{Reason: "Reason", Action: "Act", Message: "message"}

		send := func(n int, about runtime.Object) int {
			before := sent.sent
			for range n {
				event.Send(limited, about)
			}

			return sent.sent - before
		}

		scope := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "scope"}}
		if n := send(5*burst, scope); n != burst {
			t.Errorf("%d events were sent", n)
		}

		if n := send(burst, &corev1.ObjectReference{Namespace: "evil"}); n != 0 {
			t.Errorf("%d more were sent about something else", n)
		}

		for _, other := range []runtime.Object{&corev1.ObjectReference{Namespace: "good"}, &operatorv1.NamespaceScope{}} {
			if n := send(burst, other); n != burst {
				t.Errorf("%d events of another namespace were sent", n)
			}
		}

		time.Sleep(minute * time.Second)

		if n := send(burst, scope); n != minute {
			t.Errorf("after a minute, %d more were sent", n)
		}
	})
}
