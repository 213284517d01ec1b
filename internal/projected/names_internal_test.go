package projected

import (
	"testing"
	"time"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestNamesOutliveAWrongClock: Ambit knows what it named by a clock that was wrong, and what a replica did on another machine.
func TestNamesOutliveAWrongClock(t *testing.T) {
	t.Parallel()

	made := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

	for name, tc := range map[string]struct {
		// gives and reads are how far the clocks are ahead that give a name, and that read it, an hour after the key was made.
		gives, reads time.Duration
		known        bool
	}{
		"right clocks":                            {0, 0, true},
		"one that is behind, and goes on to be":   {-3 * time.Hour, -3 * time.Hour, true},
		"one that was behind":                     {-3 * time.Hour, 0, true},
		"one that was behind by years":            {-10 * 365 * 24 * time.Hour, 0, true},
		"one that was ahead":                      {3 * time.Hour, 0, true},
		"one that took local time for UTC":        {14 * time.Hour, 0, true},
		"one that is behind another":              {0, -24 * time.Hour, true},
		"a name of a time that nobody's clock is": {365 * 24 * time.Hour, 0, false},
	} {
		names := func(ahead time.Duration) *Names {
			n, err := NewNames(make([]byte, KeySize), made)
			if err != nil {
				t.Fatal(err)
			}

			n.now = func() time.Time { return made.Add(time.Hour + ahead) }

			return n
		}
		key := scope.NamespaceScopes.In("ops")
		given := names(tc.gives).New(Role, "member", key, "reader-0123456789abcdef")

		if tag, known := names(tc.reads).TagOf(Role, "member", given); known != tc.known || known && tag != names(0).Tag(key) {
			t.Errorf("%s: a name is known: %t, want %t", name, known, tc.known)
		}
	}
}
