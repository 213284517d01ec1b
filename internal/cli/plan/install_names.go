package plan

import (
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/simulation"
)

// unknownPlan stands for the name of an InstallPlan whose Subscription does not exist yet: the name follows from the
// Subscription's UID.
const unknownPlan = "install-*"

// findNames finds the new objects whose names in the cluster will differ from those in memory: nobody knows how the name of a
// copy ends before the copy exists.
func (i *Installs) findNames(proposals []*proposal) {
	i.names = map[simulation.Key]string{}

	var plans []string

	for _, c := range i.Changes {
		if c.Before != nil {
			continue
		}

		slot := c.After.GetAnnotations()[scope.AnnotationCopy]
		// Users know the names of a group's ClusterRoles.
		isFixed := strings.HasPrefix(c.After.GetAnnotations()[scope.AnnotationOwner], scope.KindGroup+"/")

		switch {
		case c.Key.Kind.Kind == olm.InstallPlanKind && isForNewSubscription(c.After, proposals):
			i.names[c.Key] = unknownPlan
			plans = append(plans, c.Key.Name, unknownPlan)
		case slot == c.Key.Name && slot != "" && !isFixed:
			i.names[c.Key] = projected.Prefix(projected.Kind(c.Key.Kind.Kind), slot) + "*"
		}
	}

	i.plans = strings.NewReplacer(plans...)
}

func isForNewSubscription(u *unstructured.Unstructured, proposals []*proposal) bool {
	refs := u.GetOwnerReferences()

	return len(refs) > 0 && slices.ContainsFunc(proposals, func(p *proposal) bool {
		return p.result == resultCreated && p.GetKind() == olm.SubscriptionKind && p.GetNamespace() == u.GetNamespace() &&
			p.GetName() == refs[0].Name
	})
}

// nameOf is what an object is called, for users.
func (i *Installs) nameOf(key simulation.Key) string {
	if name, unknown := i.names[key]; unknown {
		return name
	}

	return key.Name
}

// Shown is a copy of an object, with the names that users know.
func (i *Installs) Shown(u *unstructured.Unstructured) *unstructured.Unstructured {
	out := u.DeepCopy()

	name, binds, _ := unstructured.NestedString(out.Object, "roleRef", "name")
	if !binds {
		return out
	}

	kind, _, _ := unstructured.NestedString(out.Object, "roleRef", "kind")
	key := simulation.Key{
		Kind:           schema.GroupKind{Group: rbacv1.GroupName, Kind: kind},
		NamespacedName: types.NamespacedName{Namespace: u.GetNamespace(), Name: name},
	}

	if projected.Kind(kind).IsClusterScoped() {
		key.Namespace = ""
	}

	_ = unstructured.SetNestedField(out.Object, i.nameOf(key), "roleRef", "name") // It was there.

	return out
}

// name replaces the names in a status with those that users know.
func (i *Installs) name(status *Install) {
	status.Name, status.Message = i.plans.Replace(status.Name), i.plans.Replace(status.Message)

	for n := range status.Conditions {
		status.Conditions[n].Message = i.plans.Replace(status.Conditions[n].Message)
	}
}
