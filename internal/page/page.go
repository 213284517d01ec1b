// Package page is a read-only page about operators and namespaces, served on loopback to the one who started it. It shows what
// the commands print: its answers come from the same functions, by way of a Source. It writes nothing and decides nothing.
package page

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

//go:embed static
var static embed.FS

// Server is the page. One snapshot of the cluster serves all of its tabs.
type Server struct {
	source Source
	gate   *gate
	live   *live
	// files are all files that are served, by name.
	files map[string]file
	// questions bounds those that are under way at once: each costs the API server something.
	questions chan struct{}
}

type file struct {
	kind    string
	content []byte
}

// Limits of one page, whatever the number of its tabs.
const (
	maxQuestions = 8
	maxTabs      = 32
	maxHeader    = 16 << 10
)

// New returns a page that will be served under an address of loopback, such as 127.0.0.1:4173.
func New(address string, source Source) (*Server, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("reading the address: %w", err)
	}

	if err := CheckAddress(host); err != nil {
		return nil, err
	}

	s := &Server{
		source: source, gate: newGate(host, port), questions: make(chan struct{}, maxQuestions), files: map[string]file{},
		live: &live{news: make(chan struct{}), plan: planned{due: make(chan struct{}, 1)}},
	}

	for name, kind := range map[string]string{
		"index.html": "text/html; charset=utf-8", "app.js": "text/javascript; charset=utf-8", "app.css": "text/css; charset=utf-8",
		"icon.svg": "image/svg+xml",
	} {
		content, err := static.ReadFile("static/" + name)
		if err != nil {
			return nil, fmt.Errorf("reading the page: %w", err)
		}

		s.files[name] = file{kind, content}
	}

	s.files[""] = s.files["index.html"]

	return s, nil
}

// ErrNotLoopback says that others could reach an address.
var ErrNotLoopback = errors.New("the page is for whoever starts it, with their rights, so it is served on loopback only")

// CheckAddress refuses what is not an address of loopback. It refuses host names, too: what they resolve to is for others to say.
func CheckAddress(host string) error {
	address, err := netip.ParseAddr(host)
	if err != nil || !address.IsLoopback() || address.Is4In6() || address.Zone() != "" {
		return fmt.Errorf("%q: %w; give 127.0.0.1 or ::1", host, ErrNotLoopback)
	}

	return nil
}

// Link admits one browser, once. It stays the same until it is used.
func (s *Server) Link() string { return s.gate.link() }

// LinkPage is a page that leads a browser to the link, for a file: other users of the machine can read command lines, and so the
// link if it stood there.
func (s *Server) LinkPage() string { return leadsTo(s.gate.link()) }

// Used receives a value after a link was used up.
func (s *Server) Used() <-chan struct{} { return s.gate.used }

// Run keeps the snapshot up to date until the context ends.
func (s *Server) Run(ctx context.Context) {
	go s.live.runPlan(ctx, s.source)

	s.live.run(ctx, s.source)
}

// Serve answers on a listener until the context ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: maxHeader, BaseContext: func(net.Listener) context.Context { return ctx },
	}

	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()

	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the page: %w", err)
	}

	return nil
}

// ServeHTTP answers a request, if it comes from a browser that was admitted.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	harden(w.Header())

	if status, words := s.gate.foreign(r); status != 0 {
		say(w, status, words)

		return
	}

	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		say(w, http.StatusMethodNotAllowed, "This page only looks.")

		return
	}

	if r.URL.Path == "/" {
		s.gate.enter(w, r)

		return
	}

	if !s.gate.isInside(r) {
		say(w, http.StatusUnauthorized, closedWords)

		return
	}

	s.inside(w, r, strings.TrimPrefix(r.URL.Path, s.gate.base))
}

func (s *Server) inside(w http.ResponseWriter, r *http.Request, path string) {
	if name, is := strings.CutPrefix(path, "api/v1/"); is {
		s.api(w, r, name)

		return
	}

	f, known := s.files[path]
	if !known {
		say(w, http.StatusNotFound, "There is nothing of this name.")

		return
	}

	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(f.content)))
	_, _ = w.Write(f.content)
}

// harden sets the headers that keep other sites from the page, and the page from loading anything else. No answer is without
// them.
func harden(h http.Header) {
	h.Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "+
		"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}

// say answers with the program's own words.
func say(w http.ResponseWriter, status int, words string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(words + "\n"))
}
