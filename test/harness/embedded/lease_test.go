package embedded

import (
	"strings"
	"testing"
)

// TestAnEmptyPoolIsSaidToBeEmpty holds that whoever names a folder without clusters reads so, and nothing about an error that
// there was not.
func TestAnEmptyPoolIsSaidToBeEmpty(t *testing.T) {
	pool := t.TempDir()
	t.Setenv(pooled, pool)
	t.Setenv(otherKubernetes, "")

	_, err := leaseOne(t.Context())
	if err == nil || !strings.Contains(err.Error(), pool) || strings.Contains(err.Error(), "%!") {
		t.Errorf("the error is %v", err)
	}
}
