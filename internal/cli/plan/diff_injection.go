package plan

import (
	"fmt"
	"strings"

	"github.com/ambit-k8s/ambit/internal/injection"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// diffOfInjection shows what is injected into an operator. An apply names only what Ambit adds, and nothing that others have
// there.
func (p *printer) diffOfInjection(namespace string, in *predict.Injection) error {
	if in.Refusal != nil {
		return nil
	}

	kind, name, _ := strings.Cut(in.Target, " ")
	name = printable.Title(kind, namespace, name)

	switch in.Action {
	case plan.ApplyInjection:
		text, err := printable.YAML(map[string]any{"spec": in.Spec})
		if err != nil {
			return fmt.Errorf("printing what is injected into %s: %w", in.Target, err)
		}

		p.diff(name, "", text)
	case plan.ReleaseInjection:
		p.diff(name, "everything that Ambit injected\n", "")
	case plan.PatchInjection, plan.RestoreInjection, plan.DisownInjection:
		return p.operations(name, in.Patch)
	}

	return nil
}

// operations shows the operations of a patch, each with its path.
func (p *printer) operations(name string, ops []injection.Op) error {
	p.Linef("%s", p.paint.Bold(name))

	for _, op := range ops {
		place := printable.Text(op.Path)

		if op.Op == "remove" {
			p.Linef("  %s", p.paint.Bad("- "+place))

			continue
		}

		value, err := printable.JSON(op.Value)
		if err != nil {
			return fmt.Errorf("printing %s of %s: %w", op.Path, name, err)
		}

		p.Linef("  %s", p.paint.Good("+ "+place+": "+strings.TrimSpace(value)))
	}

	return nil
}
