package page_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestNothingIsAnswerOfItsOwn: a question about what is not there is neither one that cannot be read, nor a cluster that fails.
func TestNothingIsAnswerOfItsOwn(t *testing.T) {
	t.Parallel()

	got := open(t, &fixture{}).get("api/v1/operators?namespace=gone", nil)
	defer func() { _ = got.Body.Close() }()

	if text := bodyOf(got); got.StatusCode != http.StatusNotFound || !strings.Contains(text, `"error":"`) ||
		!strings.Contains(text, "namespace gone") {
		t.Errorf("%d %s", got.StatusCode, text)
	}
}
