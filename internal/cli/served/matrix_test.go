package served

import (
	"bytes"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// TestEveryOutputOfTheMatrixHasTheNotes: whoever reads a page has to know as well as whoever reads a terminal that the manager
// was not found, for example.
func TestEveryOutputOfTheMatrixHasTheNotes(t *testing.T) {
	t.Parallel()

	const note = "nobody found the manager"

	for _, form := range []string{output.Table, output.JSON, output.YAML, output.HTML, output.SVG} {
		var out, beside bytes.Buffer

		v := newRemembered(t, nil).view()
		v.Notes = []string{note}

		o := &MatrixOptions{Options: operatorsOf("ops").Options}
		o.Out, o.ErrOut, o.Output = terminal.NewWriter(&out), terminal.NewWriter(&beside), form

		if err := o.print(v, overview.New(nil, nil, nil).Matrix()); err != nil {
			t.Fatal(err)
		}

		if !strings.Contains(out.String()+beside.String(), note) {
			t.Errorf("-o %s does not say %q: %s%s", form, note, out.String(), beside.String())
		}
	}
}
