package whocan

import (
	"strings"

	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

func (o *Options) print(d *Data) error {
	if o.Output != output.Table {
		return output.Data(o.Out, o.Output, d)
	}

	t := terminal.Table{}
	t.Row("WHO", "NAMESPACE", "NAME", "BINDING", "ROLE", "SCOPE")

	for i := range d.Holders {
		h := &d.Holders[i]
		role, scope := h.Right.Role.String(), ""

		if len(h.Aggregated) > 0 {
			role += ", from " + strings.Join(printable.Names(h.Aggregated), ", ")
		}

		if h.Right.Scope != nil {
			scope = h.Right.Scope.String()
		}

		t.Row(h.Kind, printableNamespace(h), printable.Name(h.Name), h.Right.Binding.String(), role, scope)
	}

	if err := output.Say(o.Out, "%s", t.Text()); err != nil {
		return err
	}

	return o.notes(d)
}

// printableNamespace is that of a service account, for which the API server takes anything.
func printableNamespace(h *explain.Entry) string {
	if h.Namespace == "" {
		return ""
	}

	return printable.Name(h.Namespace)
}

func (o *Options) notes(d *Data) error {
	var b terminal.Builder

	where := "the whole cluster"
	if d.Namespace != "" {
		where = "namespace " + d.Namespace
	}

	b.Linef("Note: this is who may %s in %s", d.Question.String(), where)

	for _, note := range d.Notes {
		b.Linef("Note: %s", note)
	}

	switch {
	case len(d.Holders) > 0:
	case d.named:
		b.Linef("Note: no binding that you may read gives it to anybody for objects of any name")
	default:
		b.Linef("Note: no binding that you may read gives it to anybody")
	}

	for _, what := range d.NotRead {
		b.Linef("Note: %s, so others may be able to", what)
	}

	for i := range d.Unread {
		b.Linef("Note: %s: %s", d.Unread[i].Binding, d.Unread[i].Problem)
	}

	b.Linef("Note: the group system:masters may do everything")

	return output.Say(o.ErrOut, "%s", b.Text())
}
