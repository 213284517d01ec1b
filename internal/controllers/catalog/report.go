package catalog

import (
	"context"
	"fmt"
	"slices"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/report"
)

// report writes each status that differs. The Subscriptions come last, because their statuses report their InstallPlans.
func (p *state) report(ctx context.Context) {
	for _, s := range p.found.sources {
		if !s.known || isOversized(s.object) {
			continue
		}

		if wanted := s.Status(s.status, p.now); !equality.Semantic.DeepEqual(s.status, &wanted) {
			p.fail(p.write(ctx, s.object, &wanted))
		}
	}

	for _, ip := range p.found.plans {
		if ip.status != nil && !equality.Semantic.DeepEqual(brief(&ip.typed.Status), brief(ip.status)) {
			p.reportPlan(ctx, ip)
		}
	}

	for _, t := range p.targets {
		if t.waits || isOversized(t.object) {
			continue
		}

		was := &t.typed.Status
		if wanted := t.seen.Status(was); !equality.Semantic.DeepEqual(was, &wanted) {
			p.fail(p.write(ctx, t.object, &wanted))
		}
	}
}

// reportPlan writes the status that an InstallPlan should have, and says whether it has it now.
func (p *state) reportPlan(ctx context.Context, ip *installPlan) bool {
	if err := p.writePlan(ctx, ip); err != nil {
		p.fail(err)

		return false
	}

	if e := report.InstallPlanEvent(ip.typed.Spec.ClusterServiceVersionNames, &ip.typed.Status, ip.status); e != nil {
		e.Send(p.Recorder, ip.object)
	}

	ip.typed.Status, ip.typed.ResourceVersion = *ip.status, ip.object.GetResourceVersion()

	return true
}

// writePlan writes the status of an InstallPlan. A patch replaces the list of steps as a whole, so where a step changes, the
// manifests that the cache does not keep are those of the live one.
func (p *state) writePlan(ctx context.Context, ip *installPlan) error {
	lacks := func(step *olmv1alpha1.Step) bool { return step.Resource.Manifest == "" }

	if slices.ContainsFunc(ip.status.Plan, lacks) && !equality.Semantic.DeepEqual(ip.typed.Status.Plan, ip.status.Plan) {
		obj, err := p.readLive(ctx, ip.object.GroupVersionKind(), ip.typed.Namespace, ip.typed.Name)
		if err != nil || obj == nil {
			return err
		}

		live := &olmv1alpha1.InstallPlan{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, live); err != nil {
			return fmt.Errorf("reading InstallPlan %s: %w", client.ObjectKeyFromObject(obj), err)
		}

		for i, step := range ip.status.Plan {
			if lacks(step) && i < len(live.Status.Plan) {
				step.Resource.Manifest = live.Status.Plan[i].Resource.Manifest
			}
		}
	}

	return p.write(ctx, ip.object, ip.status)
}

// brief is a status without the manifests, which the cache does not keep. They follow from the steps that its annotation names.
func brief(s *olmv1alpha1.InstallPlanStatus) *olmv1alpha1.InstallPlanStatus {
	out := s.DeepCopy()
	for _, step := range out.Plan {
		step.Resource.Manifest = ""
	}

	return out
}

// write writes the status of obj, and notes it, so that no plan is made from an older one.
func (p *state) write(ctx context.Context, obj *unstructured.Unstructured, wanted any) error {
	before := obj.DeepCopy()

	now, err := content(wanted)
	if err != nil {
		return err
	}

	obj.Object["status"] = now

	if err := generic.WriteStatus(ctx, p.Client, obj, before); err != nil {
		return err
	}

	p.written.Note(obj)

	return nil
}

// content is an object, or a part of one, as JSON has it.
func content(of any) (map[string]any, error) {
	out, err := runtime.DefaultUnstructuredConverter.ToUnstructured(of)
	if err != nil {
		return nil, fmt.Errorf("writing %T as JSON: %w", of, err)
	}

	return out, nil
}
