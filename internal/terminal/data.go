package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Data is where manifests go, which have to reach a program byte by byte. On a terminal, where users read them instead, it is
// this writer, which escapes.
func (w *Writer) Data() io.Writer {
	if Is(w) {
		return w
	}

	return w.out
}

// IsTerminal says whether a reader is a terminal, at which somebody would have to type the input.
func IsTerminal(r io.Reader) bool {
	f, isFile := r.(*os.File)

	return isFile && term.IsTerminal(int(f.Fd()))
}
