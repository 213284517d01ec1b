//nolint:bodyclose // What a recorder gives has nothing to close.
package page_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/page"
)

const address = "127.0.0.1:4173"

// opened is a page with the session of somebody who used its link.
type opened struct {
	*testing.T

	server *page.Server
	cookie *http.Cookie
	// base is the path beneath which the page is.
	base string
}

func open(t *testing.T, source page.Source) *opened {
	t.Helper()

	server, err := page.New(address, source)
	if err != nil {
		t.Fatal(err)
	}

	go server.Run(t.Context())

	got := ask(t.Context(), server, http.MethodGet, server.Link(), nil)
	if got.StatusCode != http.StatusSeeOther || len(got.Cookies()) != 1 {
		t.Fatalf("the link answers %d with %d cookies", got.StatusCode, len(got.Cookies()))
	}

	return &opened{t, server, got.Cookies()[0], got.Header.Get("Location")}
}

func ask(ctx context.Context, h http.Handler, method, target string, change func(*http.Request)) *http.Response {
	r := httptest.NewRequestWithContext(ctx, method, target, nil)
	r.Host = address

	if change != nil {
		change(r)
	}

	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)

	return w.Result()
}

// get asks with the session.
func (o *opened) get(path string, change func(*http.Request)) *http.Response {
	return ask(o.Context(), o.server, http.MethodGet, o.base+path, func(r *http.Request) {
		r.AddCookie(o.cookie)

		if change != nil {
			change(r)
		}
	})
}

func with(header, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(header, value) }
}

func host(name string) func(*http.Request) {
	return func(r *http.Request) { r.Host = name }
}

// TestForeignersAreRefused holds that nothing is said to a page of somebody else, whatever name it calls this one by.
func TestForeignersAreRefused(t *testing.T) {
	t.Parallel()

	o := open(t, &fixture{})

	for reason, tc := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"the page itself":                          {nil, http.StatusOK},
		"the browser's own address bar":            {with("Sec-Fetch-Site", "none"), http.StatusOK},
		"the page's own script":                    {with("Origin", "http://"+address), http.StatusOK},
		"by the name localhost":                    {func(r *http.Request) { r.Host = "localhost:4173" }, http.StatusOK},
		"a name that was rebound to loopback":      {host("evil.example:4173"), http.StatusMisdirectedRequest},
		"a name that ends like ours":               {host("localhost.evil.example:4173"), http.StatusMisdirectedRequest},
		"another port":                             {func(r *http.Request) { r.Host = "127.0.0.1:80" }, http.StatusMisdirectedRequest},
		"no port":                                  {func(r *http.Request) { r.Host = "127.0.0.1" }, http.StatusMisdirectedRequest},
		"no host":                                  {func(r *http.Request) { r.Host = "" }, http.StatusMisdirectedRequest},
		"another origin":                           {with("Origin", "https://evil.example"), http.StatusForbidden},
		"another port's origin":                    {with("Origin", "http://127.0.0.1:8080"), http.StatusForbidden},
		"another scheme's origin":                  {with("Origin", "https://"+address), http.StatusForbidden},
		"a sandboxed frame":                        {with("Origin", "null"), http.StatusForbidden},
		"a link on another site":                   {with("Sec-Fetch-Site", "cross-site"), http.StatusForbidden},
		"an application that is forwarded beside":  {with("Sec-Fetch-Site", "same-site"), http.StatusForbidden},
		"a browser that says what nobody knows of": {with("Sec-Fetch-Site", "whatever"), http.StatusForbidden},
	} {
		for _, path := range []string{"", "app.js", "api/v1/overview"} {
			if got := o.get(path, tc.change); got.StatusCode != tc.want {
				t.Errorf("%s asks for %q: %d, want %d", reason, path, got.StatusCode, tc.want)
			}
		}
	}
}

