// Package page_test drives the page of ambit serve in a real browser.
package page_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/ambit-k8s/ambit/internal/page"
)

// TestMain goes to the root of the repository, where the programs are that the tests start.
func TestMain(m *testing.M) {
	if err := os.Chdir(filepath.Join("..", "..")); err != nil {
		panic(err)
	}

	os.Exit(m.Run())
}

// chromium returns the path of the browser. Without one the test is skipped, and says so.
func chromium(t *testing.T) string {
	t.Helper()

	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}

	t.Skip("SKIPPED: there is no chromium here, so nobody drives the page; install Debian's package chromium")

	return ""
}

// browser is one with the page open.
type browser struct {
	*testing.T

	ctx  context.Context
	link string
}

// open opens a page in a browser of its own.
func open(t *testing.T, link string, more ...chromedp.ExecAllocatorOption) *browser {
	t.Helper()

	// The browser writes to its folder still while it ends.
	profile, err := os.MkdirTemp("", "ambit-browser-")
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = os.RemoveAll(profile) })

	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.WindowSize(1440, 900),
		chromedp.UserDataDir(profile))
	allocated, stop := chromedp.NewExecAllocator(t.Context(), append(options, more...)...)
	t.Cleanup(stop)

	ctx, cancel := chromedp.NewContext(allocated)
	t.Cleanup(cancel)

	timed, end := context.WithTimeout(ctx, time.Minute)
	t.Cleanup(end)

	b := &browser{t, timed, link}

	chromedp.ListenTarget(ctx, func(event any) {
		switch event := event.(type) {
		case *runtime.EventExceptionThrown:
			t.Errorf("the page's script fails: %s", event.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			t.Logf("the browser says: %s %s", event.Entry.Text, event.Entry.URL)
		}
	})
	b.run(log.Enable(), chromedp.Navigate(link), chromedp.WaitVisible("body[data-version]"))

	return b
}

func (b *browser) run(actions ...chromedp.Action) {
	b.Helper()

	if err := chromedp.Run(b.ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// serve serves a source, and returns the link that lets in.
func serve(t *testing.T, source page.Source) string {
	t.Helper()

	return served(t, source).Link()
}

func served(t *testing.T, source page.Source) *page.Server {
	t.Helper()

	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	server, err := page.New(listener.Addr().String(), source)
	if err != nil {
		t.Fatal(err)
	}

	go server.Run(t.Context())
	go func() { _ = server.Serve(t.Context(), listener) }()

	return server
}

// picture keeps what is seen, in the docs with AMBIT_PICTURES=docs.
func (b *browser) picture(name string) {
	b.Helper()

	var image []byte
	b.run(chromedp.Sleep(300*time.Millisecond), chromedp.CaptureScreenshot(&image))

	if len(image) < 5000 {
		b.Errorf("the picture %s has %d bytes", name, len(image))
	}

	if folder := os.Getenv("AMBIT_PICTURES"); folder != "" {
		if err := os.WriteFile(folder+"/"+name+".png", image, 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

func (b *browser) visit(hash string) {
	b.Helper()
	b.run(chromedp.Evaluate("location.hash = "+quote(hash), nil), chromedp.Sleep(200*time.Millisecond))
}
