package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Data is where manifests go that have to reach a program as they are, byte by byte. Where users read them instead, it is this
// writer, which escapes.
func (w *Writer) Data() io.Writer {
	if Is(w) {
		return w
	}

	return w.out
}

// IsTerminal says whether somebody would have to type what is read.
func IsTerminal(r io.Reader) bool {
	f, isFile := r.(*os.File)

	return isFile && term.IsTerminal(int(f.Fd()))
}
