package kinds

import (
	"testing"
	"time"
)

func TestRefusalsAreReportedOnce(t *testing.T) {
	t.Parallel()

	one, now := &scopeReader{}, time.Unix(0, 0)

	if one.wasRefused() {
		t.Error("nobody refused anything yet")
	}

	for _, c := range []struct {
		reason   string
		after    time.Duration
		reported bool
	}{
		{"the first refusal", 0, true},
		{"that of the other kind", time.Millisecond, false},
		{"the next try", time.Second, false},
		{"a late try", time.Minute, false},
		{"another one, long after the first", time.Minute, false},
		{"a watch went well and ended in between", 5 * time.Minute, true},
		{"the next try after that", time.Second, false},
	} {
		now = now.Add(c.after)

		if told := one.refuse(now); told != c.reported {
			t.Errorf("%s: told: %t, want %t", c.reason, told, c.reported)
		}
	}

	if !one.wasRefused() {
		t.Error("it was refused")
	}
}

// TestReadyOnceEveryNamespaceWasRead: ready means that what is watched has been listed, where single namespaces are served, too.
// One that may not be read keeps the manager from nothing.
func TestReadyOnceEveryNamespaceWasRead(t *testing.T) {
	t.Parallel()

	readerOf := func() (*scopeReader, *kind) {
		one := &kind{definition: "things.example.com", decided: make(chan struct{})}

		return &scopeReader{kinds: &Kinds{all: []*kind{one}}}, one
	}
	a, ofA := readerOf()
	b, _ := readerOf()
	h := &Namespaces{readers: map[string]*scopeReader{"a": a, "b": b}}

	says := func(reason, want string) {
		t.Helper()

		got := ""
		if err := h.Listed(); err != nil {
			got = err.Error()
		}

		if got != want {
			t.Errorf("%s: it says %q, want %q", reason, got, want)
		}
	}

	says("nothing was read", "in namespace a, things.example.com is not listed yet")
	close(ofA.decided)
	says("one was read", "in namespace b, things.example.com is not listed yet")
	b.refuse(time.Unix(1, 0))
	says("the other may not be read", "")
}
