package matrix

import (
	"bytes"
	"testing"

	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/cli/served/servedtest"
	"github.com/ambit-k8s/ambit/internal/snapshot"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// TestALargeMatrixStaysReadable holds that 50 operators and 200 namespaces fit on two screens.
func TestALargeMatrixStaysReadable(t *testing.T) {
	t.Parallel()

	var out bytes.Buffer

	o := &Options{Options: reading.Options{Streams: output.Streams{Out: terminal.NewWriter(&out)}}}
	if err := o.table(&reading.Cluster{Reader: snapshot.New(nil)}, servedtest.Large().Matrix()); err != nil {
		t.Fatal(err)
	}

	servedtest.IsReadable(t, out.String())
}
