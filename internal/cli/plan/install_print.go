package plan

import (
	"cmp"
	"slices"

	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// installs says what the statuses of OLM's kinds would say.
func (p *printer) installs() {
	if len(p.data.Installs) == 0 {
		return
	}

	p.heading("Installs")

	for i := range p.data.Installs {
		in := &p.data.Installs[i]

		phase, colon := p.paint.Good(in.Phase), ": "
		if in.Refused {
			phase = p.paint.Bad(in.Phase)
		}

		if in.Phase == "" && in.Before == "" {
			colon = "" // A group has no phase.
		}

		now := ""
		if in.Before != "" && in.Before != in.Phase {
			now = ", now " + in.Before
		}

		p.Linef("  %s%s%s%s", printable.Title(in.Kind, in.Namespace, in.Name), colon, phase, now)
		p.installed(in)
	}
}

func (p *printer) installed(in *Install) {
	said := slices.ContainsFunc(in.Conditions, func(c Condition) bool { return c.Message == in.Message })

	switch {
	case in.Message == "" || in.Reason == "" && said:
	case in.Reason == "":
		p.Linef("    %s", in.Message)
	default:
		p.Linef("    %s: %s", in.Reason, in.Message)
	}

	if in.Installed != "" {
		p.Linef("    installed: %s", printable.Name(in.Installed))
	}

	if len(in.Targets) > 0 {
		targets := collect.Map(in.Targets, func(name string) string { return cmp.Or(name, "all namespaces") })
		p.Linef("    targets: %s", output.Some(targets))
	}

	for _, c := range in.Conditions {
		if c.Message != "" {
			p.Linef("    %s=%s, %s: %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
}
