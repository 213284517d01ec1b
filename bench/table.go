package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
)

// table is what is printed for one size.
type table struct {
	title string
	rows  []row
	notes []string
}

// row is one figure beside its floor. verdict is empty where there is no target.
type row struct {
	name, floor, ambit, ratio, target, verdict string
}

const (
	verdictOK     = "ok"
	verdictMissed = "MISSED"
)

func (t *table) missed() int {
	n := 0

	for _, r := range t.rows {
		if r.verdict == verdictMissed {
			n++
		}
	}

	return n
}

func (t *table) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s\n\n", t.title)

	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "MEASURE\tFLOOR\tAMBIT\tRATIO\tTARGET\t")

	for _, r := range t.rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", r.name, r.floor, r.ambit, r.ratio, r.target, r.verdict)
	}

	_ = w.Flush() // What a terminal that went away does not show is lost either way.

	fmt.Fprintln(out)

	for _, note := range t.notes {
		fmt.Fprintln(out, note)
	}

	fmt.Fprintln(out)
}

// times adds a row of one part of what a figure cost both sides, and their ratio; a limit of 0 is no target.
func (t *table) times(name string, f *figure, part func(cost) time.Duration, limit float64) {
	floor, ambit := median(f.floor, part), median(f.ambit, part)
	r := row{name: name, floor: show(floor), ambit: show(ambit)}

	if floor > 0 && ambit > 0 {
		ratio := float64(ambit) / float64(floor)
		r.ratio = fmt.Sprintf("%.2f", ratio)

		if limit > 0 {
			r.target, r.verdict = fmt.Sprintf("ratio at most %.1f", limit), verdict(ratio <= limit)
		}
	}

	t.rows = append(t.rows, r)
}

// costs adds a row of how long both sides took, and two of the processor time that it cost each end of the wire.
func (t *table) costs(name string, f *figure, limit float64) {
	t.times(name, f, wall, limit)
	t.times("  processor time of API server and etcd", f, server, 0)
	t.times("  processor time of the client", f, clientPart, 0)
}

// within adds a row whose target is a time and not a ratio.
func (t *table) within(name string, f *figure, limit time.Duration) {
	t.times(name, f, wall, 0)

	r := &t.rows[len(t.rows)-1]
	r.target, r.verdict = "at most "+show(limit), verdict(median(f.ambit, wall) <= limit)
}

func (t *table) count(name string, ambit, limit int) {
	t.rows = append(t.rows, row{
		name: name, ambit: strconv.Itoa(ambit), target: fmt.Sprintf("at most %d", limit), verdict: verdict(ambit <= limit),
	})
}

func (t *table) bytes(name string, ambit, limit int64) {
	r := row{name: name, ambit: fmt.Sprintf("%.1f MB", float64(ambit)/1e6)}

	switch {
	case ambit == 0:
		r.ambit = "unknown" // No /proc here.
	case limit > 0:
		r.target, r.verdict = fmt.Sprintf("less than %d MB", limit/1e6), verdict(ambit < limit)
	}

	t.rows = append(t.rows, r)
}

func (t *table) notef(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

func verdict(ok bool) string {
	if ok {
		return verdictOK
	}

	return verdictMissed
}

func show(d time.Duration) string {
	switch {
	case d == 0:
		return ""
	case d < time.Second:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	default:
		return fmt.Sprintf("%.2f s", d.Seconds())
	}
}
