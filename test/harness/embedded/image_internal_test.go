package embedded

import (
	"os"
	"path/filepath"
	"testing"
)

// TestLineFromNow: what is read of an audit log from now on begins with a whole line, even while one is being written.
func TestLineFromNow(t *testing.T) {
	t.Parallel()

	for before, after := range map[string]string{"": "", "one\n": "", "one\ntw": "o\nthree\n", "o": "ne\n"} {
		path := filepath.Join(t.TempDir(), "log")

		file, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}

		t.Cleanup(func() { _ = file.Close() })

		if _, err := file.WriteString(before); err != nil {
			t.Fatal(err)
		}

		written := make(chan error, 1)

		go func() {
			_, err := file.WriteString(after)
			written <- err
		}()

		start, err := LineFromNow(t.Context(), path)
		if err != nil || <-written != nil {
			t.Fatal(err)
		}

		if all := before + after; start > int64(len(all)) || start < int64(len(before)) || start > 0 && all[start-1] != '\n' {
			t.Errorf("%q and then %q: it begins at byte %d", before, after, start)
		}
	}
}
