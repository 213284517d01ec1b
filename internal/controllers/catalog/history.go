package catalog

import (
	"cmp"
	"slices"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// superseded is how many InstallPlans of a Subscription came to nothing. Each of them cost Ambit a write, and whoever may change
// a catalog can cause as many as they like.
func (r *resolution) superseded(t *target) int {
	return collect.Count(r.plansOf(t), (*installPlan).isSuperseded)
}

// carriedOut is an InstallPlan of a Subscription that installed a version which is not there any more, where nothing else is
// installed; nil when there is none. What the catalog holds by now changes nothing about that, and nor does what the status of
// the Subscription says. Whoever deletes it asks for another, and none keeps that away after which another version was installed.
func (r *resolution) carriedOut(t *target) *installPlan {
	if t.installed != nil {
		return nil
	}

	plans := slices.DeleteFunc(r.plansOf(t), func(ip *installPlan) bool {
		name := ip.version()
		there := slices.ContainsFunc(r.found.csvs, func(csv *olmv1alpha1.ClusterServiceVersion) bool { return csv.Name == name })

		return !ip.isComplete() || ip.isReplaced() || name == "" || there
	})
	if len(plans) == 0 {
		return nil
	}

	return slices.MaxFunc(plans, func(a, b *installPlan) int { return scope.CompareAge(a.typed, b.typed) })
}

// carried is the version that the InstallPlan of a Subscription installed.
func (t *target) carried() string { return cmp.Or(t.plan.version(), t.seen.Choice.Next.Name) }

func (r *resolution) planNamed(name string) *installPlan {
	return find(r.found.plans, func(ip *installPlan) bool { return ip.typed.Name == name })
}

// find is the first of a list for which something holds; nil where there is none.
func find[T any](list []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i]
	}

	return nil
}

// plansOf are the InstallPlans that were made for a Subscription: the one that is wanted now, and those whose owner references
// say so.
func (r *resolution) plansOf(t *target) []*installPlan {
	return collect.Filter(r.found.plans, func(ip *installPlan) bool {
		_, made := ip.typed.Annotations[catalog.AnnotationSteps]

		return ip == t.plan || made && slices.ContainsFunc(ip.typed.OwnerReferences, func(o metav1.OwnerReference) bool {
			return o.UID == t.typed.UID
		})
	})
}

// last is the InstallPlan that a Subscription's status names, or, where the version that was there until now is gone, the one
// that installed that: an upgrade that waits does not hide what was uninstalled. Nil when the one of the status is gone.
func (r *resolution) last(t *target) *installPlan {
	ref := t.typed.Status.InstallPlanRef
	if ref == nil {
		return nil
	}

	named := find(r.found.plans, func(ip *installPlan) bool { return ip.typed.UID == ref.UID })
	if was := t.typed.Status.InstalledCSV; named != nil && t.seen.Installed == "" && was != "" {
		return cmp.Or(find(r.plansOf(t), func(ip *installPlan) bool { return ip.isComplete() && ip.version() == was }), named)
	}

	return named
}

// nameInstaller has a Subscription at its newest version name the InstallPlan that installed that, if it is there. Its status may
// not: what an InstallPlan does may be done before the status could be written.
func (r *resolution) nameInstaller(t *target) {
	made := slices.DeleteFunc(r.plansOf(t), func(ip *installPlan) bool {
		return ip.leftOut || ip.isSuperseded() || !ip.installs(t.installed)
	})
	if len(made) == 0 {
		return
	}

	if named := r.last(t); named == nil || !named.installs(t.installed) {
		t.seen.Plan = slices.MaxFunc(made, func(a, b *installPlan) int { return scope.CompareAge(a.typed, b.typed) }).typed
	}
}
