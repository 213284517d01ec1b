package faults_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// proxy stands between a manager and the API server, and does to watches what an API server does whose history is too short.
type proxy struct {
	*httptest.Server

	mu sync.Mutex
	// blind keeps back what watches would tell, deaf what those of one resource would.
	blind bool
	deaf  string
	// refuse says how a watch is answered that begins.
	refuse refusal
	// open are what ends each watch that is open.
	open map[int]context.CancelFunc
	next int
	// begun counts the lists and watches that began, by path and fields; watched is when the watches did.
	begun   map[string]int
	watched map[string][]time.Time
}

type refusal int

const (
	answered refusal = iota
	// refused answers with 410 Gone; endedAtOnce begins a watch, and ends it with such an event.
	refused
	endedAtOnce
)

// gone is what the API server says of a version that it does not remember.
func gone() *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Message: "too old resource version: 1 (2)", Reason: metav1.StatusReasonExpired, Code: http.StatusGone,
	}
}

// newProxy starts a proxy, and a manager with further arguments that knows the API server by it alone. Both end with the test.
func newProxy(t *testing.T, arguments ...string) (*proxy, *embedded.Manager) {
	t.Helper()

	admin, target := apiServer(t)

	// Who asks says so by a token.
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(admin))
	if err != nil {
		t.Fatal(err)
	}

	p := &proxy{open: map[int]context.CancelFunc{}, begun: map[string]int{}, watched: map[string][]time.Time{}}
	forward := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ModifyResponse: p.answer,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		// As if nobody were there.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { p.serve(w, r, forward) }))
	p.Config.ErrorLog = log.New(io.Discard, "", 0) // Clients go away all the time.
	p.EnableHTTP2 = true
	p.StartTLS()
	t.Cleanup(p.Close)
	t.Cleanup(p.CloseClientConnections)

	return p, managerBehind(t, admin, func(cluster *clientcmdapi.Cluster) {
		cluster.Server, cluster.CertificateAuthority, cluster.CertificateAuthorityData = p.URL, "", nil
		cluster.InsecureSkipTLSVerify = true
	}, arguments...)
}

// apiServer is how an administrator reaches the API server, and its address.
func apiServer(t *testing.T) (*rest.Config, *url.URL) {
	t.Helper()

	admin, err := suite.cluster.Config()
	if err != nil {
		t.Fatal(err)
	}

	address, err := url.Parse(admin.Host)
	if err != nil {
		t.Fatal(err)
	}

	return admin, address
}

// managerBehind starts a manager with further arguments that takes for the API server what stands before it: pose says so in its
// kubeconfig. It ends with the test.
func managerBehind(
	t *testing.T, admin *rest.Config, pose func(*clientcmdapi.Cluster), arguments ...string,
) *embedded.Manager {
	t.Helper()

	m, err := embedded.NewManager(t.Context(), admin, t.TempDir(), suite.program,
		append(arguments, "--restart-interval="+restartInterval.String())...)
	if err != nil {
		t.Fatal(err)
	}

	config, err := clientcmd.LoadFromFile(m.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}

	for _, cluster := range config.Clusters {
		pose(cluster)
	}

	if err := clientcmd.WriteToFile(*config, m.Kubeconfig); err != nil {
		t.Fatal(err)
	}

	if err := m.Start(); err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = m.Kill() })

	return m
}

func isWatch(r *http.Request) bool {
	watch := r.URL.Query().Get("watch")

	return watch == "true" || watch == "1"
}

func (p *proxy) serve(w http.ResponseWriter, r *http.Request, forward http.Handler) {
	p.mu.Lock()
	of := r.URL.Path + "?" + r.URL.Query().Get("fieldSelector")

	if isWatch(r) || r.Method == http.MethodGet {
		p.begun[of]++
	}

	if isWatch(r) {
		p.watched[of] = append(p.watched[of], time.Now())
	}

	refuse := p.refuse
	p.mu.Unlock()

	if !isWatch(r) {
		forward.ServeHTTP(w, r)

		return
	}

	w.Header().Set("Content-Type", "application/json")

	switch refuse {
	case refused:
		w.WriteHeader(http.StatusGone)
		_ = json.NewEncoder(w).Encode(gone())
	case endedAtOnce:
		_, _ = io.WriteString(w, goneEvent())
	default:
		w.Header().Del("Content-Type")
		// Events are told line by line, so that one can be put between them.
		r.Header.Set("Accept", strings.ReplaceAll(r.Header.Get("Accept"), "application/vnd.kubernetes.protobuf", "application/json"))
		forward.ServeHTTP(w, r)
	}
}

func goneEvent() string {
	object, err := json.Marshal(gone())
	if err != nil {
		panic(err) // It is made of strings and a number.
	}

	return fmt.Sprintf(`{"type":"ERROR","object":%s}`+"\n", object)
}

// answer puts a pipe into the answer to a watch, which is blind and ends when it is asked to.
func (p *proxy) answer(response *http.Response) error {
	if !isWatch(response.Request) || response.StatusCode != http.StatusOK {
		return nil
	}

	told, tell := io.Pipe()
	upstream := response.Body
	response.Body = told

	ctx, expire := context.WithCancel(response.Request.Context())

	p.mu.Lock()
	p.next++
	number := p.next
	p.open[number] = expire
	p.mu.Unlock()

	context.AfterFunc(ctx, func() { _ = upstream.Close() })

	go func() {
		defer expire()

		p.tell(ctx, tell, upstream, response.Request.URL.Path)
		p.mu.Lock()
		delete(p.open, number)
		p.mu.Unlock()
	}()

	return nil
}

func (p *proxy) tell(ctx context.Context, to *io.PipeWriter, upstream io.Reader, path string) {
	defer to.Close() //nolint:errcheck // It never fails.

	for lines := bufio.NewReader(upstream); ; {
		line, err := lines.ReadString('\n')
		if ctx.Err() != nil {
			_, _ = io.WriteString(to, goneEvent())

			return
		}

		if err != nil {
			return
		}

		if p.isBlind(path) {
			continue
		}

		if _, err := io.WriteString(to, line); err != nil {
			return
		}
	}
}

func (p *proxy) isBlind(path string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.blind || p.deaf != "" && strings.HasSuffix(path, "/"+p.deaf)
}

// ignore keeps back what watches of a resource would tell; of none where it is empty.
func (p *proxy) ignore(resource string) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.deaf = resource
}

// set says whether watches tell anything, and how those are answered that begin.
func (p *proxy) set(blind bool, refuse refusal) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.blind, p.refuse = blind, refuse
}

// expire ends all watches with 410 Gone, and returns how many.
func (p *proxy) expire() int {
	p.mu.Lock()
	defer p.mu.Unlock()

	for _, end := range p.open {
		end()
	}

	return len(p.open)
}

// paused says whether each watch that was begun was begun again after a pause.
func (p *proxy) paused(pause time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	for _, times := range p.watched {
		longest := time.Duration(0)
		for i := range len(times) - 1 {
			longest = max(longest, times[i+1].Sub(times[i]))
		}

		if longest < pause {
			return false
		}
	}

	return len(p.watched) > 0
}

// asked says whether something was read, by the end of its path, and begins anew.
func (p *proxy) asked(end string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()

	for of := range p.begun {
		if strings.HasSuffix(of, end+"?") {
			delete(p.begun, of)

			return true
		}
	}

	return false
}

// count returns how many lists and watches have begun, by path and fields, and begins anew.
func (p *proxy) count() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()

	begun := p.begun
	p.begun, p.watched = map[string]int{}, map[string][]time.Time{}

	return begun
}
