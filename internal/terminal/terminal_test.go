package terminal_test

import (
	"bytes"
	"testing"

	"github.com/ambit-k8s/ambit/internal/terminal"
)

func TestTablesAlignWhateverTheColours(t *testing.T) {
	t.Parallel()

	var table terminal.Table

	on := terminal.Paint(true)
	table.Row("NAME", "STATE", "WHY")
	table.Row(on.Good("é"), "ready", "")
	table.Row("long name", on.Bad("failed"), "because")

	want := "NAME        STATE    WHY\n\x1b[32mé\x1b[0m           ready\nlong name   \x1b[31mfailed\x1b[0m   because\n"
	if got := table.String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestNothingIsPaintedElsewhere(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer

	if bool(terminal.PaintFor(&out)) || terminal.Is(&out) {
		t.Error("a buffer is no terminal")
	}

	p := terminal.NewProgress(&out)
	p.Tell("reading", 1, 2)
	p.Clear()

	if text := terminal.Paint(false).Bad("x"); text != "x" || out.Len() > 0 {
		t.Errorf("got %q and %q", text, out.String())
	}
}
