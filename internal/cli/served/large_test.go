package served

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

// large is an overview of 50 operators, of five namespaces, and 200 members.
func large() *overview.Overview {
	const operators, members = 50, 200

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

// isReadable holds that a text fits on two screens, in lines that do not break.
func isReadable(t *testing.T, text string) {
	t.Helper()

	const lines, columns = 60, 160

	if n := strings.Count(text, "\n"); n > lines || n < 5 {
		t.Errorf("%d lines:\n%s", n, text)
	}

	for line := range strings.Lines(text) {
		if terminal.Columns(line) > columns {
			t.Errorf("a line of %d columns: %s", terminal.Columns(line), line)
		}
	}
}

// TestALargeMatrixStaysReadable holds that 50 operators and 200 namespaces fit on two screens.
func TestALargeMatrixStaysReadable(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer

	o := &MatrixOptions{Options: reading.Options{Streams: output.Streams{Out: terminal.NewWriter(&out)}}}
	if err := o.table(&reading.Cluster{Reader: snapshot.New(nil)}, large().Matrix()); err != nil {
		t.Fatal(err)
	}

	isReadable(t, out.String())
}

// TestALargeTreeStaysReadable holds the same of the tree.
func TestALargeTreeStaysReadable(t *testing.T) {
	t.Parallel()

	p := &printer{}
	for _, tree := range large().Trees() {
		p.scope(&tree)
	}

	isReadable(t, p.Text().String())
}

// TestTreeSaysThatThereIsNoAccount: below a member without accounts there is a line that says so, and not nothing.
func TestTreeSaysThatThereIsNoAccount(t *testing.T) {
	t.Parallel()

	p := &printer{}
	for _, tree := range overview.New([]overview.Scope{{
		Name: "NamespaceScope ops/s", Ready: "True", Reason: "Reconciled", Empty: []overview.MemberTree{
			{Namespace: "ops", State: overview.OwnNamespace}, {Namespace: "a", State: overview.Idle},
			{Namespace: "b", State: overview.Idle},
		},
	}}, nil, nil).Trees() {
		p.scope(&tree)
	}

	const want = `NamespaceScope ops/s   Reconciled
├─ ops (operator namespace)
│  └─ no account
└─ a, b (2 namespaces)
   └─ no account`
	if got := p.Text().String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
