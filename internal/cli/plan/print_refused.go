package plan

import (
	"slices"

	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

// refusals says why objects are refused, unless a failed member says so already. With allowSubsetProjection no member fails.
func (p *printer) refusals() {
	type why struct{ reason, message string }

	announced := map[why]struct{}{}

	for i := range p.data.Scopes {
		for _, f := range p.data.Scopes[i].Failed {
			announced[why{f.Reason, f.Message}] = struct{}{}
		}
	}

	in := map[why][]string{}

	var order []why

	for i := range p.data.Objects {
		c := &p.data.Objects[i]
		if c.Refused == nil {
			continue
		}

		key := why{c.Refused.Reason, c.Refused.Message}
		if _, known := announced[key]; known {
			continue
		}

		if _, known := in[key]; !known {
			order = append(order, key)
		}

		if place := output.Place(c.Namespace); !slices.Contains(in[key], place) {
			in[key] = append(in[key], place)
		}
	}

	for _, key := range order[:min(len(order), output.MaxSome)] {
		slices.Sort(in[key])
		p.Linef("  %s %s: %s: %s", p.paint.Bad("refused in"), output.Some(in[key]), key.reason, key.message)
	}

	if n := len(order) - output.MaxSome; n > 0 {
		p.Linef("  %s for %d more reasons; -o yaml has all", p.paint.Bad("refused"), n)
	}
}

func (p *printer) restarts() {
	if len(p.data.Restarts)+len(p.data.Injections) == 0 {
		return
	}

	p.heading("Operators")

	t := terminal.Table{Indent: "  "}

	for i := range p.data.Injections {
		in := &p.data.Injections[i]
		t.Row(p.verb(in.words()), in.Namespace, in.Target, in.why()+because(in.Refused))
	}

	for i := range p.data.Restarts {
		r := &p.data.Restarts[i]

		verb := "restart"
		if len(r.Evicts) > 0 {
			verb = "evict"
		}

		t.Row(p.verb(verb, r.Refused), r.Namespace, r.Reader, r.Reason+because(r.Refused))
	}

	p.Add(t.Text())
}

func (in *Injection) words() (verb string, refused *predict.Refusal) {
	if in.Webhook {
		return "limit", in.Refused
	}

	return "inject", in.Refused
}

func (in *Injection) why() string {
	switch {
	case !in.Webhook:
		return "the watch list gets into its pods, or out of them: " + string(in.Action)
	case len(in.Members) == 0:
		return "its webhooks are for all namespaces again"
	default:
		return "its webhooks are for the members alone: " + output.Some(in.Members)
	}
}

// rolledOut counts the operators whose pods restart only because something is injected into them.
func (p *printer) rolledOut() int {
	n := 0

	for i := range p.data.Injections {
		in := &p.data.Injections[i]
		restarts := slices.ContainsFunc(p.data.Restarts, func(r Restart) bool {
			return r.Namespace == in.Namespace && r.Reader == in.Target
		})

		if in.Refused == nil && !restarts && in.Rolls {
			n++
		}
	}

	return n
}

func (p *printer) verb(verb string, refused *predict.Refusal) terminal.Text {
	if refused != nil {
		return p.paint.Bad("refused: " + verb)
	}

	return p.paint.Warn(verb)
}

// because says why something is refused; nothing where it is not.
func because(refused *predict.Refusal) string {
	if refused == nil {
		return ""
	}

	return "; " + refused.Reason + ": " + refused.Message
}
