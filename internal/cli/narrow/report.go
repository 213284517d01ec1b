package narrow

import (
	"fmt"
	"strings"

	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/narrow"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/reach"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// manyRights is how many lost rights are printed of an account; the others are counted.
const manyRights = 12

// printReport says which rights are lost where, and what users have to know before they apply anything. It prints to standard
// error if standard output holds manifests.
func (o *Options) printReport(r *narrow.Report) error {
	out := o.ErrOut
	if o.Output == output.Table {
		out = o.Out
	}

	var b terminal.Builder

	paint := terminal.PaintFor(out)

	if !o.Quiet {
		for i := range r.Accounts {
			o.account(&b, paint, &r.Accounts[i])
		}

		for _, note := range r.Notes {
			b.Linef("Note: %s", note)
		}
	}

	for _, warning := range r.Warnings {
		b.Linef("%s %s", paint.Bad("Warning:"), warning)
	}

	if !o.Quiet && len(r.LeftOut) > 0 {
		b.Linef("Applying it deletes nothing. Where the operator runs already, delete what is left out, once the scope is Ready:")

		for _, what := range r.LeftOut {
			kind, name, _ := strings.Cut(what, " ")
			b.Linef("  %s", printable.Deletion(kind, "", name))
		}
	}

	text := b.Text()
	if text.String() == "" {
		return nil
	}

	return out.Print(terminal.Textf("%s\n", text))
}

func (o *Options) account(b *terminal.Builder, paint terminal.Paint, a *narrow.AccountReport) {
	b.Linef("%s/%s (%s): %s in the whole cluster before, %d after", a.Account.Namespace, a.Account.Name,
		strings.Join(a.Workloads, ", "), printable.Number(a.Before, "rule", "rules"), a.After)

	for i := range a.Lost {
		if i == manyRights && o.Output != output.Table {
			b.Linef("  and %d more", len(a.Lost)-i)

			break
		}

		r := &a.Lost[i]
		where := "all namespaces but " + strings.Join(a.Namespaces, ", ")

		if r.Of > 0 {
			where = fmt.Sprintf("%d of %d namespaces", r.Namespaces, r.Of)
		}

		b.Linef("  lost: %s: %s (%s)%s", r.Resource, where, strings.Join(r.Verbs, ","), mark(paint, r))
	}

	for i := range a.Still {
		r := &a.Still[i]
		b.Linef("  still in the whole cluster: %s (%s)%s", r.Resource, strings.Join(r.Verbs, ","), mark(paint, r))
	}
}

func mark(paint terminal.Paint, r *reach.Right) terminal.Text {
	if !r.Sensitive {
		return terminal.Of("")
	}

	return terminal.Textf(" %s", paint.Bad("sensitive"))
}
