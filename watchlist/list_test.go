package watchlist

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

func TestParse(t *testing.T) {
	for _, test := range []struct{ list, want, reason string }{
		{"", "", "an empty list serves nothing"},
		{" \n", "", "and so does one of blanks"},
		{"b,a", "a,b", "names are sorted"},
		{"a, b\nc,a", "a,b,c", "people write blanks and doubles"},
		{"*", "*", "all namespaces are said in so many words"},
	} {
		if got, err := parse(test.list); err != nil || got.String() != test.want {
			t.Errorf("%s: parse(%q) = %q, %v; want %q", test.reason, test.list, got, err, test.want)
		}
	}

	for _, list := range []string{"*,a", "a,B", "a/b", "../a", "a\x1b[2J", strings.Repeat("a", 64), "a;b", "kube-system,\"\""} {
		if got, err := parse(list); err == nil {
			t.Errorf("parse(%q) = %q; a list that is not understood is refused as a whole", list, got)
		} else if strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("parse(%q) hands on a control character: %q", list, err)
		}
	}

	if (namespaces{}).has("") || !(namespaces{all: true}).has("") {
		t.Error("an empty list is not all namespaces")
	}
}

func TestTwoSourcesAreRefused(t *testing.T) {
	t.Setenv("WATCH_NAMESPACE", "a")

	if _, err := FromFile("/etc/scope/namespaces"); err == nil || !strings.Contains(err.Error(), "two sources") {
		t.Errorf("a file and WATCH_NAMESPACE: %v", err)
	}

	_, err := FromConfigMap(&rest.Config{}, "ops", "namespace-scope")
	if err == nil || !strings.Contains(err.Error(), "two sources") {
		t.Errorf("a ConfigMap and WATCH_NAMESPACE: %v", err)
	}

	if l, err := FromEnv("WATCH_NAMESPACE"); err != nil || l.source.live() {
		t.Errorf("the variable alone: %v", err)
	}

	if _, err := FromEnv("NOBODY_SETS_THIS"); err == nil {
		t.Error("a variable that is not set is no list")
	}
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "namespaces")
	f := &fileSource{path: path}

	if list, err := f.read(); err != nil || list.String() != "" {
		t.Errorf("a file that is not there: %q, %v", list, err)
	}

	must(t, os.WriteFile(path, []byte("b,a"), 0o600))

	if list, err := f.read(); err != nil || list.String() != "a,b" {
		t.Errorf("a file: %q, %v", list, err)
	}

	must(t, os.WriteFile(path, make([]byte, maxFile+1), 0o600))

	if _, err := f.read(); err == nil {
		t.Error("a file that is no list was read")
	}
}

func TestAListServesOneManager(t *testing.T) {
	l, _ := newList(t, "")
	startCache(t, apiServer, l, nil)

	if _, err := l.NewCache()(apiServer, l.live().opts); err == nil {
		t.Error("a second manager got a cache")
	}
}