// TestWithoutTheSession holds that whoever was not let in is told nothing, not even by the page's own files.
func TestWithoutTheSession(t *testing.T) {
	t.Parallel()

	o := open(t, &fixture{})

	for reason, cookie := range map[string]string{
		"no cookie": "", "an empty one": o.cookie.Name + "=", "a wrong one": o.cookie.Name + "=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
		"a prefix": o.cookie.Name + "=" + o.cookie.Value[:10], "a longer one": o.cookie.Name + "=" + o.cookie.Value + "A",
		"under another name": "session=" + o.cookie.Value,
	} {
		for _, path := range []string{"", "app.js", "api/v1/overview", "api/v1/live", "nothing"} {
			got := ask(t.Context(), o.server, http.MethodGet, o.base+path, func(r *http.Request) {
				if cookie != "" {
					r.Header.Set("Cookie", cookie)
				}
			})
			if got.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s asks for %q: %d", reason, path, got.StatusCode)
			}
		}
	}

	if !o.cookie.HttpOnly || o.cookie.SameSite != http.SameSiteStrictMode || o.cookie.Path != o.base || o.cookie.MaxAge != 0 {
		t.Errorf("the cookie is %v; no script and no other port may have it, and it ends with the browser", o.cookie)
	}
}

// TestLinkServesOnce holds that what stays in a history, in a list of processes or on a screen lets nobody in.
func TestLinkServesOnce(t *testing.T) {
	t.Parallel()

	server, err := page.New(address, &fixture{})
	if err != nil {
		t.Fatal(err)
	}

	link := server.Link()

	for reason, change := range map[string]func(*http.Request){
		"a link on another site": with("Sec-Fetch-Site", "cross-site"), "another origin": with("Origin", "http://evil.example"),
		"a name that was rebound": func(r *http.Request) { r.Host = "evil.example" },
		"a guess":                 func(r *http.Request) { r.URL.RawQuery = "token=" + strings.Repeat("A", 43) },
		"a frame on another site": navigation("iframe"), "a script on another site": fromElsewhere("no-cors", "script"),
		"an application beside": func(r *http.Request) {
			navigation("document")(r)
			r.Header.Set("Sec-Fetch-Site", "same-site")
		},
		"a form on another site": func(r *http.Request) {
			navigation("document")(r)
			r.Header.Set("Origin", "null")
		},
		"no token":   func(r *http.Request) { r.URL.RawQuery = "" },
		"two tokens": func(r *http.Request) { r.URL.RawQuery = "token=A&" + r.URL.RawQuery },
	} {
		if got := ask(t.Context(), server, http.MethodGet, link, change); len(got.Cookies()) > 0 || got.StatusCode < 400 {
			t.Errorf("%s: %d, %v", reason, got.StatusCode, got.Cookies())
		}
	}

	if got := ask(t.Context(), server, http.MethodHead, link, nil); len(got.Cookies()) > 0 {
		t.Error("a look at the head, as a chat program takes one of a link, used it")
	}

	first := ask(t.Context(), server, http.MethodGet, link, nil)
	if first.StatusCode != http.StatusSeeOther || strings.Contains(first.Header.Get("Location"), "token") {
		t.Fatalf("the link answers %d and leads to %s", first.StatusCode, first.Header.Get("Location"))
	}

	if again := ask(t.Context(), server, http.MethodGet, link, nil); again.StatusCode != http.StatusUnauthorized {
		t.Errorf("the link serves twice: %d", again.StatusCode)
	}

	next := server.Link()
	if next == link {
		t.Error("there is no new link for another browser")
	}

	token, _ := url.Parse(next)
	if strings.Contains(first.Header.Get("Set-Cookie"), token.Query().Get("token")) {
		t.Error("the session's secret stands in a link")
	}
}

// fromElsewhere makes a request one that a browser sends for a page of another site, or of no site.
func fromElsewhere(mode, destination string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		r.Header.Set("Sec-Fetch-Mode", mode)
		r.Header.Set("Sec-Fetch-Dest", destination)
	}
}

func navigation(destination string) func(*http.Request) {
	return fromElsewhere("navigate", destination)
}

