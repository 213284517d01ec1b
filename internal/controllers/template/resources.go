package template

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// resources are all templates and instances, by the owners that they are compiled to.
type resources struct {
	templates map[scope.Owner]*template
	instances map[scope.Owner]*operatorsv1alpha1.ScopeInstance
	// failed is in how many namespaces each instance is not fully served, of which its status names some.
	failed map[string]int
	// compiled are all templates.
	compiled compile.Templates
	// noTemplates says that the kind ScopeTemplate is missing.
	noTemplates bool
}

type template struct {
	*operatorsv1alpha1.ScopeTemplate

	compiled compile.Template
}

// Kinds returns an empty object of each kind that is reconciled here.
func Kinds() []client.Object {
	return []client.Object{&operatorsv1alpha1.ScopeTemplate{}, &operatorsv1alpha1.ScopeInstance{}}
}

// read returns all templates and instances but those that are being deleted: the garbage collector removes what they made,
// and Ambit what is left of it.
func (r *Reconciler) read(ctx context.Context) (*resources, error) {
	var (
		templates operatorsv1alpha1.ScopeTemplateList
		instances operatorsv1alpha1.ScopeInstanceList
	)

	for _, list := range []client.ObjectList{&templates, &instances} {
		if err := r.Client.List(ctx, list); err != nil {
			return nil, fmt.Errorf("listing ScopeTemplates and ScopeInstances: %w", err)
		}
	}

	all := &resources{
		templates: map[scope.Owner]*template{}, instances: map[scope.Owner]*operatorsv1alpha1.ScopeInstance{},
		failed:      map[string]int{},
		noTemplates: r.IsMissing(&operatorsv1alpha1.ScopeTemplate{}),
	}

	compiled := compile.NewTemplates(collect.Pointers(templates.Items), collect.Pointers(instances.Items))

	for i := range instances.Items {
		if in := instances.Items[i].DeepCopy(); in.DeletionTimestamp == nil {
			all.instances[compile.InstanceOwner(in.Name)] = in
		}
	}

	for i := range templates.Items {
		if of := compiled[templates.Items[i].Name]; of != nil {
			t := templates.Items[i].DeepCopy()
			all.templates[compile.TemplateOwner(t.Name)] = &template{t, *of}
		}
	}

	all.compiled = compiled
	r.written.Keep("", all.objects())

	return all, nil
}

func (a *resources) objects() []client.Object {
	out := make([]client.Object, 0, len(a.templates)+len(a.instances))
	for _, t := range a.templates {
		out = append(out, t.ScopeTemplate)
	}

	for _, in := range a.instances {
		out = append(out, in)
	}

	return out
}

func (a *resources) scopes() []scope.Scope {
	out := make([]scope.Scope, 0, len(a.templates)+len(a.instances))
	for _, t := range a.templates {
		out = append(out, t.compiled.Scope)
	}

	for _, in := range a.instances {
		if s, is := a.compiled.Instance(in); is {
			out = append(out, s)
		}
	}

	return out
}

// news is what is new about a resource after its plan was applied.
type news struct {
	// obj has its new status; before is what it was, and differs says whether the two differ.
	obj, before client.Object
	differs     bool
	events      []report.Event
	// brought are those of the events that speak of what was done, and not of the status. The next plan does not know of it any
	// more, so they are sent even if the status could not be written.
	brought []report.Event
}

func (a *resources) news(p *plan.Plan, out *apply.Outcome, index int) news {
	owner := p.Scopes[index].Scope.Owner

	if t := a.templates[owner]; t != nil {
		was := t.DeepCopy()
		t.Status = report.TemplateStatus(p, out, index, t.compiled.Problems, &was.Status)

		return news{
			obj: t.ScopeTemplate, before: was, differs: !equality.Semantic.DeepEqual(was.Status, t.Status),
			events: report.TemplateEvents(&was.Status, &t.Status),
		}
	}

	in := a.instances[owner]
	was, to := in.DeepCopy(), a.referred(p, in.Spec.ScopeTemplateName)
	in.Status, a.failed[in.Name] = report.InstanceStatus(p, out, index, to, &was.Status)
	report.CutInstance(&in.Status)

	return news{
		obj: in, before: was, differs: !equality.Semantic.DeepEqual(was.Status, in.Status),
		events:  report.InstanceEvents(p, out, index, to, &was.Status, &in.Status),
		brought: report.InstanceEvents(p, out, index, to, &was.Status, &was.Status),
	}
}

func (a *resources) referred(p *plan.Plan, name string) report.Referred {
	owner := compile.TemplateOwner(name)
	to := report.Referred{Name: name, Index: -1, KindMissing: a.noTemplates}

	for i := range p.Scopes {
		if p.Scopes[i].Scope.Owner == owner {
			to.Index, to.Invalid = i, a.templates[owner].compiled.Problems
		}
	}

	return to
}
