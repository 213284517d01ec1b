package served

import (
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/picture"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// clusterWide says what operators hold in all namespaces, whatever the matrix says.
func clusterWide(paint terminal.Paint, wide []overview.ClusterWide) terminal.Text {
	var b terminal.Builder

	for i := range wide[:min(len(wide), output.MaxSome)] {
		b.Linef("%s %s", paint.Warn("!"), wide[i].String())
	}

	if n := len(wide) - output.MaxSome; n > 0 {
		b.Linef("%s %d more hold something in the whole cluster; -o json has all", paint.Warn("!"), n)
	}

	return b.Text()
}

// nothing says that there is nothing, or nothing that the caller may see. Whoever asked about all namespaces may see more of one.
func nothing(notRead []string, what string, ofOne bool) string {
	switch {
	case len(notRead) == 0:
		return what + "."
	case ofOne:
		return what + ", as far as you may see."
	default:
		return what + ", as far as you may see; -n NAMESPACE shows what there is in one."
	}
}

// wideMark marks who holds something in all namespaces.
func wideMark(paint terminal.Paint, is bool) terminal.Text {
	if !is {
		return terminal.Text{}
	}

	return paint.Warn(" " + picture.ClusterWideMark)
}
