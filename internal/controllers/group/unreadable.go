package group

import (
	"context"
	"maps"
	"slices"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/controllers/generic"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// reasonUnreadable is the reason of a CSV that cannot be read.
const reasonUnreadable olm.ConditionReason = "InvalidSpec"

// maxWhy is how long it is told why: what cannot be read is quoted, and may be as long as an object can be.
const maxWhy = 2 << 10

// leftOut are the CSVs for which there is no room.
func (f *resources) leftOut() []*unstructured.Unstructured {
	over := collect.Filter(f.unreadable, func(u unreadable) bool { return u.over })

	return collect.Map(over, func(u unreadable) *unstructured.Unstructured { return u.object })
}

// keeps says whether an object that looks like a leftover belongs to a CSV that exists and cannot be read now: a slip in an edit
// must not take everything from an operator that runs. It ends with the group, and with the target.
func (p *state) keeps(c plan.Change) bool {
	if p.snapshot.Group == nil {
		return false
	}

	targets := p.snapshot.Group.Targets
	if len(targets) == 0 || c.Namespace != "" && c.Namespace != p.found.namespace && !slices.Contains(targets, c.Namespace) {
		return false
	}

	live, exists := p.facts.Projected[c.Namespace][c.Key]
	if !exists {
		return false
	}

	u, is := p.unreadableBy(live.Owner)

	return is && (c.Namespace != "" || compile.IsEverywhere(targets) || u.isForCluster(live.Slot))
}

// unreadableBy finds, by the owner that an object names, the CSV that cannot be read.
func (p *state) unreadableBy(owner string) (*unreadable, bool) {
	if p.unreadable == nil {
		p.unreadable = make(map[string]*unreadable, len(p.found.unreadable))

		for i := range p.found.unreadable {
			u := &p.found.unreadable[i]
			p.unreadable[u.owner().String()] = u
		}
	}

	u, is := p.unreadable[owner]

	return u, is
}

func (u *unreadable) owner() scope.Owner {
	return compile.CSVOwner(u.object.GetNamespace(), u.object.GetName())
}

// providedBefore are the APIs of a group's list that a CSV provides which cannot be read now. It adds none: whether it may
// provide them is not known. Where it is left out, nothing is known of it, and all of the list stay.
func (p *state) providedBefore() []string {
	if p.snapshot.Group == nil || len(p.snapshot.Group.Targets) == 0 {
		return nil
	}

	var apis []string

	for i := range p.found.unreadable {
		u := &p.found.unreadable[i]
		if u.over {
			return p.snapshot.Group.Provided
		}

		apis = append(apis, install.ProvidedBy(u.object.Object)...)
	}

	return slices.DeleteFunc(apis, func(api string) bool { return !slices.Contains(p.snapshot.Group.Provided, api) })
}

// isForCluster says whether the ClusterRole in a slot, or a binding of it, is for the clusterPermissions, as far as these can
// be read. What an operator holds in all namespaces because its group was for all of them looks the same, and ends with that.
func (u *unreadable) isForCluster(slot string) bool {
	owner := u.owner()

	return slices.ContainsFunc(install.AccountsWith(u.object, "clusterPermissions"), func(account string) bool {
		return compile.ClusterSlot(owner, account) == slot
	})
}

// reportUnreadable says of each CSV that cannot be read why that is. What else its status says is left as it is: it may be what
// cannot be read.
func (r *Reconciler) reportUnreadable(ctx context.Context, found *resources) error {
	fits := r.Quota.Fitting(found.namespace, found.leftOut())

	return generic.InTurn(len(found.unreadable), func(i int) error {
		u := &found.unreadable[i]
		was, _ := u.object.Object["status"].(map[string]any)
		now := maps.Clone(was)

		if now == nil {
			now = map[string]any{}
		}

		phase, reason, message := olm.CSVPhaseFailed, reasonUnreadable, printable.Cut(printable.Text(u.why.Error()), maxWhy)
		if u.over {
			reason = install.ReasonLimit
		}

		// Writing this makes the API server report the whole of it once more.
		if _, is := fits[u.object.GetUID()]; is && u.over {
			phase, message = olm.CSVPhasePending, "there is room for it again"
		}

		if now["phase"] == string(phase) && now["message"] == message {
			return nil
		}

		before := u.object.DeepCopy()
		now["phase"], now["reason"], now["message"] = string(phase), string(reason), message
		u.object.Object["status"] = now

		return generic.WriteStatus(ctx, r.Client, u.object, before)
	})
}
