package page_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestNothingIsAnswerOfItsOwn: a question about what is not there, or may not be seen, is neither one that cannot be read, nor a
// cluster that fails.
func TestNothingIsAnswerOfItsOwn(t *testing.T) {
	t.Parallel()

	o := open(t, &fixture{})

	for path, want := range map[string]struct {
		status int
		text   string
	}{
		"api/v1/operators?namespace=gone":                 {http.StatusNotFound, "namespace gone"},
		"api/v1/events?scope=NamespaceScope%20hidden%2Fs": {http.StatusForbidden, "you may not see this: events in namespace hidden"},
	} {
		got := o.get(path, nil) //nolint:bodyclose // What a recorder gives has nothing to close.

		text := bodyOf(got)
		if got.StatusCode != want.status || !strings.Contains(text, `"error":"`) || !strings.Contains(text, want.text) {
			t.Errorf("%s: %d %s", path, got.StatusCode, text)
		}
	}
}