// TestAFileLeadsIn holds that the file that ambit serve --open makes leads a browser in, though it is no page of this server. A
// browser sends no cookie of this server along a way that began elsewhere, so the answer is a page from which it goes on by
// itself. That is all that a way from elsewhere leads to.
func TestAFileLeadsIn(t *testing.T) {
	t.Parallel()

	server, err := page.New(address, &fixture{})
	if err != nil {
		t.Fatal(err)
	}

	link := server.Link()

	for reason, target := range map[string]string{"no token": "/", "a guess": "/?token=" + strings.Repeat("A", 43)} {
		got := ask(t.Context(), server, http.MethodGet, target, navigation("document"))
		if got.StatusCode != http.StatusUnauthorized || len(got.Cookies()) > 0 {
			t.Errorf("%s: %d, %v", reason, got.StatusCode, got.Cookies())
		}
	}

	got := ask(t.Context(), server, http.MethodGet, link, navigation("document"))
	if got.StatusCode != http.StatusOK || len(got.Cookies()) != 1 || got.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("the link answers %d with %v", got.StatusCode, got.Header)
	}

	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}

	_, rest, _ := strings.Cut(string(text), `content="0; url=`)
	base, _, _ := strings.Cut(rest, `"`)
	cookie := got.Cookies()[0]

	session := func(change func(*http.Request)) int {
		return ask(t.Context(), server, http.MethodGet, base, func(r *http.Request) {
			r.AddCookie(cookie)
			change(r)
		}).StatusCode
	}

	if base != cookie.Path || session(with("Sec-Fetch-Site", "same-origin")) != http.StatusOK {
		t.Errorf("it leads to %q and not in:\n%s", base, text)
	}

	if status := session(navigation("document")); status != http.StatusForbidden {
		t.Errorf("a link on another site leads in: %d", status)
	}

	if again := ask(t.Context(), server, http.MethodGet, link, navigation("document")); again.StatusCode != http.StatusUnauthorized {
		t.Errorf("the link serves twice: %d", again.StatusCode)
	}
}

// TestOnlyLooks holds that there is nothing but to read.
func TestOnlyLooks(t *testing.T) {
	t.Parallel()

	o := open(t, &fixture{})

	for _, method := range []string{
		http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions, http.MethodConnect,
		http.MethodTrace, "BREW",
	} {
		for _, path := range []string{"", "api/v1/overview"} {
			got := ask(t.Context(), o.server, method, o.base+path, func(r *http.Request) { r.AddCookie(o.cookie) })
			if got.StatusCode != http.StatusMethodNotAllowed || got.Header.Get("Allow") != "GET, HEAD" {
				t.Errorf("%s %s: %d, Allow %s", method, path, got.StatusCode, got.Header.Get("Allow"))
			}
		}
	}
}

// TestNoOtherFile holds that a path is a name in a short list and nothing else.
func TestNoOtherFile(t *testing.T) {
	t.Parallel()

	o := open(t, &fixture{})

	for _, path := range []string{
		"../", "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "static/../../page.go", "static/app.js",
		"./app.js", "app.js/", "app.js%00", "/app.js", `..\..\page.go`, "api/v1/", "api/v1/../v1/overview", "api/v2/overview", "APP.JS",
	} {
		if got := o.get(path, nil); got.StatusCode != http.StatusNotFound && got.StatusCode != http.StatusUnauthorized {
			t.Errorf("%q: %d", path, got.StatusCode)
		}
	}
}

// TestHeaders holds what a browser is told to keep from the page, whatever the answer.
func TestHeaders(t *testing.T) {
	t.Parallel()

	o := open(t, &fixture{})

	for name, got := range map[string]*http.Response{
		"page": o.get("", nil), "script": o.get("app.js", nil), "data": o.get("api/v1/overview", nil), "missing": o.get("nothing", nil),
		"stranger": ask(t.Context(), o.server, http.MethodGet, o.base, nil),
	} {
		policy := got.Header.Get("Content-Security-Policy")

		for _, want := range []string{
			"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'",
			"base-uri 'none'", "form-action 'none'", "require-trusted-types-for 'script'",
		} {
			if !strings.Contains(policy, want) {
				t.Errorf("%s: the policy lacks %s: %s", name, want, policy)
			}
		}

		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
			t.Errorf("%s: the policy lets in too much: %s", name, policy)
		}

		for header, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
			"Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin", "X-Frame-Options": "DENY",
		} {
			if got.Header.Get(header) != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got.Header.Get(header), want)
			}
		}

		if got.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: others may read it", name)
		}
	}
}

