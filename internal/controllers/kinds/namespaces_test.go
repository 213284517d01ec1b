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
