package catalog

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/internal/controllers/declared"
)

// target is a Subscription during a reconcile.
type target struct {
	*subscription

	seen catalog.Seen
	// waits says that something about it is not known yet, so that nothing is done and nothing is said.
	waits bool
	// installed is the ClusterServiceVersion that is there.
	installed *olmv1alpha1.ClusterServiceVersion
	// steps are those of what comes next, and plan its InstallPlan.
	steps *catalog.Steps
	plan  *plan
}

// resolve finds what each Subscription gets.
func (p *state) resolve(ctx context.Context) {
	first := map[string]string{}

	for i, s := range p.found.subscriptions {
		t := &target{subscription: s, seen: catalog.Seen{Now: p.now}}
		p.targets = append(p.targets, t)

		if t.seen.LeftOut = s.leftOut; s.leftOut {
			continue
		}

		if i >= catalog.MaxSubscriptions {
			t.problem(catalog.ReasonTooManySubscriptions, fmt.Sprintf("this namespace has %d Subscriptions, and Ambit serves the "+
				"oldest %d", len(p.found.subscriptions), catalog.MaxSubscriptions))

			continue
		}

		if s.typed.Spec == nil {
			t.problem(catalog.ReasonInvalidSubscription, "it has no spec")

			continue
		}

		pkg := s.typed.Spec.Package
		if by := first[pkg]; by != "" {
			t.problem(catalog.ReasonAlreadySubscribed, fmt.Sprintf("Subscription %s of this namespace is for package %s already", by, pkg))

			continue
		}

		first[pkg] = s.typed.Name

		p.choose(ctx, t)
	}
}

func (t *target) problem(reason, message string) {
	t.seen.Problem = &catalog.Problem{Reason: reason, Message: message}
}

// choose finds the catalog of a Subscription, and in that what comes next.
func (p *state) choose(ctx context.Context, t *target) {
	spec := t.typed.Spec

	from := p.findSource(ctx, t)
	if t.waits {
		return
	}

	var content *catalog.Catalog
	if from != nil {
		t.seen.Source, content = &from.Source, from.Content
	}

	t.installed = p.installed(t, content)
	if t.installed != nil {
		t.seen.Installed = t.installed.Name
	}

	t.seen.Plan = p.current(t)

	if from == nil {
		return
	}

	if reason, _ := from.Problem(); reason != "" {
		return
	}

	request := &catalog.Request{
		Subscription: t.typed.Name, Package: spec.Package, Channel: spec.Channel, StartingCSV: spec.StartingCSV,
		Installed: t.seen.Installed,
	}
	if t.installed != nil {
		request.InstalledNumber = t.installed.Spec.Version.String()
	}

	choice, err := content.Choose(request)
	if err != nil {
		t.problem(catalog.ReasonUnsatisfiable, err.Error())

		return
	}

	t.seen.Choice = choice
	if choice.Next != nil {
		t.steps = content.Steps(choice.Next, catalog.Origin{
			Source: from.Name, SourceNamespace: from.Namespace, Package: spec.Package, Namespace: p.found.namespace,
			Replaces: choice.Replaces,
		})
		p.planFor(ctx, t)
	}
}

// findSource finds the CatalogSource of a Subscription; nil when it is not there, or nowhere to be looked for. What is
// installed is there all the same.
func (p *state) findSource(ctx context.Context, t *target) *source {
	places, err := catalog.Where(p.found.namespace, p.Global, t.typed.Spec)
	if err != nil {
		t.problem(catalog.ReasonInvalidSubscription, err.Error())

		return nil
	}

	t.seen.SourceNamespace, t.seen.SourceName = places[0].Namespace, places[0].Name

	for _, place := range places {
		found, err := p.sourceAt(ctx, place)
		if err != nil {
			p.errs = append(p.errs, err)
			t.waits = true

			return nil
		}

		if found != nil {
			t.waits = !found.known

			return found
		}
	}

	return nil
}

func (p *state) sourceAt(ctx context.Context, place client.ObjectKey) (*source, error) {
	if place.Namespace == p.found.namespace {
		i := slices.IndexFunc(p.found.sources, func(s *source) bool { return s.Name == place.Name })
		if i < 0 {
			return nil, nil //nolint:nilnil // That there is none is no error.
		}

		return p.found.sources[i], nil
	}

	obj := newObject(sourceKind)
	if err := p.Cache.Get(ctx, place, obj); apierrors.IsNotFound(err) || err == nil && obj.GetDeletionTimestamp() != nil {
		return nil, nil //nolint:nilnil // That there is none is no error.
	} else if err != nil {
		return nil, fmt.Errorf("reading CatalogSource %s: %w", place, err)
	}

	return p.source(obj, declared.IsEmptied(obj))
}

// installed is the ClusterServiceVersion of the package that is there: of several, the one that no other replaces.
func (p *state) installed(t *target, content *catalog.Catalog) *olmv1alpha1.ClusterServiceVersion {
	pkg := t.typed.Spec.Package
	label := catalog.PackageLabel(pkg, p.found.namespace)

	var mine []*olmv1alpha1.ClusterServiceVersion

	for _, csv := range p.found.csvs {
		_, labelled := csv.Labels[label]
		if labelled || csv.Name == t.typed.Status.InstalledCSV || content != nil && content.Belongs(csv.Name, pkg) {
			mine = append(mine, csv)
		}
	}

	newest := slices.DeleteFunc(slices.Clone(mine), func(csv *olmv1alpha1.ClusterServiceVersion) bool {
		return slices.ContainsFunc(mine, func(other *olmv1alpha1.ClusterServiceVersion) bool {
			return other.Spec.Replaces == csv.Name && other.Name != csv.Name
		})
	})
	if len(newest) == 0 {
		return nil
	}

	return slices.MaxFunc(newest, func(a, b *olmv1alpha1.ClusterServiceVersion) int {
		return cmp.Or(a.Spec.Version.Compare(b.Spec.Version.Version), cmp.Compare(a.Name, b.Name))
	})
}

