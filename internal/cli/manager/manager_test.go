package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/ambit-k8s/ambit/internal/predict"
)

// TestWhoAmIWaitsForTheAPIServer: one that starts refuses everybody at first, and a manager that starts with it does not end.
func TestWhoAmIWaitsForTheAPIServer(t *testing.T) {
	t.Parallel()

	var asked atomic.Int32

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/selfsubjectreviews") {
			http.NotFound(w, r)

			return
		}

		w.Header().Set("Content-Type", "application/json")

		if asked.Add(1) == 1 {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403}`))

			return
		}

		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte(`{"kind":"SelfSubjectReview","apiVersion":"authentication.k8s.io/v1",
			"status":{"userInfo":{"username":"ambit"}}}`))
	}))
	t.Cleanup(server.Close)

	if name, err := whoAmI(t.Context(), &rest.Config{Host: server.URL}); name != "ambit" || err != nil {
		t.Errorf("got %q (%v)", name, err)
	}

	if n := asked.Load(); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

// TestAskedToEnd: a manager that is asked to end while it begins has not failed; one that is not asked has, and so has one that
// does not end in time.
func TestAskedToEnd(t *testing.T) {
	t.Parallel()

	ctx, ask := context.WithCancel(t.Context())
	broken := errors.New("cache did not sync")

	if err := ended(ctx, logr.Discard(), broken); !errors.Is(err, broken) {
		t.Errorf("not asked: got %v", err)
	}

	ask()

	if err := ended(ctx, logr.Discard(), broken); err != nil {
		t.Errorf("asked: got %v", err)
	}

	late := fmt.Errorf("waiting: %w", context.DeadlineExceeded)
	if err := ended(ctx, logr.Discard(), late); !errors.Is(err, late) {
		t.Errorf("too late: got %v", err)
	}
}

// TestTheCommandLineReadsTheManagersFlags: commands that look how the manager runs know each of its flags, with its type. Those
// that they go by have the same default.
func TestTheCommandLineReadsTheManagersFlags(t *testing.T) {
	t.Parallel()

	var m predict.Manager

	known, unused := m.Flags(), []string{
		"kubeconfig", "leader-elect", "metrics-bind-address", "metrics-secure", "metrics-cert-dir", "health-probe-bind-address",
		"default-scope", "concurrent-writes",
	}

	var has, read []string

	Command("v0").Flags().VisitAll(func(f *pflag.Flag) {
		has = append(has, f.Name+" "+f.Value.Type())

		if of := known.Lookup(f.Name); of != nil && of.DefValue != f.DefValue && !slices.Contains(unused, f.Name) {
			t.Errorf("--%s is %q without being given, and %q to the command line", f.Name, f.DefValue, of.DefValue)
		}
	})
	known.VisitAll(func(f *pflag.Flag) { read = append(read, f.Name+" "+f.Value.Type()) })

	if !slices.Equal(has, read) {
		t.Errorf("the manager has the flags %q, and the command line reads %q", has, read)
	}
}

// TestUnusableCertificateIsNamed: whoever starts a manager learns which file is of no use.
func TestUnusableCertificateIsNamed(t *testing.T) {
	t.Parallel()

	dir := t.TempDir()
	for _, name := range []string{certName, keyName} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	_, err := (&Options{metricsCertDir: dir}).metricsTLS(nil)
	if err == nil || !strings.Contains(err.Error(), "--metrics-cert-dir") {
		t.Error(err)
	}
}

// TestDefaultScopeIsServed: whoever asks for a scope in a namespace that is not served is told. By default there is none there.
func TestDefaultScopeIsServed(t *testing.T) {
	for reason, tc := range map[string]struct {
		args []string
		says string
	}{
		"it is left out":         {[]string{"--namespaces=a,b", "--default-scope"}, "--namespaces leaves out; add it there"},
		"nobody asked for it":    {[]string{"--namespaces=a,b"}, ""},
		"nor does this one":      {[]string{"--namespaces=a,b", "--default-scope=false"}, ""},
		"it is one of them":      {[]string{"--namespaces=a,ops", "--default-scope"}, ""},
		"all of them are served": {[]string{"--default-scope"}, ""},
	} {
		t.Setenv("OPERATOR_NAMESPACE", "ops")

		c := Command("v0")
		c.SilenceErrors, c.SilenceUsage = true, true
		c.SetArgs(append(tc.args, "--kubeconfig="+filepath.Join(t.TempDir(), "nowhere")))

		// A cluster that is not there is what comes next.
		want := cmp.Or(tc.says, "nowhere")
		if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", reason, err, want)
		}
	}
}
