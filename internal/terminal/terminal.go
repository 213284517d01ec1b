// Package terminal writes for users: colours and progress where somebody looks at a terminal, plain text everywhere else.
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

	"github.com/ambit-k8s/ambit/internal/collect"
)

// Is says whether a writer is a terminal.
func Is(w io.Writer) bool {
	f, isFile := beneath(w).(*os.File)

	return isFile && term.IsTerminal(int(f.Fd()))
}

// Width is how many columns a writer has; unlimited when it is no terminal.
func Width(w io.Writer) int {
	const unlimited = 1 << 20

	f, isFile := beneath(w).(*os.File)
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

func (p Paint) with(code string, value any) Text {
	text := Of(value)
	if !p || text.text == "" {
		return text
	}

	return Text{"\x1b[" + code + "m" + text.text + "\x1b[0m"}
}

// Good is for what is in order, or comes.
func (p Paint) Good(value any) Text { return p.with("32", value) }

// Bad is for what was refused, or goes.
func (p Paint) Bad(value any) Text { return p.with("31", value) }

// Warn is for what changes, or waits.
func (p Paint) Warn(value any) Text { return p.with("33", value) }

// Dim is for what matters less.
func (p Paint) Dim(value any) Text { return p.with("2", value) }

// Bold is for headings.
func (p Paint) Bold(value any) Text { return p.with("1", value) }

// Table aligns columns. Colours do not count for their width.
type Table struct {
	// Indent begins each line.
	Indent string

	rows [][]Text
}

// Row adds a row. A cell is one line, whatever it is made of.
func (t *Table) Row(cells ...any) {
	row := collect.Map(cells, Of)

	t.rows = append(t.rows, row)
}

// Text returns the lines. The last column is not filled up.
func (t *Table) Text() Text {
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
			line.WriteString(cell.text)

			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-Columns(cell)+3))
			}
		}

		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}

	return Text{b.String()}
}

// Columns is how wide a text is on a terminal, without the colours.
func Columns(value any) int {
	n := 0
	text := Of(value).text

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

// Progress shows on a terminal how much of something is done, and leaves no trace.
type Progress struct {
	out io.Writer

	mu    sync.Mutex
	since time.Time
	last  time.Time
	shown bool
}

const (
	// showAfter is how long something may take before its progress is shown, and pace how often that may be updated.
	showAfter = 300 * time.Millisecond
	pace      = 100 * time.Millisecond
)

// NewProgress returns a progress that is written to a terminal, and to nothing else.
func NewProgress(out io.Writer) *Progress {
	if !Is(out) {
		return &Progress{since: time.Now()}
	}

	return &Progress{out: beneath(out), since: time.Now()}
}

// Show says that so many of all are done.
func (p *Progress) Show(what string, done, all int) {
	if p.out == nil {
		return
	}

	p.mu.Lock()
	defer p.mu.Unlock()

	now := time.Now()
	if now.Sub(p.since) < showAfter || now.Sub(p.last) < pace {
		return
	}

	p.last, p.shown = now, true
	fmt.Fprintf(p.out, "\r\x1b[K%s: %d of %d", Of(what).text, done, all)
}

// Clear removes the progress from the screen.
func (p *Progress) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")

		p.shown = false
	}
}
