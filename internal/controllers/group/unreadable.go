package group

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/plan"
)

// reasonUnreadable is the reason of a CSV that cannot be read.
const reasonUnreadable olm.ConditionReason = "InvalidSpec"

// keeps says whether what looks like a leftover is what a CSV holds that is there and cannot be read now: a slip in an edit must
// not take everything from an operator that runs. It ends with the group, and with the target.
func (p *pass) keeps(c plan.Change) bool {
	if p.world.Sphere == nil {
		return false
	}

	targets := p.world.Sphere.Targets
	if len(targets) == 0 || c.Namespace != "" && c.Namespace != p.found.namespace && !slices.Contains(targets, c.Namespace) {
		return false
	}

	owner := p.facts.Projected[c.Namespace][c.Key].Owner

	return slices.ContainsFunc(p.found.unreadable, func(u unreadable) bool {
		return owner == compile.CSVOwner(u.object.GetNamespace(), u.object.GetName()).String()
	})
}

// reportUnreadable says of each CSV that cannot be read why that is. What else its status says is left as it is: it may be what
// cannot be read.
func (r *Reconciler) reportUnreadable(ctx context.Context, found *resources) error {
	var errs []error

	for _, u := range found.unreadable {
		status, _ := u.object.Object["status"].(map[string]any)
		now := maps.Clone(status)

		if now == nil {
			now = map[string]any{}
		}

		message := u.why.Error()
		if now["phase"] == string(olm.CSVPhaseFailed) && now["message"] == message {
			continue
		}

		before := u.object.DeepCopy()
		now["phase"], now["reason"], now["message"] = string(olm.CSVPhaseFailed), string(reasonUnreadable), message
		u.object.Object["status"] = now

		if err := r.Client.Status().Patch(ctx, u.object, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("writing the status of ClusterServiceVersion %s/%s: %w",
				u.object.GetNamespace(), u.object.GetName(), err))
		}
	}

	return errors.Join(errs...)
}
