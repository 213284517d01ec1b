// Package terminal writes for people: colours and progress where somebody looks at a terminal, plain text everywhere else.
package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

// Is says whether a writer is a terminal.
func Is(w io.Writer) bool {
	f, isFile := w.(*os.File)

	return isFile && term.IsTerminal(int(f.Fd()))
}

// Width is how many columns a writer has; unlimited when it is no terminal.
func Width(w io.Writer) int {
	const unlimited = 1 << 20

	f, isFile := w.(*os.File)
	if !isFile {
		return unlimited
	}

	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		return unlimited
	}

	return width
}

// Paint colours text, or leaves it as it is.
type Paint bool

// PaintFor says whether to colour what is written: only on a terminal, and not if NO_COLOR (https://no-color.org) asks not to.
func PaintFor(w io.Writer) Paint { return Paint(Is(w) && os.Getenv("NO_COLOR") == "") }

func (p Paint) with(code, text string) string {
	if !p || text == "" {
		return text
	}

	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Good is for what is in order, or comes.
func (p Paint) Good(text string) string { return p.with("32", text) }

// Bad is for what was refused, or goes.
func (p Paint) Bad(text string) string { return p.with("31", text) }

// Warn is for what changes, or waits.
func (p Paint) Warn(text string) string { return p.with("33", text) }

// Dim is for what matters less.
func (p Paint) Dim(text string) string { return p.with("2", text) }

// Bold is for headings.
func (p Paint) Bold(text string) string { return p.with("1", text) }

// Table aligns columns. Colours do not count for their width.
type Table struct {
	// Indent begins each line.
	Indent string

	rows [][]string
}

// Row adds a row.
func (t *Table) Row(cells ...string) { t.rows = append(t.rows, cells) }

// Empty says whether there is no row.
func (t *Table) Empty() bool { return len(t.rows) == 0 }

// String returns the lines. The last column is not filled up.
func (t *Table) String() string {
	var widths []int

	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}

			widths[i] = max(widths[i], Columns(cell))
		}
	}

	var b strings.Builder

	for _, row := range t.rows {
		var line strings.Builder

		line.WriteString(t.Indent)

		for i, cell := range row {
			line.WriteString(cell)

			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-Columns(cell)+3))
			}
		}

		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}

	return b.String()
}

// Columns is how wide a text is on a terminal, without the colours.
func Columns(text string) int {
	n := 0

	for text != "" {
		if strings.HasPrefix(text, "\x1b[") {
			if end := strings.IndexByte(text, 'm'); end >= 0 {
				text = text[end+1:]

				continue
			}
		}

		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
		n++
	}

	return n
}

// Progress shows on a terminal how far something is, and leaves no trace.
type Progress struct {
	out io.Writer

	mu    sync.Mutex
	since time.Time
	last  time.Time
	shown bool
}

const (
	// patience is how long something may take before its progress is shown, pace the least time between two words about it.
	patience = 300 * time.Millisecond
	pace     = 100 * time.Millisecond
)

// NewProgress returns a progress that is written to a terminal, and to nothing else.
func NewProgress(out io.Writer) *Progress {
	if !Is(out) {
		out = nil
	}

	return &Progress{out: out, since: time.Now()}
}

// Tell says that so many of all are done.
func (p *Progress) Tell(what string, done, all int) {
	if p.out == nil {
		return
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	now := time.Now()
	if now.Sub(p.since) < patience || now.Sub(p.last) < pace {
		return
	}

	p.last, p.shown = now, true
	fmt.Fprintf(p.out, "\r\x1b[K%s: %d of %d", what, done, all)
}

// Clear takes it from the screen.
func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")

		p.shown = false
	}
}
