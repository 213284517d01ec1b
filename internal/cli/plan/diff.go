package plan

import (
	"fmt"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/cli/output"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// diffs shows every field of every object that would change. Copies that would become the same in several members are shown
// once for each, because what is there may differ.
func (p *printer) diffs(v *reading.Cluster, r *Planned) error {
	for _, f := range r.Predictions {
		for i := range f.Changes {
			c := &f.Changes[i]
			if err := p.diffOf(v.Snapshot.Live(c.Namespace, c.Key), c); err != nil {
				return err
			}
		}

		for i := range f.Lists {
			l := &f.Lists[i]
			if l.Refusal == nil {
				p.diff(printable.Title("ConfigMap", l.Namespace, l.Name), listText(l.Before, l.Existed), listText(l.After, l.Exists))
			}
		}

		for i := range f.Injections {
			if err := p.diffOfInjection(f.Key.Namespace, &f.Injections[i]); err != nil {
				return err
			}
		}
	}

	return p.diffInstalls(r.Installs)
}

func listText(list string, exists bool) string {
	if !exists {
		return ""
	}

	return "data:\n  " + scope.ListKey + ": " + list + "\n"
}

func (p *printer) diffOf(live client.Object, c *predict.Change) error {
	if c.Refusal != nil {
		return nil
	}

	before, after := "", ""

	if live != nil {
		text, err := written(live)
		if err != nil {
			return err
		}

		before = text
	}

	if c.Copy != nil {
		o := c.Object()
		o.Name, o.RoleRef = c.ShownName(), c.ShownRoleRef()

		obj := o.In(c.Namespace)
		if live != nil {
			keepOthers(obj, live)
		}

		text, err := written(obj)
		if err != nil {
			return err
		}

		after = text
	}

	p.diff(printable.Title(string(c.Key.Kind), c.Namespace, c.ShownName()), before, after)

	return nil
}

// keepOthers gives an object what others put beside what Ambit decides, which an update leaves alone.
func keepOthers(obj, live client.Object) {
	obj.SetLabels(labels.Merge(live.GetLabels(), obj.GetLabels()))
	obj.SetAnnotations(labels.Merge(live.GetAnnotations(), obj.GetAnnotations()))
	obj.SetFinalizers(live.GetFinalizers())

	if len(obj.GetOwnerReferences()) == 0 {
		obj.SetOwnerReferences(live.GetOwnerReferences())
	}

	// The cluster itself fills in the rules of a ClusterRole that takes them from others.
	role, is := obj.(*rbacv1.ClusterRole)
	if filled, was := live.(*rbacv1.ClusterRole); is && was && role.AggregationRule != nil {
		role.Rules = filled.Rules
	}
}

// written is an object as YAML.
func written(obj client.Object) (string, error) {
	content, err := output.Content(obj)
	if err != nil {
		return "", err
	}

	delete(content, "kind")
	delete(content, "apiVersion")

	text, err := printable.YAML(content)
	if err != nil {
		return "", fmt.Errorf("printing %s: %w", obj.GetName(), err)
	}

	return text, nil
}

func (p *printer) diff(name, before, after string) {
	if !p.differs {
		p.heading("Differences")
	}

	p.differs = true
	p.Linef("%s", p.paint.Bold(name))

	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(before), B: difflib.SplitLines(after), Context: 3,
	})
	if err != nil || text == "" {
		return
	}

	// The position of a hunk says nothing about objects, and the empty last line comes from SplitLines alone.
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")

		switch {
		case strings.HasPrefix(line, "@@"), strings.HasPrefix(line, "--- "), strings.HasPrefix(line, "+++ "), line == "+", line == "-",
			line == " ", line == "":
		case strings.HasPrefix(line, "+"):
			p.Linef("  %s", p.paint.Good(line))
		case strings.HasPrefix(line, "-"):
			p.Linef("  %s", p.paint.Bad(line))
		default:
			p.Linef("  %s", line)
		}
	}
}
