package tree

import (
	"testing"

	"github.com/ambit-k8s/ambit/internal/cli/served/servedtest"
)

// TestLargeClustersStayReadable holds that 50 operators and 200 namespaces fit on two screens.
func TestLargeClustersStayReadable(t *testing.T) {
	t.Parallel()

	p := &printer{}
	for _, tree := range servedtest.Large().Trees() {
		p.scope(&tree)
	}

	servedtest.IsReadable(t, p.Text().String())
}
