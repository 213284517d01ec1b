package picture_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// probe uses the page as somebody would, by mouse and by keyboard, and writes down what it saw.
const probe = `<script>
(function () {
  const seen = {};
  const detail = function () { return document.getElementById("detail").textContent; };
  const key = function (name) {
    document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));
  };
  const type = function (id, text) {
    const field = document.getElementById(id);
    field.value = text;
    field.dispatchEvent(new Event("input"));
  };
  const shown = function () { return document.getElementById("shown").textContent; };
  const label = function () { return document.activeElement.getAttribute("aria-label"); };

  seen.welcome = detail();
  seen.stops = document.querySelectorAll("td[tabindex='0']").length;
  document.querySelector("td.served").click();
  seen.click = detail();
  seen.focus = label();
  key("ArrowRight");
  seen.right = label();
  key("ArrowDown");
  key("Enter");
  seen.enter = detail();
  key("Escape");
  seen.escape = detail();
  type("namespace", "team-00");
  seen.namespaces = shown();
  type("namespace", "");
  document.getElementById("wrong").checked = true;
  type("operator", "op-01");
  seen.wrong = shown();
  document.querySelector("td.failed:not([hidden])").click();
  seen.failed = detail();
  seen.title = document.title;
  seen.back = getComputedStyle(document.body).backgroundColor;
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
}());
</script></body>`

// chromium returns the path of the browser. Without one the test is skipped, and says so.
func chromium(t *testing.T) string {
	t.Helper()

	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}

	t.Skip("SKIPPED: there is no chromium here, so nobody looks at the page; install Debian's package chromium")

	return ""
}

func browse(t *testing.T, path string, arguments ...string) []byte {
	t.Helper()

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()

	arguments = append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--user-data-dir=" + t.TempDir(), "--virtual-time-budget=5000",
	}, arguments...)

	out, err := exec.CommandContext(ctx, chromium(t), append(arguments, "file://"+path)...).Output()
	if err != nil {
		t.Fatalf("chromium: %v", err)
	}

	return out
}

var result = regexp.MustCompile(`(?s)<pre id="seen">(.*?)</pre>`)

func TestPageInABrowser(t *testing.T) {
	t.Parallel()
	chromium(t)

	page := strings.Replace(string(pageOf(t, matrix(50, 200))), "</body>", probe, 1)
	path := filepath.Join(t.TempDir(), "page.html")

	if err := os.WriteFile(path, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}

	for scheme, tc := range map[string]struct{ setting, back string }{
		"light": {"preferredColorScheme=1", "rgb(255, 255, 255)"}, "dark": {"preferredColorScheme=0", "rgb(18, 22, 28)"},
	} {
		found := result.FindSubmatch(browse(t, path, "--dump-dom", "--blink-settings="+tc.setting))
		if found == nil {
			t.Fatal("the page's script did not run to its end")
		}

		var seen map[string]any

		text := strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&", "&quot;", `"`).Replace(string(found[1]))
		if err := json.Unmarshal([]byte(text), &seen); err != nil {
			t.Fatalf("%v: %s", err, text)
		}

		for what, words := range map[string]string{
			"welcome":    "Choose a cell",
			"click":      "ops/op-00 in team-000For NamespaceScope ops/sRole ops/op-00bound by RoleBinding ops/op-00get, list secrets",
			"focus":      "ops/op-00 in team-000: served",
			"right":      "ops/op-00 in team-001: served",
			"enter":      "ops/op-01 in team-001For NamespaceScope ops/s",
			"escape":     "Choose a cell",
			"namespaces": "50 of 50 operators, 10 of 200 namespaces",
			"wrong":      "1 of 50 operators, 79 of 200 namespaces",
			"failed":     "AuthorizationRequired: " + hostile,
			"title":      "Ambit: operators and namespaces",
			"back":       tc.back,
		} {
			if got, _ := seen[what].(string); !strings.Contains(got, words) {
				t.Errorf("%s, %s: %q, want %q", scheme, what, got, words)
			}
		}

		if seen["stops"] != 1.0 {
			t.Errorf("%s: the grid has %v stops of the Tab key, want one", scheme, seen["stops"])
		}
	}
}

// TestScreenshot holds that the page can be drawn. AMBIT_SCREENSHOT names a file to keep it in, for somebody to look at.
func TestScreenshot(t *testing.T) {
	t.Parallel()
	chromium(t)

	dir := t.TempDir()
	path, shot := filepath.Join(dir, "page.html"), filepath.Join(dir, "page.png")

	if err := os.WriteFile(path, pageOf(t, matrix(8, 24)), 0o600); err != nil {
		t.Fatal(err)
	}

	browse(t, path, "--window-size=1200,760", "--hide-scrollbars", "--screenshot="+shot)

	picture, err := os.ReadFile(shot)
	if err != nil || len(picture) < 10_000 {
		t.Fatalf("the picture has %d bytes: %v", len(picture), err)
	}

	if kept := os.Getenv("AMBIT_SCREENSHOT"); kept != "" {
		if err := os.WriteFile(kept, picture, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
