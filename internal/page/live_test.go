//nolint:bodyclose // The cleanup of the test closes them.
package page_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/page"
)

// served is a page on a real port of loopback.
type served struct {
	*testing.T

	base   string
	cookie *http.Cookie
}

func serve(t *testing.T, source page.Source) *served {
	t.Helper()

	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	server, err := page.New(listener.Addr().String(), source)
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go server.Run(ctx)
	go func() { ended <- server.Serve(ctx, listener) }()

	t.Cleanup(func() {
		cancel()

		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	s := &served{T: t}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

	got, err := client.Do(s.request(server.Link()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()

	s.base, s.cookie = "http://"+listener.Addr().String()+got.Header.Get("Location"), got.Cookies()[0]

	return s
}

func (s *served) request(address string) *http.Request {
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, address, nil)
	if err != nil {
		s.Fatal(err)
	}

	if s.cookie != nil {
		r.AddCookie(s.cookie)
	}

	return r
}

func (s *served) get(path string) *http.Response {
	s.Helper()

	got, err := http.DefaultClient.Do(s.request(s.base + path))
	if err != nil {
		s.Fatal(err)
	}

	s.Cleanup(func() { _ = got.Body.Close() })

	return got
}

// json reads an answer.
func (s *served) json(path string, into any) {
	s.Helper()

	if err := json.Unmarshal([]byte(bodyOf(s.get(path))), into); err != nil {
		s.Fatalf("%s: %v", path, err)
	}
}

type shown struct {
	Version int        `json:"version"`
	Problem string     `json:"problem"`
	Chart   page.Chart `json:"chart"`
}

// next waits for the stream to tell of another version.
func next(t *testing.T, stream *bufio.Scanner) int {
	t.Helper()

	for stream.Scan() {
		if data, is := strings.CutPrefix(stream.Text(), "data: "); is {
			var told shown
			if err := json.Unmarshal([]byte(data), &told); err != nil {
				t.Fatal(err)
			}

			return told.Version
		}
	}

	t.Fatalf("the stream ended: %v", stream.Err())

	return 0
}

// TestChangesReachATab holds that a change reaches a tab within two seconds, and what it was; and that a problem is said, and
// then not any more.
func TestChangesReachATab(t *testing.T) {
	t.Parallel()

	f := &fixture{services: []overview.Service{service("a", "team-a", overview.Served)}}
	s := serve(t, f)

	var before shown
	s.json("api/v1/overview", &before)

	stream := bufio.NewScanner(s.get("api/v1/live").Body)
	if version := next(t, stream); version != before.Version {
		t.Fatalf("the stream begins with version %d, and the page shows %d", version, before.Version)
	}

	failed := service("a", "team-b", overview.Failed)
	failed.Reason = "AuthorizationRequired"
	f.become(service("a", "team-a", overview.Served), failed)
	next(t, stream)

	var after shown
	s.json("api/v1/overview", &after)

	if len(after.Chart.Blocks) != 2 {
		t.Errorf("after the change there are %d blocks: %+v", len(after.Chart.Blocks), after.Chart.Blocks)
	}

	var past struct {
		Changes []page.Change
		Count   int
	}
	s.json("api/v1/changes", &past)

	if past.Count != 1 || past.Changes[0].From != "" || past.Changes[0].To != "failed" ||
		past.Changes[0].Namespaces[0] != "team-b" || past.Changes[0].Reason != failed.Reason {
		t.Errorf("what changed is %+v", past)
	}

	if s.json("api/v1/changes?after=1", &past); len(past.Changes) != 0 {
		t.Errorf("after the last change there is %+v", past)
	}

	f.fail(errors.New("the cluster is\x1b[31m away"))
	next(t, stream)
	s.json("api/v1/overview", &after)

	if after.Problem != `the cluster is\u001b[31m away` || len(after.Chart.Blocks) != 2 {
		t.Errorf("without a cluster the page shows %d blocks and says %q", len(after.Chart.Blocks), after.Problem)
	}

	f.fail(nil)
	next(t, stream)

	after = shown{}
	s.json("api/v1/overview", &after)

	if after.Problem != "" {
		t.Errorf("the cluster is back, and the page says %q", after.Problem)
	}

	const soon = 2 * time.Second

	// A busy machine stops once in a while, and not each time.
	took := soon + 1
	for i := 0; i < 5 && took > soon; i++ {
		began := time.Now()
		f.become(service("a", fmt.Sprint("team-", i), overview.Served))
		next(t, stream)

		took = time.Since(began)
	}

	if took > soon {
		t.Errorf("a change was told after %s", took)
	}
}

// TestExpiredCredentialsAreSaid: a page that cannot be live any more says what its reader can do.
func TestExpiredCredentialsAreSaid(t *testing.T) {
	t.Parallel()

	s := serve(t, &fixture{failure: fmt.Errorf("asking: %w", apierrors.NewUnauthorized("Unauthorized"))})

	var now shown
	if s.json("api/v1/overview", &now); !strings.HasSuffix(now.Problem, "start ambit serve again)") {
		t.Errorf("the page says %q", now.Problem)
	}
}

// TestAQuietClusterIsQuiet holds that a look in which nothing differs is no news.
func TestAQuietClusterIsQuiet(t *testing.T) {
	t.Parallel()

	f := &fixture{services: []overview.Service{service("a", "team-a", overview.Served)}}
	s := serve(t, f)

	var before, after shown
	s.json("api/v1/overview", &before)

	looks := f.looks.Load()
	f.become(service("a", "team-a", overview.Served))

	for f.looks.Load() == looks {
		time.Sleep(10 * time.Millisecond)
	}

	time.Sleep(200 * time.Millisecond)
	s.json("api/v1/overview", &after)

	if after.Version != before.Version {
		t.Errorf("nothing changed, and the version went from %d to %d", before.Version, after.Version)
	}
}

// TestManyTabs holds that tabs share one look, and that there is an end to how many are told of changes.
func TestManyTabs(t *testing.T) {
	t.Parallel()

	const most = 32

	f := &fixture{}
	s := serve(t, f)

	var first shown
	s.json("api/v1/overview", &first)

	looks := f.looks.Load()

	for i := range most {
		if got := s.get("api/v1/live"); got.StatusCode != http.StatusOK {
			t.Fatalf("tab %d: %d", i, got.StatusCode)
		}
	}

	if got := s.get("api/v1/live"); got.StatusCode != http.StatusServiceUnavailable || got.Header.Get("Retry-After") == "" {
		t.Errorf("tab %d: %d", most+1, got.StatusCode)
	}

	for range 50 {
		s.json("api/v1/overview", &first)
	}

	if f.looks.Load() != looks {
		t.Errorf("tabs made %d looks", f.looks.Load()-looks)
	}
}

// TestLoopbackOnly holds that no address is served that somebody else could reach.
func TestLoopbackOnly(t *testing.T) {
	t.Parallel()

	for _, host := range []string{"127.0.0.1", "127.0.0.2", "::1"} {
		if err := page.CheckAddress(host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}

	for _, host := range []string{
		"", "0.0.0.0", "::", "10.0.0.1", "192.168.1.1", "localhost", "example.com", "::ffff:127.0.0.1", "fe80::1%lo", "127.1",
		"2130706433", "127.0.0.1:80", "::1%lo",
	} {
		if err := page.CheckAddress(host); !errors.Is(err, page.ErrNotLoopback) {
			t.Errorf("%q: %v", host, err)
		}
	}
}

// TestLargeCluster holds what a browser is sent of ten thousand namespaces: what differs, once.
func TestLargeCluster(t *testing.T) {
	t.Parallel()

	f := &fixture{}

	for o := range 50 {
		for n := range 10_000 {
			if s := service(fmt.Sprintf("op-%02d", o), fmt.Sprintf("team-%05d", n), overview.Served); (n+o)%10 != 0 {
				f.services = append(f.services, s)
			}
		}
	}

	s := serve(t, f)
	text := bodyOf(s.get("api/v1/overview"))

	var got shown
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}

	if len(got.Chart.Blocks) != 10 || len(got.Chart.Operators) != 50 || len(text) > 300_000 {
		t.Errorf("%d blocks, %d operators, %d bytes", len(got.Chart.Blocks), len(got.Chart.Operators), len(text))
	}
}
