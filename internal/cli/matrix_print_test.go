package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/snapshot"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// large is an overview of so many operators, of five namespaces, and so many members.
func large(operators, members int) *overview.Overview {
	var services []overview.Service

	for o := range operators {
		operator := overview.Operator{
			Kind: "ServiceAccount", Namespace: fmt.Sprintf("ops-%d", o%5), Name: fmt.Sprintf("operator-%02d", o),
		}

		for n := range members {
			state := overview.Served
			if n%50 == 7 && o%5 == 0 {
				state = overview.Failed
			}

			if n%7 != o%5 {
				services = append(services, overview.Service{
					Operator: operator, Namespace: fmt.Sprintf("team-%03d", n), Scope: "NamespaceScope " + operator.Namespace + "/s",
					State: state, Roles: []overview.Role{{Name: "Role " + operator.Namespace + "/r"}},
				})
			}
		}
	}

	return overview.New([]overview.Scope{{Name: "NamespaceScope ops-0/s", Ready: "True"}}, services, nil)
}

// TestLargeClustersStayReadable holds that 50 operators and 200 namespaces fit on two screens, in lines that do not break.
func TestLargeClustersStayReadable(t *testing.T) {
	t.Parallel()

	const lines, columns = 60, 160

	all := large(50, 200)
	v := &reading.View{Reader: snapshot.New(nil)}

	var matrix bytes.Buffer

	o := &MatrixOptions{Options: reading.Options{Streams: output.Streams{Out: terminal.NewWriter(&matrix)}}}
	if err := o.table(v, all.Matrix()); err != nil {
		t.Fatal(err)
	}

	p := &treePrinter{}
	for _, tree := range all.Trees() {
		p.scope(&tree)
	}

	for what, text := range map[string]string{"matrix": matrix.String(), "tree": p.Text().String()} {
		if n := strings.Count(text, "\n"); n > lines || n < 5 {
			t.Errorf("%s: %d lines:\n%s", what, n, text)
		}

		for line := range strings.Lines(text) {
			if terminal.Columns(line) > columns {
				t.Errorf("%s: a line of %d columns: %s", what, terminal.Columns(line), line)
			}
		}
	}
}