// planFor finds or makes the InstallPlan of what comes next.
func (p *state) planFor(ctx context.Context, t *target) {
	want := catalog.NewInstallPlan(&catalog.Owner{
		Name: t.typed.Name, UID: t.typed.UID, Approval: t.typed.GetInstallPlanApproval(),
	}, t.steps, func(name string) (string, bool) {
		if there := p.planNamed(name); there != nil {
			return there.typed.Annotations[catalog.AnnotationSteps], true
		}

		return "", false
	})

	if there := p.planNamed(want.Name); there != nil && there.leftOut {
		t.problem(catalog.ReasonLimit, fmt.Sprintf("InstallPlan %s is left out: the InstallPlans of this namespace take more memory "+
			"than there is for them, and this is one of the largest; delete those that are of no use any more", want.Name))

		return
	} else if there != nil {
		t.plan, t.seen.Plan = there, there.typed
		p.uninstalled(ctx, t)

		return
	}

	if p.isHeld(t) {
		t.seen.Held = true

		return
	}

	if over := p.superseded(t); over >= catalog.MaxSuperseded {
		t.problem(catalog.ReasonTooManyInstallPlans, fmt.Sprintf("%d InstallPlans of it came to nothing, because the catalog or the "+
			"Subscription changed each time; delete them to get another", over))

		return
	}

	// The watch brings it back, and with it the next reconcile, which does what it says.
	t.waits = true

	if err := p.makePlan(ctx, want); err != nil {
		p.errs = append(p.errs, err)
	}
}

// superseded is how many InstallPlans of a Subscription came to nothing. Each is a write for somebody who may change a catalog as
// often as they like.
func (p *state) superseded(t *target) int {
	over := 0

	for _, ip := range p.plansOf(t) {
		if ip.typed.Status.GetCondition(olmv1alpha1.InstallPlanInstalled).Reason == catalog.ReasonSuperseded {
			over++
		}
	}

	return over
}

// makePlan makes an InstallPlan, which needs no rights of the group's account: it says what is to be done, and does nothing.
func (p *state) makePlan(ctx context.Context, want *olmv1alpha1.InstallPlan) error {
	if err := p.Client.Create(ctx, want); client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("making InstallPlan %s/%s: %w", want.Namespace, want.Name, err)
	}

	return nil
}

// isHeld says whether what comes next waits for what is installed, as in OLM.
func (p *state) isHeld(t *target) bool {
	if t.installed == nil {
		return false
	}

	forward := len(p.found.groups) == 1 && p.found.groups[0].Spec.UpgradeStrategy == operatorsv1.UpgradeFailForward

	switch t.installed.Status.Phase {
	case olmv1alpha1.CSVPhaseSucceeded:
		return false
	case olmv1alpha1.CSVPhaseFailed:
		return !forward
	default:
		return true
	}
}

// uninstalled: an InstallPlan is done once. If a user deletes what it installed and keeps the Subscription, Ambit does not
// install it again.
func (p *state) uninstalled(ctx context.Context, t *target) {
	if t.plan.typed.Status.Phase != olmv1alpha1.InstallPlanPhaseComplete {
		return
	}

	name := t.seen.Choice.Next.Name
	list := newList(olmv1alpha1.ClusterServiceVersionKind)

	err := p.Live.List(ctx, list, client.InNamespace(p.found.namespace), client.MatchingFields{"metadata.name": name})
	if err != nil {
		p.errs = append(p.errs, fmt.Errorf("looking for ClusterServiceVersion %s: %w", name, err))
	}

	if err != nil || len(list.Items) > 0 {
		t.waits = true // The cache is about to tell.

		return
	}

	t.problem(catalog.ReasonUninstalled, fmt.Sprintf("ClusterServiceVersion %s was installed by InstallPlan %s and has been "+
		"deleted; to install it again, delete the InstallPlan", name, t.plan.typed.Name))
}

func (p *state) planNamed(name string) *plan {
	i := slices.IndexFunc(p.found.plans, func(ip *plan) bool { return ip.typed.Name == name })
	if i < 0 {
		return nil
	}

	return p.found.plans[i]
}

// plansOf are the InstallPlans that were made for a Subscription: the one that is wanted now, and those that say so.
func (p *state) plansOf(t *target) []*plan {
	var out []*plan

	for _, ip := range p.found.plans {
		if ip == t.plan {
			out = append(out, ip)

			continue
		}

		if _, made := ip.typed.Annotations[catalog.AnnotationSteps]; !made {
			continue
		}

		for _, o := range ip.typed.OwnerReferences {
			if o.UID == t.typed.UID {
				out = append(out, ip)
			}
		}
	}

	return out
}

// current is the InstallPlan that a Subscription's status names, if it is there.
func (p *state) current(t *target) *olmv1alpha1.InstallPlan {
	ref := t.typed.Status.InstallPlanRef
	if ref == nil {
		return nil
	}

	for _, ip := range p.found.plans {
		if ip.typed.UID == ref.UID && !ip.leftOut {
			return ip.typed
		}
	}

	return nil
}
