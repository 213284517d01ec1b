package whocan

import (
	"fmt"
	"strings"

	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

func (o *Options) print(d *Data) error {
	switch o.Output {
	case "json":
		text, err := terminal.JSON(d)
		if err != nil {
			return fmt.Errorf("printing: %w", err)
		}

		return o.Out.Print(terminal.Textf("%s\n", text))
	case "yaml":
		text, err := terminal.YAML(d)
		if err != nil {
			return fmt.Errorf("printing: %w", err)
		}

		return o.Out.Print(text)
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

		t.Row(h.Kind, h.Namespace, printable.Name(h.Name), h.Right.Binding.String(), role, scope)
	}

	if err := o.Out.Print(terminal.Textf("%s\n", t.Text())); err != nil {
		return err
	}

	return o.notes(d)
}

func (o *Options) notes(d *Data) error {
	var b terminal.Builder

	if len(d.Holders) == 0 {
		b.Linef("Note: no binding that you may read gives it to anybody")
	}

	for _, what := range d.NotRead {
		b.Linef("Note: %s, so others may be able to", what)
	}

	for i := range d.Unread {
		b.Linef("Note: %s: %s", d.Unread[i].Binding, d.Unread[i].Problem)
	}

	b.Linef("Note: the group system:masters may do everything")

	return o.ErrOut.Print(terminal.Textf("%s\n", b.Text()))
}
