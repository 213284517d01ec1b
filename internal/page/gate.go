package page

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"html"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
)

// closedWords are the answer to a browser without a session.
const closedWords = "This page is for whoever started ambit serve. Open the link that the terminal shows: each lets in one " +
	"browser, once, and the terminal shows the next."

// gate decides who is admitted. The first browser that opens a link uses it up, so that a link in a history or on a screen is
// worth nothing. The link is exchanged for a cookie, which never stands in an address.
type gate struct {
	// hosts are the hosts that the page answers to. Any other is somebody else's name that resolves to this machine.
	hosts []string
	// base is the path of everything. A browser sends a cookie to every port of its host, but only below the cookie's path. An
	// application that is forwarded to another port of loopback does not know this path, so it is never sent this page's cookie.
	base   string
	cookie string
	secret string

	mu    sync.Mutex
	token string
	used  chan struct{}
}

func newGate(host, port string) *gate {
	return &gate{
		hosts: []string{net.JoinHostPort(host, port), net.JoinHostPort("localhost", port)},
		base:  "/" + rand.Text() + "/", cookie: "ambit-" + port, secret: rand.Text(), token: rand.Text(),
		used: make(chan struct{}, 1),
	}
}

func (d *gate) link() string {
	d.mu.Lock()
	defer d.mu.Unlock()

	return "http://" + d.hosts[0] + "/?token=" + d.token
}

// foreign says what is wrong with where a request comes from; status 0 if nothing is.
func (d *gate) foreign(r *http.Request) (status int, words string) {
	if !slices.Contains(d.hosts, r.Host) {
		return http.StatusMisdirectedRequest, "This page is not called so."
	}

	if origin := r.Header.Values("Origin"); len(origin) > 1 || len(origin) == 1 && origin[0] != "http://"+r.Host {
		return http.StatusForbidden, "This page answers no other."
	}

	// Browsers say where a request comes from. "same-site" is another port of loopback, "cross-site" a link or a script elsewhere.
	site := r.Header.Values("Sec-Fetch-Site")
	if len(site) > 1 || len(site) == 1 && site[0] != "none" && site[0] != "same-origin" && !isFromFile(r) {
		return http.StatusForbidden, "This page answers no other. Open it from the terminal, or by the address bar."
	}

	return 0, ""
}

// isFromFile says whether a request may be the one to which the file of "ambit serve --open" leads: a file is no page of this
// server, so for a browser it is elsewhere. The token decides whether it is.
func isFromFile(r *http.Request) bool {
	return r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Site") == "cross-site" && r.Header.Get("Sec-Fetch-Mode") == "navigate" &&
		r.Header.Get("Sec-Fetch-Dest") == "document" && len(r.Header.Values("Origin")) == 0
}

// enter admits a browser that comes with the link.
func (d *gate) enter(w http.ResponseWriter, r *http.Request) {
	tokens := r.URL.Query()["token"]
	if r.Method != http.MethodGet || len(tokens) != 1 || !d.use(tokens[0]) {
		say(w, http.StatusUnauthorized, closedWords)

		return
	}

	http.SetCookie(w, &http.Cookie{ //nolint:gosec // G124: loopback has no TLS, so a Secure cookie would not be kept.
		Name: d.cookie, Value: d.secret, Path: d.base, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})

	// A browser sends no SameSite=Strict cookie along redirections that began elsewhere. From a page of this server it does.
	if isFromFile(r) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, leadsTo(d.base))

		return
	}

	w.Header().Set("Location", d.base)
	say(w, http.StatusSeeOther, "")
}

// leadsTo is a page from which a browser goes on to an address by itself, without a script.
func leadsTo(address string) string {
	return "<!DOCTYPE html>\n<meta charset=\"utf-8\">\n<title>Ambit</title>\n<meta http-equiv=\"refresh\" content=\"0; url=" +
		html.EscapeString(address) + "\">\n"
}

// use says whether a token is the one that was not used yet, and uses it up.
func (d *gate) use(token string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()

	if !isSame(token, d.token) {
		return false
	}

	d.token = rand.Text()

	select {
	case d.used <- struct{}{}:
	default:
	}

	return true
}

func (d *gate) isInside(r *http.Request) bool {
	cookies := r.CookiesNamed(d.cookie)
	in := len(r.URL.Path) >= len(d.base) && isSame(r.URL.Path[:len(d.base)], d.base)

	return slices.ContainsFunc(cookies, func(c *http.Cookie) bool { return isSame(c.Value, d.secret) }) && in
}

// isSame takes the same time for whatever is given, its length included.
func isSame(given, want string) bool {
	a, b := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(want))

	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
