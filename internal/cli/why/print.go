package why

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/explain"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// printer writes an explanation for users.
type printer struct {
	terminal.Builder

	paint terminal.Paint
}

func (o *Options) table(d *Data) error {
	p := &printer{paint: terminal.PaintFor(o.Out)}
	p.head(d)

	var everybodys []string

	for i := range d.Rights {
		r := &d.Rights[i]
		if r.IsEverybodys() && !o.All && d.Question == nil {
			everybodys = append(everybodys, r.Binding.Name)
		} else {
			p.right(r)
		}
	}

	if len(everybodys) > 0 {
		p.Linef("\n%s", p.paint.Dim(fmt.Sprintf("Besides, what every service account has, by %s (--all shows it).",
			strings.Join(everybodys, ", "))))
	}

	// If the answer is yes, other names do not matter.
	if yes := d.Allowed != nil && *d.Allowed; !yes && len(d.Named) > 0 {
		p.Linef("\nIt may about other names:")

		for i := range d.Named {
			p.right(&d.Named[i])
		}
	}

	if len(d.Hints) > 0 {
		p.Linef("")
	}

	for _, hint := range d.Hints {
		p.Linef("%s %s.", p.paint.Warn("Why not:"), hint)
	}

	if err := output.Say(o.Out, "%s", p.Text()); err != nil {
		return err
	}

	return output.Notes(o.ErrOut, slices.Concat(d.Notes, d.NotRead))
}

func (p *printer) head(d *Data) {
	who := fmt.Sprintf("Service account %s/%s", d.Account.Namespace, d.Account.Name)

	if d.Question == nil {
		p.Linef("%s", p.paint.Bold(who+" in namespace "+d.Namespace))

		switch {
		case d.Hints == nil && len(d.Rights) > 0:
		case len(d.NotRead) > 0:
			p.Linef("\nNothing that you may read is for it.")
		default:
			p.Linef("\nNothing here is for it.")
		}

		return
	}

	p.answer(d, who)
}

func (p *printer) answer(d *Data, who string) {
	what := d.Question.String()
	where := "namespace " + d.Namespace
	if d.Question.ClusterScoped {
		where = "the whole cluster"
	}

	switch {
	case d.Allowed == nil:
		p.Linef("%s: whether service account %s/%s may %s in %s.", p.paint.Warn("Unknown"), d.Account.Namespace,
			d.Account.Name, what, where)
		p.Linef("%s", p.paint.Dim("By no binding that you may read; and you may not ask the API server itself."))

		return
	case *d.Allowed:
		p.Linef("%s: %s may %s in %s.", p.paint.Good("Yes"), who, what, where)
	default:
		p.Linef("%s: %s may not %s in %s.", p.paint.Bad("No"), who, what, where)
	}

	switch {
	case d.APIServer == "":
		p.Linef("%s", p.paint.Dim("By the bindings that you may read; you may not ask the API server itself."))
	case d.APIServer == "yes" && len(d.Rights) == 0:
		p.Linef("%s", p.paint.Warn("The API server says so; by no binding that you may read."))
	}
}

// right says what a binding gives, and where it comes from.
func (p *printer) right(r *explain.Right) {
	p.Linef("")

	for _, rule := range authority.Lines(r.Rules) {
		p.Linef("%s", p.paint.Bold(rule))
	}

	where := ""
	if r.Everywhere {
		where = ", in the whole cluster"
	}

	if r.Through != "" {
		where += ", through the group " + r.Through
	}

	t := terminal.Table{Indent: "  "}
	t.Row("by", fmt.Sprintf("%s, to %s%s", r.Binding, r.Role, where))

	if r.Scope == nil {
		t.Row("from", p.direct(r))
	} else {
		t.Row("copied", copied(r))
		t.Row("for", fmt.Sprintf("%s, written by %s", r.Scope, r.ScopeAuthor))
	}

	if r.Problem != "" {
		t.Row("but", p.paint.Warn(r.Problem))
	}

	p.Add(t.Text())
}

func (p *printer) direct(r *explain.Right) string {
	if r.Authorization != "" {
		return "ambit authorize: " + r.Authorization
	}

	but := ""
	if r.Marked {
		but = ", although it bears Ambit's marks, which anybody can write"
	}

	return fmt.Sprintf("nothing of Ambit's%s; written by %s", but, r.Author)
}

func copied(r *explain.Right) string {
	switch {
	case r.SourceBinding != nil && r.Unread:
		return fmt.Sprintf("from %s", r.SourceBinding) // The role says what it was copied from.
	case r.SourceBinding != nil && r.SourceRole != nil:
		return fmt.Sprintf("from %s, to %s", r.SourceBinding, r.SourceRole)
	case r.SourceBinding != nil:
		return fmt.Sprintf("from %s, to the same %s", r.SourceBinding, r.Role)
	case r.SourceRole != nil:
		return fmt.Sprintf("from no binding; the rules are those of %s", r.SourceRole)
	default:
		return "from nothing: the scope says it itself"
	}
}