// TestPageHoldsNothingInline holds that the policy costs nothing: there is no script or style in the page itself, nothing from
// elsewhere, and no way in the script to make markup of a string.
func TestPageHoldsNothingInline(t *testing.T) {
	t.Parallel()

	o := open(t, &fixture{})
	markup, script := bodyOf(o.get("", nil)), bodyOf(o.get("app.js", nil))+bodyOf(o.get("app.css", nil))

	if strings.Contains(markup, "<script>") || strings.Contains(markup, "<style") || strings.Contains(markup, " style=") ||
		strings.Contains(markup, " on") && strings.Contains(markup, "onclick") {
		t.Error("there is a script or a style in the page itself")
	}

	for _, word := range []string{
		"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "localStorage", "//cdn", "@import",
		"https://",
	} {
		if strings.Contains(script, word) || strings.Contains(markup, word) {
			t.Errorf("the page has %q", word)
		}
	}
}

// TestQuestionsAreNames holds that nothing reaches the cluster that is no name, and that nothing comes back but JSON.
func TestQuestionsAreNames(t *testing.T) {
	t.Parallel()

	f := &fixture{}
	o := open(t, f)

	for _, path := range []string{
		"operators?namespace=", "operators", "operators?namespace=A_B", "operators?namespace=../kube-system",
		"operators?namespace=a%00b", "operators?namespace=" + strings.Repeat("a", 64), "why?account=ops&namespace=a",
		"why?account=ops/a/b&namespace=a", "why",
		"why?account=ops/%3Cscript%3E&namespace=a", "why?account=ops/op&namespace=a&verb=get", "why?account=ops/op&namespace=a&name=x",
		"who-can", "who-can?verb=&resource=secrets&namespace=a", "who-can?verb=get&resource=&namespace=a",
		"who-can?verb=get&resource=" + strings.Repeat("s", 600) + "&namespace=a",
		"who-can?verb=get%0a&resource=secrets&namespace=a",
		"who-can?verb=get&resource=secrets&namespace=A_B", "who-can?verb=get&resource=/log",
		"who-can?verb=get&resource=secrets&name=%1b",
		"people", "people?name=%20", "people?name=%1b", "people?name=" + strings.Repeat("s", 600),
		"events?scope=", "events?scope=NamespaceScope", "events?scope=Pod%20a/b",
		"cell?operator=x&namespace=a", "cell?operator=999&namespace=a",
	} {
		got := o.get("api/v1/"+path, nil)
		if got.StatusCode != http.StatusBadRequest || got.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %d as %s", path, got.StatusCode, got.Header.Get("Content-Type"))
		}

		if text := bodyOf(got); strings.Count(text, page.ErrQuestion.Error()) != 1 {
			t.Errorf("%s: %s", path, text)
		}
	}

	if f.asked.Load() != 0 {
		t.Errorf("%d questions reached the cluster", f.asked.Load())
	}
}

// TestHostileNames holds that names are data: the JSON gives back what was there, and has nothing in it that could be taken for
// markup, or that shows otherwise than it is.
func TestHostileNames(t *testing.T) {
	t.Parallel()

	hostile := []string{
		`<script>document.title="pwned"</script>`, `"><img src=x onerror=alert(1)>`, "a\u202eevil", "line\nfeed", "\x1b[31mred",
		"nul\x00", strings.Repeat("long-", 50), "</script>", "{{.}}", "\u2028",
	}
	o := open(t, &fixture{names: hostile})

	text := bodyOf(o.get("api/v1/overview", nil))
	for _, raw := range []string{"<", "\u202e", "\x1b", "\x00", "\u2028"} {
		if strings.Contains(text, raw) {
			t.Errorf("the answer holds %q as it is", raw)
		}
	}

	var data struct {
		Chart page.Chart `json:"chart"`
	}
	if err := json.Unmarshal([]byte(text), &data); err != nil {
		t.Fatal(err)
	}

	for _, name := range hostile {
		found := false
		for _, operator := range data.Chart.Operators {
			found = found || operator.Name == name
		}

		if !found {
			t.Errorf("%q is not among the operators", name)
		}
	}
}
