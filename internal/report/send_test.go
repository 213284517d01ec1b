package report_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"k8s.io/client-go/tools/events"

	"github.com/ambit-k8s/ambit/internal/report"
)

// TestSend holds that the API server takes the note of each event, and that it shows nothing but itself: as it is where it fits,
// and cut at the end of a character where it does not.
func TestSend(t *testing.T) {
	t.Parallel()

	const limit = 1024

	for name, tc := range map[string]struct{ message, want string }{
		"nothing":         {"", ""},
		"as it is":        {"100% of a, b", "100% of a, b"},
		"escaped":         {"a\x1b[2J\nb", `a\u001b[2J\nb`},
		"up to the limit": {strings.Repeat("a", limit), strings.Repeat("a", limit)},
		"one more":        {strings.Repeat("a", limit+1), strings.Repeat("a", limit-len("…")) + "…"},
		"no character is cut in two": {
			strings.Repeat("é", limit), strings.Repeat("é", (limit-len("…"))/len("é")) + "…",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			fake := events.NewFakeRecorder(1)
			e := report.Event{Reason: "Bound", Action: "Bind", Message: tc.message}
			e.Send(fake, nil)

			got := strings.TrimPrefix(<-fake.Events, "Normal Bound ")
			if got != tc.want || len(got) > limit || !utf8.ValidString(got) {
				t.Errorf("got %d bytes, %q; want %d, %q", len(got), got, len(tc.want), tc.want)
			}
		})
	}
}
