package page_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	corev1 "k8s.io/api/core/v1"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

func newConfigMap() *corev1.ConfigMap { return &corev1.ConfigMap{} }

// text is what an element shows.
func (b *browser) text(of string) string {
	b.Helper()

	var text string
	b.run(chromedp.Evaluate("document.querySelector("+quote(of)+")?.textContent ?? ''", &text))

	return text
}

// sees waits for words, on a busy machine for longer than anybody would at a page.
func (b *browser) sees(of, words string) {
	b.Helper()

	text := ""
	for range 600 {
		if text = b.text(of); strings.Contains(text, words) {
			return
		}

		time.Sleep(50 * time.Millisecond)
	}

	b.Errorf("%s never shows %q, but %q", of, words, text[:min(len(text), 1500)])
}

// promptly holds that something is seen within a time, once in three turns: on a busy machine any one of them may be late. The
// first turn is "".
func (b *browser) promptly(what string, limit time.Duration, see func(turn string)) {
	b.Helper()

	for _, turn := range []string{"", "-again", "-once-more"} {
		began := time.Now()

		see(turn)

		took := time.Since(began)
		b.Logf("%s%s is seen after %s", what, turn, took)

		if took <= limit {
			return
		}
	}

	b.Errorf("%s is never seen within %s", what, limit)
}

func (b *browser) lacks(of, words string) {
	b.Helper()

	if text := b.text(of); strings.Contains(text, words) {
		b.Errorf("%s shows %q: %q", of, words, text)
	}
}

// empty takes out what is in the search, which has to have the focus or get it.
var empty = chromedp.Evaluate(`document.getElementById("search").value = ""`, nil)

// TestAFileLeadsIn holds that a browser which opens the file of ambit serve --open comes to see the page, and may use it.
func TestAFileLeadsIn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "open.html")
	if err := os.WriteFile(file, []byte(served(t, newFixture(3, 5)).LinkPage()), 0o600); err != nil {
		t.Fatal(err)
	}

	b := open(t, "file://"+file)

	var address string

	b.run(chromedp.Location(&address))

	if !strings.HasPrefix(address, "http://127.0.0.1:") || strings.Contains(address, "token") {
		t.Errorf("the browser is at %s", address)
	}
}

// TestKeyboard holds that each view, the search and the panel can be used without a mouse.
func TestKeyboard(t *testing.T) {
	b := open(t, serve(t, newFixture(12, 30)))

	b.run(chromedp.KeyEvent("/"), empty, chromedp.KeyEvent("cloudpak-02"), chromedp.WaitVisible("#found [role=option]"), chromedp.KeyEvent(kb.Enter))
	b.sees("#aside", "cloudpak-02")
	b.run(chromedp.Evaluate("document.activeElement.blur()", nil), chromedp.KeyEvent(kb.Escape))
	b.run(chromedp.Poll("document.getElementById('aside').hidden", nil))

	b.visit("#view=matrix")
	b.run(chromedp.Focus("[role=grid]", chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowRight), chromedp.KeyEvent(kb.Enter))
	b.sees("#aside", "in analytics-02")

	var active string
	b.run(chromedp.Evaluate(`(() => { const grid = document.querySelector('[role=grid]');
		return document.getElementById(grid.getAttribute('aria-activedescendant')).textContent; })()`, &active))

	if !strings.Contains(active, "in analytics-02: ") {
		t.Errorf("a reader of screens hears %q", active)
	}

	// By Tab alone to a node of the map, and into it.
	b.visit("#view=map")
	b.run(chromedp.Evaluate("document.getElementById('theme').focus()", nil), chromedp.KeyEvent(kb.Tab))

	for range 60 {
		var on string
		b.run(chromedp.Evaluate("document.activeElement.className", &on))

		if strings.Contains(on, "node block") {
			b.run(chromedp.KeyEvent(kb.Enter))
			b.sees("#aside", "Namespaces")

			return
		}

		b.run(chromedp.KeyEvent(kb.Tab))
	}

	t.Error("no block can be reached by Tab")
}

// TestSearchUnderstands holds what is found, and that a link leads where one was.
func TestSearchUnderstands(t *testing.T) {
	b := open(t, serve(t, newFixture(12, 30)))

	for typed, want := range map[string]string{
		"secretman": "ibm-common-services/secretman", "payments-0": "namespace", "databases": "NamespaceScope data-platform/databases",
		"may ibm-common-services/secretman create pods in payments-01": "May ibm-common-services/secretman create pods in payments-01?",
		"Who may read Secrets in payments-01?":                         "Who may get secrets in payments-01?",
		"who can list nodes":                                           "Who may list nodes in the whole cluster?",
		"deployments":                                                  "Who may create deployments in the whole cluster?",
		"who can see the Secrets in the namespace payments-01?":        "Who may get secrets in payments-01?",
		"who may list pods of payments-01":                             "Who may list pods in payments-01?",
		"who may list pods in the whole cluster":                       "Who may list pods in the whole cluster?",
		"can jane read secrets in payments-01":                         "Who may get secrets in payments-01?",
		"jane":                                                         "Who is called jane?",
		"what may jane@example.com do?":                                "Who is called jane@example.com?",
	} {
		b.run(empty, chromedp.SendKeys("#search", typed, chromedp.ByQuery))
		b.sees("#found", want)
	}

	b.visit("#view=map&panel=who&verb=get&resource=secrets&namespace=payments-01")
	b.sees("#aside", "auditors")
	b.sees("#aside", "NamespaceScope ibm-common-services/common-service")
	b.sees("#aside", "you may not list ClusterRoles, so others may be able to")
	b.sees("#aside", "ambit who-can get secrets -n payments-01")

	b.visit("#view=map&panel=person&name=jane")
	b.sees("#aside", "jane@example.com")
	b.sees("#aside", "ClusterRole edit")
	b.sees("#aside", "you may not list ClusterRoleBindings, so there may be others")
	b.visit("#view=map&panel=person&name=zoe")
	b.sees("#aside", "zoe@example.com")

	b.visit("#view=matrix&only=wrong&panel=scope&scope=NamespaceScope+ibm-common-services/common-service")
	b.run(chromedp.Reload(), chromedp.WaitVisible("body[data-version]"))
	b.sees("#aside", "MembersFailed")

	var only bool
	b.run(chromedp.Evaluate("document.querySelector('.controls input[type=checkbox]').checked", &only))

	if !only {
		t.Error("after a reload, the matrix is another")
	}
}

