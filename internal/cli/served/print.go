package served

import (
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/picture"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// ClusterWide says what operators hold in all namespaces, whatever the matrix says.
func ClusterWide(paint terminal.Paint, wide []overview.ClusterWide) terminal.Text {
	var b terminal.Builder

	for i := range wide[:min(len(wide), output.MaxSome)] {
		b.Linef("%s %s", paint.Warn("!"), wide[i].String())
	}

	if n := len(wide) - output.MaxSome; n > 0 {
		b.Linef("%s %d more hold something in the whole cluster; -o json has all", paint.Warn("!"), n)
	}

	return b.Text()
}

// Nothing says that there is nothing, or nothing that the caller may see.
func Nothing(v *reading.Cluster, what string) string {
	if len(v.Denied()) > 0 {
		return what + ", as far as you may see."
	}

	return what + "."
}

// WideMark marks who holds something in all namespaces.
func WideMark(paint terminal.Paint, is bool) terminal.Text {
	if !is {
		return terminal.Text{}
	}

	return paint.Warn(" " + picture.ClusterWideMark)
}
