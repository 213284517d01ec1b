package terminal_test

import (
	"bytes"
	"errors"
	"slices"
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
	if got := table.Text().String(); got != want {
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
	p.Show("reading", 1, 2)
	p.Clear()

	if text := terminal.Paint(false).Bad("x").String(); text != "x" || out.Len() > 0 {
		t.Errorf("got %q and %q", text, out.String())
	}
}

// TestValuesNeverReachATerminalAsTheyAre holds that colours come from the program alone, and lines, too.
func TestValuesNeverReachATerminalAsTheyAre(t *testing.T) {
	t.Parallel()

	const (
		bad   = "\x1b[32mx\x1b[0m\ny\u009b\u202e"
		shown = `\u001b[32mx\u001b[0m\ny\u009b\u202e`
	)

	var table terminal.Table

	on := terminal.Paint(true)
	table.Row(bad, on.Bad(bad), 1)

	var b terminal.Builder

	b.Linef("%s %v %d", bad, errors.New(bad), 2)
	b.Add(table.Text())
	b.Linef("%s", terminal.Join([]terminal.Text{on.Good(bad), terminal.Of(bad)}, ", "))
	b.Linef("%s %s", []string{bad}, on.Good("x").String())

	want := shown + " " + shown + " 2\n" + shown + "   \x1b[31m" + shown + "\x1b[0m   1\n\x1b[32m" + shown + "\x1b[0m, " + shown +
		"\n[" + shown + `] \u001b[32mx\u001b[0m`
	if got := b.Text().String(); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestWriterIsTheLastThing holds that what is written past texts reaches nobody as it is, however it is cut.
func TestWriterIsTheLastThing(t *testing.T) {
	t.Parallel()

	const bad = "é\x1b[31m\u202e\u65e5\x9b\n\tend\xe2\x80"

	for _, size := range []int{1, 2, 3, len(bad)} {
		var out bytes.Buffer

		w := terminal.NewWriter(&out)
		if again := terminal.NewWriter(w); again != w {
			t.Error("what is escaped is escaped once")
		}

		for chunk := range slices.Chunk([]byte(bad), size) {
			if n, err := w.Write(chunk); n != len(chunk) || err != nil {
				t.Fatal(n, err)
			}
		}

		w.Flush()

		if err := w.Print(terminal.Paint(true).Good("!")); err != nil {
			t.Fatal(err)
		}

		if want := `é\u001b[31m\u202e` + "\u65e5" + `\x9b` + "\n\tend" + `\xe2\x80` + "\x1b[32m!\x1b[0m"; out.String() != want {
			t.Errorf("in pieces of %d: got %q, want %q", size, out.String(), want)
		}
	}
}
