package served

import (
	"testing"

	"github.com/ambit-k8s/ambit/internal/overview"
)

// TestWhatHasNoStatusSaysSo: nobody has looked at a scope, or serves an install, and so there is no reason to show.
func TestWhatHasNoStatusSaysSo(t *testing.T) {
	t.Parallel()

	for want, s := range map[string]overview.Scope{
		"no status yet": {Ready: "Unknown"},
		"Reconciled":    {Ready: "True", Reason: "Reconciled", Message: "2 members are served"},
		"Failed: why":   {Ready: "False", Reason: "Failed", Message: "why"},
	} {
		if got := (&printer{}).ready(&s).String(); got != want {
			t.Errorf("%+v: %q", s, got)
		}
	}
}
