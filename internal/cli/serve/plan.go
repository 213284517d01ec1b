package serve

import (
	"context"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/files"
	"github.com/ambit-k8s/ambit/internal/cli/plan"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/cli/served"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/page"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Plan is what ambit plan prints for the files that the page was started with, and who would be served.
func (s *pageSource) Plan(ctx context.Context) (*page.Plan, error) {
	if len(s.documents) == 0 {
		return nil, nil //nolint:nilnil // There is nothing to plan for, and nothing wrong.
	}

	documents := collect.Map(s.documents, func(d files.Document) files.Document {
		return files.Document{Unstructured: d.DeepCopy(), Source: d.Source}
	})

	v := s.view(s.live.DryRuns())

	result, err := s.plan.For(ctx, v, documents)
	if err != nil {
		return nil, command.OneLine(err)
	}

	data, err := s.plan.Data(v, result)
	if err != nil {
		return nil, err
	}

	out := &page.Plan{Data: data}
	for i := range data.Objects {
		out.Objects = append(out.Objects, plannedObject(&data.Objects[i]))
	}

	data.Objects = []plan.Object{}

	drawScopes(v, result, out)
	drawInstalls(result.Installs, out)

	return out, nil
}

func plannedObject(o *plan.Object) page.PlannedObject {
	out := page.PlannedObject{
		Action: string(o.Action), Kind: o.Kind, Namespace: o.Namespace, Name: o.Name, Source: o.Source, Scope: o.Scope,
	}
	if o.Refused != nil {
		out.Refused = o.Refused.Reason + ": " + o.Refused.Message
	}

	return out
}

// drawScopes adds who would be served by the scopes that were planned.
func drawScopes(v *reading.Cluster, result *plan.Planned, out *page.Plan) {
	for _, h := range v.OperatorNamespaces() {
		at := slices.IndexFunc(result.Predictions, func(f *predict.Prediction) bool { return f.Key == h.Key })
		if at < 0 {
			continue
		}

		out.Namespaces = slices.AppendSeq(out.Namespaces, maps.Keys(h.Facts.Namespaces))

		for i := range result.Predictions[at].Scopes {
			drawScope(v, &h, &result.Predictions[at].Scopes[i], out)
		}
	}
}

func drawScope(v *reading.Cluster, h *reading.OperatorNamespace, f *predict.ScopePrediction, out *page.Plan) {
	name := reading.ScopeName(f.Scope.Owner)
	out.Planned = append(out.Planned, name)

	if f.Scope.Deleting() {
		return
	}

	out.Scopes = append(out.Scopes, overview.Scope{
		Name: name, Group: f.Scope.Owner.Group, Ready: string(metav1.ConditionUnknown), Reason: "Planned",
		Message: "it is not there yet",
	})

	failed := map[string]overview.Reason{}
	for i := range f.Failed {
		failed[f.Failed[i].Namespace] = overview.Reason{Reason: f.Failed[i].Reason, Message: f.Failed[i].Message}
	}

	known := served.Seen(v, h, func(namespace string) overview.Reason { return failed[namespace] })
	out.Services = append(out.Services, overview.OfScope(f.ScopePlan, name, known)...)
}

// noBindings stands for what nobody looked at: what a plan draws is who would be served, and not by which rights.
func noBindings(scope.Key) facts.ClusterBindings { return facts.ClusterBindings{} }

// noLack stands for what is not known yet: a plan has the status that says where nothing would be written.
func noLack(scope.Owner, string) bool { return false }

// drawInstalls adds who would be served by what would be installed.
func drawInstalls(i *plan.Installs, out *page.Plan) {
	targets := map[string][]string{}

	for _, change := range i.After {
		if change.Key.Kind == files.OperatorGroups {
			targets[change.Key.Namespace] = plan.Status(change.After).Targets
		}
	}

	for _, change := range i.After {
		if change.Key.Kind == files.ClusterServiceVersions {
			out.Scopes, out.Services, _ = served.Installed(change.After, targets, noBindings, noLack, out.Scopes, out.Services)
			out.Planned = append(out.Planned, served.CSVName(change.After))
		}
	}

	for _, change := range i.Changes {
		if change.Key.Kind == files.ClusterServiceVersions && change.After == nil {
			out.Planned = append(out.Planned, served.CSVName(change.Before))
		}
	}
}
