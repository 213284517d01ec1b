package operators_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// columns are what is measured, in the order of the table in docs/operators.md.
var columns = []string{
	"restarted after", "first reconcile after", "rights gone after", "others waited at most, when one withdrew",
	"deleted member gone after", "led during eight joins", "restarts for eight joins", "eight joins served after",
}

// described is how many columns are before these.
const described = 3

// results are what was measured, by operator and column.
var results = map[string]map[string]string{}

// measured notes a number.
func (w *world) measured(column, format string, value any) {
	w.Helper()

	if !slices.Contains(columns, column) {
		w.Fatalf("the table has no column %q", column)
	}

	text := fmt.Sprintf(format, value)
	w.Logf("%s: %s %s", w.op.name, column, text)

	if results[w.op.name] == nil {
		results[w.op.name] = map[string]string{}
	}

	results[w.op.name][column] = text
}

const (
	firstLine = "<!-- What follows is written by make test-operators TESTFLAGS=-update. -->\n"
	lastLine  = "<!-- End of what is written. -->\n"
)

func page() string { return filepath.Join(embedded.Root(), "docs", "operators.md") }

// cut returns what is before the table, the table, and what is after.
func cut() (before, table, after string, err error) {
	text, err := os.ReadFile(page())
	if err != nil {
		return "", "", "", fmt.Errorf("reading the page: %w", err)
	}

	before, rest, found := strings.Cut(string(text), firstLine)
	table, after, ended := strings.Cut(rest, lastLine)

	if !found || !ended {
		return "", "", "", fmt.Errorf("%s has no place for the table", page())
	}

	return before, table, after, nil
}

// writeTable puts the results of a run into the page. Operators that did not run keep their lines.
func writeTable() error {
	head, old, after, err := cut()
	if err != nil {
		return err
	}

	var out strings.Builder

	fmt.Fprintf(&out, "\n| Operator | reads | needed besides | %s |\n|---|---|---|%s\n",
		strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))

	for i := range operators {
		op := &operators[i]

		m, err := moduleOf(op.name)
		if err != nil {
			return err
		}

		before := lineOf(old, op.name)
		line := before

		if measured := results[op.name]; measured != nil {
			cells := []string{op.name + " " + m.version, op.reads, op.needed}
			for i, column := range columns {
				cells = append(cells, cmp.Or(measured[column], cell(before, i+described), "-"))
			}

			line = "| " + strings.Join(cells, " | ") + " |"
		}

		if line != "" {
			fmt.Fprintln(&out, line)
		}
	}

	if err := os.WriteFile(page(), []byte(head+firstLine+out.String()+"\n"+lastLine+after), 0o600); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}

	return nil
}

// cell is what a line has in a column; what did not run this time stays.
func cell(line string, column int) string {
	cells := strings.Split(line, " | ")
	if column >= len(cells) {
		return ""
	}

	return strings.TrimSuffix(cells[column], " |")
}

// lineOf is the line of an operator in a table; empty if it has none.
func lineOf(table, name string) string {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(line, "| "+name+" ") {
			return strings.TrimSpace(line)
		}
	}

	return ""
}

// TestThePageNamesWhatRuns holds that docs/operators.md speaks of the versions that are built.
func TestThePageNamesWhatRuns(t *testing.T) {
	t.Parallel()

	if *update {
		t.Skip("the page is being written")
	}

	_, table, _, err := cut()
	if err != nil {
		t.Fatal(err)
	}

	for i := range operators {
		m, err := moduleOf(operators[i].name)
		if err != nil {
			t.Fatal(err)
		}

		if !strings.HasPrefix(lineOf(table, operators[i].name), "| "+operators[i].name+" "+m.version+" |") {
			t.Errorf("docs/operators.md does not have %s %s; run make test-operators TESTFLAGS=-update", operators[i].name, m.version)
		}
	}
}