// TestPlan holds that what would change is on the map, marked and in words, and that the page says how to see a plan when there
// are no files.
func TestPlan(t *testing.T) {
	f := newFixture(12, 30)
	f.files = true
	b := open(t, serve(t, f))
	b.visit("#view=plan")
	b.sees("#view .plan-summary", "Something would be refused.")
	b.sees("#view .plan-summary", "NamespaceScope ibm-common-services/common-service: changed")

	for name, want := range map[string]string{
		"newcomer": "would join", "stranger": "would be refused", f.name(0): "would leave", f.name(6): "would change",
	} {
		b.visit("#view=plan&panel=namespace&namespace=" + name)
		b.sees("#aside .mark", want)
		b.sees(`#view [aria-current="true"]`, want)
	}

	b.visit("#view=plan&panel=namespace&namespace=" + f.name(1))
	b.sees("#aside", "Nothing in "+f.name(1))

	var marked int
	b.run(chromedp.Evaluate(`document.querySelectorAll("#view .bands .created, #view .bands .deleted, #view .bands .refused").length`, &marked))

	if marked < 3 {
		t.Errorf("%d bands are marked", marked)
	}

	none := open(t, serve(t, newFixture(12, 30)))
	none.visit("#view=plan")
	none.sees("#view", "ambit serve -f FILE")
}

// TestLive holds that a change reaches every tab within two seconds, and is marked.
func TestLive(t *testing.T) {
	f := newFixture(12, 30)
	b := open(t, serve(t, f))

	b.promptly("a change", 2*time.Second, func(turn string) {
		f.join("newcomer" + turn)
		b.visit("#view=changes")
		b.sees("#view", "newcomer"+turn)
	})
	b.picture("page-changes")
}

// TestLiveForLong holds that a change is marked also where there were more before the page was opened than are remembered.
func TestLiveForLong(t *testing.T) {
	f := newFixture(12, 30)
	b := open(t, serve(t, f))
	many := make([]string, 600)

	for i := range many {
		many[i] = fmt.Sprintf("NamespaceScope ops/scope-%03d", i)
	}

	f.joins("crowded", many...)
	b.visit("#view=changes")
	b.sees("#view", "scope-599")

	b.run(chromedp.Reload(), chromedp.WaitVisible("body[data-version]"))
	b.sees("#view", "scope-599")
	b.lacks("#view li.new", "crowded")

	f.join("newcomer")
	b.sees("#view li.new", "newcomer")

	b.visit("#view=map")
	f.join("another")
	b.sees("#tabs a[href*=changes]", "1")
}

// TestAccessible has axe-core look for faults in each view, in light and dark.
func TestAccessible(t *testing.T) {
	axe, err := os.ReadFile(filepath.Join(embedded.Root(), "bin", "web", "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Skip("SKIPPED: axe-core is not there, so nobody looks for faults; hack/web.sh fetches it")
	}

	f := newFixture(12, 30)
	f.files = true
	b := open(t, serve(t, f))
	b.run(chromedp.Evaluate(string(axe)+";0", nil))

	for _, hash := range []string{
		"#view=map", "#view=matrix", "#view=wrong", "#view=changes", "#view=map&panel=block&namespace=cloudpak-01",
		"#view=matrix&panel=cell&operator=ibm-common-services/secretman&namespace=cloudpak-01", "#view=map&panel=namespace&namespace=sandbox-03",
		"#view=map&panel=scope&scope=NamespaceScope+ibm-common-services/common-service",
		"#view=map&panel=who&verb=get&resource=secrets&namespace=payments-01", "#view=plan&panel=namespace&namespace=stranger",
	} {
		for _, theme := range []string{"light", "dark"} {
			b.visit(hash + "&theme=" + theme)

			var found string
			b.run(chromedp.Sleep(250*time.Millisecond), chromedp.Evaluate(`axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(
				r.violations.map(v => ({id: v.id, help: v.help, nodes: v.nodes.slice(0, 3).map(n => n.html.slice(0, 160) + " " + n.failureSummary)}))))`,
				&found, chromedp.EvalAsValue, awaited))

			var faults []any
			if err := json.Unmarshal([]byte(found), &faults); err != nil || len(faults) > 0 {
				t.Errorf("%s, %s: %v %s", hash, theme, err, found)
			}
		}
	}
}

// TestSchemes holds that the page follows what the system prefers.
func TestSchemes(t *testing.T) {
	b := open(t, serve(t, newFixture(3, 6)))

	for scheme, want := range map[string]string{"light": "rgb(251, 251, 250)", "dark": "rgb(18, 23, 29)"} {
		var ground string

		b.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
			chromedp.Evaluate("getComputedStyle(document.body).backgroundColor", &ground))

		if ground != want {
			t.Errorf("%s: the ground is %s, want %s", scheme, ground, want)
		}
	}
}
