package terminal

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/ambit-k8s/ambit/internal/printable"
)

// Writer is the last thing before users' eyes. What is written to it in any other way than as a Text, also by libraries, is
// escaped, except for line feeds and tabs.
type Writer struct {
	out io.Writer

	mu sync.Mutex
	// cut is the beginning of a character whose end was not written yet.
	cut []byte
}

// NewWriter returns a writer to another, or that one if it is one already.
func NewWriter(out io.Writer) *Writer {
	if w, is := out.(*Writer); is {
		return w
	}

	return &Writer{out: out}
}

// Print writes a text as it is.
func (w *Writer) Print(t Text) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.flush()

	if _, err := io.WriteString(w.out, t.text); err != nil {
		return fmt.Errorf("writing: %w", err)
	}

	return nil
}

// Write escapes what is not printable.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()

	text := slices.Concat(w.cut, p)
	end := len(text) - unfinished(text)
	w.cut = text[end:]

	if _, err := io.WriteString(w.out, printable.Lines(string(text[:end]))); err != nil {
		return 0, fmt.Errorf("writing: %w", err)
	}

	return len(p), nil
}

// Flush writes the beginning of a character that was held back, although its end never came.
func (w *Writer) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.flush()
}

func (w *Writer) flush() {
	if len(w.cut) > 0 {
		_, _ = io.WriteString(w.out, printable.Lines(string(w.cut)))
		w.cut = nil
	}
}

// unfinished is how many bytes at the end are the beginning of a character.
func unfinished(text []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if b := text[len(text)-n]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(text[len(text)-n:]) {
				return n
			}

			return 0
		}
	}

	return 0
}

// beneath is where a writer writes to.
func beneath(w io.Writer) io.Writer {
	if own, is := w.(*Writer); is {
		return own.out
	}

	return w
}
