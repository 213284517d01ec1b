package serve

import (
	"bytes"
	"context"
	"html"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ambit-k8s/ambit/internal/page"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// TestOpenTellsNoOtherUser holds that the link of --open stands on no command line, which every user of the machine can read, but
// in a file that nobody else can. The file leads the browser in, and is gone once it did, or the command ends.
func TestOpenTellsNoOtherUser(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the browser of other systems is started by another program")
	}

	for name, come := range map[string]bool{"the browser comes": true, "the command ends": false} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			t.Setenv("TMPDIR", t.TempDir())
			t.Setenv("PATH", folder+":"+os.Getenv("PATH"))

			script := "#!/bin/sh\nprintf '%s\\n' \"$0\" \"$@\" >" + folder + "/new && mv " + folder + "/new " + folder + "/arguments\n"
			if err := os.WriteFile(filepath.Join(folder, "xdg-open"), []byte(script), 0o700); err != nil {
				t.Fatal(err)
			}

			listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}

			server, err := page.New(listener.Addr().String(), nil)
			if err != nil {
				t.Fatal(err)
			}

			ctx, end := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			o := &Options{Open: true}
			o.Out, o.ErrOut = terminal.NewWriter(&bytes.Buffer{}), terminal.NewWriter(&bytes.Buffer{})

			go func() { ended <- o.serve(ctx, server, listener) }()

			arguments := strings.Split(strings.TrimSpace(whenThere(t, filepath.Join(folder, "arguments"))), "\n")
			if len(arguments) != 2 || strings.Contains(strings.Join(arguments, " "), "token=") {
				t.Fatalf("the browser is started by %q", arguments)
			}

			isPrivate(t, arguments[1])

			if come {
				enters(t, server, whenThere(t, arguments[1]))
			} else {
				end()
			}

			whenGone(t, filepath.Dir(arguments[1]))
			end()

			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// isPrivate holds that nobody else can read a file.
func isPrivate(t *testing.T, file string) {
	t.Helper()

	for path, want := range map[string]fs.FileMode{file: 0o600, filepath.Dir(file): 0o700 | fs.ModeDir} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v (%v), want %v", path, info, err, want)
		}
	}
}

// enters does what a browser does with a file, and holds that it is let in.
func enters(t *testing.T, server *page.Server, text string) {
	t.Helper()

	_, rest, _ := strings.Cut(text, `content="0; url=`)
	address, _, _ := strings.Cut(rest, `"`)

	if address = html.UnescapeString(address); address != server.Link() {
		t.Fatalf("the file leads to %q:\n%s", address, text)
	}

	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}

	for name, value := range map[string]string{"Site": "cross-site", "Mode": "navigate", "Dest": "document"} {
		r.Header.Set("Sec-Fetch-"+name, value)
	}

	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close() //nolint:errcheck // It was only read.

	if got.StatusCode != http.StatusOK || len(got.Cookies()) != 1 {
		t.Errorf("the file leads to %d with %d cookies", got.StatusCode, len(got.Cookies()))
	}
}

// patience is more than a busy machine needs.
const patience = 30 * time.Second

func whenThere(t *testing.T, file string) string {
	t.Helper()

	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if text, err := os.ReadFile(file); err == nil {
			return string(text)
		}
	}

	t.Fatalf("%s never comes", file)

	return ""
}

func whenGone(t *testing.T, path string) {
	t.Helper()

	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(path); os.IsNotExist(err) {
			return
		}
	}

	t.Errorf("%s never goes", path)
}
