package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMarkIsBetweenEntries: whoever counts from a mark reads whole entries, also where one was being written.
func TestMarkIsBetweenEntries(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]int64{
		"": 0, "{}\n": 3, "{}\n{}\n": 6, "{}\n{\"verb\":": 3, "{\"verb\":": 0,
	} {
		log := auditLog{filepath.Join(t.TempDir(), "audit.log")}
		if err := os.WriteFile(log.path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}

		if got, err := log.mark(); got != want || err != nil {
			t.Errorf("%q: the mark is %d, want %d (%v)", text, got, want, err)
		}
	}
}
