package catalog

import (
	"cmp"
	"fmt"
	"slices"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/catalog"
	"github.com/ambit-k8s/ambit/internal/install"
)

// resolution decides what each Subscription gets, from what was read and from nothing else.
type resolution struct {
	found *resources
	// global is the namespace whose catalogs are for all namespaces.
	global  string
	now     metav1.Time
	targets []*target
}

// target is a Subscription during a reconcile.
type target struct {
	*subscription

	seen catalog.Seen
	// waits says that something about it is not known yet, so that nothing is installed and no status is written.
	waits bool
	// installed is the ClusterServiceVersion that is there.
	installed *olmv1alpha1.ClusterServiceVersion
	// steps are those of what comes next, and plan its InstallPlan; missing is the latter where it has to be created.
	steps   *catalog.Steps
	plan    *installPlan
	missing *olmv1alpha1.InstallPlan

	// runs says that the InstallPlan is carried out as far as it is approved and allowed; definitions are the live ones of its
	// steps, and unknown why they are not known.
	runs        bool
	definitions map[string]*unstructured.Unstructured
	unknown     error
}

func (r *resolution) resolve() {
	first := map[string]string{}

	for i, s := range r.found.subscriptions {
		t := &target{subscription: s, seen: catalog.Seen{Now: r.now}}
		r.targets = append(r.targets, t)

		if t.seen.LeftOut = s.leftOut; s.leftOut {
			continue
		}

		if i >= catalog.MaxSubscriptions {
			t.problem(catalog.ReasonTooManySubscriptions, fmt.Sprintf("this namespace has %d Subscriptions, and Ambit serves the "+
				"oldest %d", len(r.found.subscriptions), catalog.MaxSubscriptions))

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

		r.choose(t)
	}
}

func (t *target) problem(reason, message string) {
	t.seen.Problem = &catalog.Problem{Reason: reason, Message: message}
}

// choose finds the catalog of a Subscription, and in that what comes next.
func (r *resolution) choose(t *target) {
	spec := t.typed.Spec

	from := r.lookFor(t)
	if t.waits {
		return
	}

	var content *catalog.Catalog
	if from != nil {
		t.seen.Source, content = &from.Source, from.Content
	}

	t.installed = r.installed(t, content)
	if t.installed != nil {
		t.seen.Installed = t.installed.Name
	}

	name := r.unreadable(t, content)
	if name != "" {
		t.installed, t.seen.Installed = nil, name
	}

	if last := r.last(t); last != nil && !last.leftOut {
		t.seen.Plan = last.typed
	}

	if name != "" {
		t.problem(catalog.ReasonInstalledUnreadable, fmt.Sprintf("ClusterServiceVersion %s is installed and cannot be read, or is "+
			"left out: its status says why; until that is over, nothing is installed over it", name))

		return
	}

	if from == nil {
		return
	}

	if reason, _ := from.Problem(); reason != "" {
		return
	}

	if why := catalog.ApprovalProblem(spec.InstallPlanApproval); why != "" {
		t.problem(catalog.ReasonInvalidSubscription, why)

		return
	}

	choice, err := content.Choose(t.request())
	if err != nil {
		t.problem(catalog.ReasonUnsatisfiable, err.Error())

		return
	}

	t.seen.Choice = choice
	if choice.Next == nil {
		r.nameInstaller(t)
	} else {
		t.steps = content.Steps(choice.Next, catalog.Origin{
			Source: from.Name, SourceNamespace: from.Namespace, Package: spec.Package, Namespace: r.found.namespace,
			Replaces: choice.Replaces,
		})
		r.planFor(t)
	}
}

func (t *target) request() *catalog.Request {
	spec := t.typed.Spec

	request := &catalog.Request{
		Subscription: t.typed.Name, Package: spec.Package, Channel: spec.Channel, StartingCSV: spec.StartingCSV,
		Installed: t.seen.Installed,
	}
	if t.installed != nil {
		request.InstalledNumber, request.InstalledReplaces = t.installed.Spec.Version.String(), t.installed.Spec.Replaces
	}

	return request
}

// lookFor finds the CatalogSource of a Subscription; nil when it is not there, or nowhere to be looked for. What is installed is
// found even so.
func (r *resolution) lookFor(t *target) *source {
	places, err := catalog.Where(r.found.namespace, r.global, t.typed.Spec)
	if err != nil {
		t.problem(catalog.ReasonInvalidSubscription, err.Error())

		return nil
	}

	t.seen.SourceNamespace, t.seen.SourceName = places[0].Namespace, places[0].Name

	for _, place := range places {
		if _, unread := r.found.unread[place]; unread {
			t.waits = true

			return nil
		}

		if found := r.sourceAt(place); found != nil {
			t.waits = !found.known

			return found
		}
	}

	return nil
}

// sourceAt is the CatalogSource of a place; nil when there is none.
func (r *resolution) sourceAt(place types.NamespacedName) *source {
	if place.Namespace != r.found.namespace {
		return r.found.global[place.Name]
	}

	return find(r.found.sources, func(s *source) bool { return s.Name == place.Name })
}

// isOf says whether a ClusterServiceVersion is one of the package that a Subscription is for: by the label of whoever installed
// it, or because the catalog has it. What the status of the Subscription says could be somebody else's words, and what is taken
// for installed is replaced, and deleted. So it counts only for what an InstallPlan of the Subscription is for, too.
func (r *resolution) isOf(t *target, content *catalog.Catalog, csv metav1.Object) bool {
	pkg := t.typed.Spec.Package

	labelled, otherwise := catalog.IsLabelled(csv.GetLabels(), pkg, r.found.namespace)
	if labelled || content != nil && content.Belongs(csv.GetName(), pkg) {
		return true
	}

	return !otherwise && csv.GetName() == t.typed.Status.InstalledCSV && r.isPlanned(t, csv.GetName())
}

// isPlanned says whether an InstallPlan of a Subscription, be it Ambit's or OLM's, is for a ClusterServiceVersion.
func (r *resolution) isPlanned(t *target, csv string) bool {
	return slices.ContainsFunc(r.found.plans, func(ip *installPlan) bool {
		return slices.Contains(ip.typed.Spec.ClusterServiceVersionNames, csv) &&
			slices.ContainsFunc(ip.typed.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == t.typed.UID })
	})
}

// unreadable is the name of a ClusterServiceVersion of the package that is there and cannot be read, unless one that can be read
// replaces it; empty when there is none.
func (r *resolution) unreadable(t *target, content *catalog.Catalog) string {
	var names []string

	for _, csv := range r.found.unreadable {
		replaced := slices.ContainsFunc(r.found.csvs, func(other *olmv1alpha1.ClusterServiceVersion) bool {
			return other.Spec.Replaces == csv.GetName()
		})
		if !replaced && r.isOf(t, content, csv) {
			names = append(names, csv.GetName())
		}
	}

	switch was := t.typed.Status.InstalledCSV; {
	case len(names) == 0:
		return ""
	case slices.Contains(names, was):
		return was
	default:
		return slices.Min(names)
	}
}

// installed is the ClusterServiceVersion of the package that is there: of several, the one that no other replaces.
func (r *resolution) installed(t *target, content *catalog.Catalog) *olmv1alpha1.ClusterServiceVersion {
	mine := slices.DeleteFunc(slices.Clone(r.found.csvs), func(csv *olmv1alpha1.ClusterServiceVersion) bool {
		return !r.isOf(t, content, csv)
	})

	newest := install.Newest(mine)
	if len(newest) == 0 {
		return nil
	}

	return slices.MaxFunc(newest, func(a, b *olmv1alpha1.ClusterServiceVersion) int {
		return cmp.Or(a.Spec.Version.Compare(b.Spec.Version.Version), cmp.Compare(a.Name, b.Name))
	})
}

// planFor finds the InstallPlan of what comes next, or says what it has to be.
func (r *resolution) planFor(t *target) {
	want := catalog.NewInstallPlan(&catalog.Owner{
		Name: t.typed.Name, UID: t.typed.UID, Approval: t.typed.GetInstallPlanApproval(),
	}, t.steps, func(name string) (string, bool) {
		if there := r.planNamed(name); there != nil {
			return there.typed.Annotations[catalog.AnnotationSteps], true
		}

		return "", false
	})

	if done := r.carriedOut(t); done != nil {
		t.plan, t.seen.Plan = done, done.typed // findUninstalled reports it.

		return
	}

	if there := r.planNamed(want.Name); there != nil && there.leftOut {
		t.problem(catalog.ReasonLimit, fmt.Sprintf("InstallPlan %s is left out: the InstallPlans of this namespace take more memory "+
			"than there is for them, and this is one of the largest; delete those that are of no use any more", want.Name))

		return
	} else if there != nil {
		t.plan, t.seen.Plan = there, there.typed

		return
	}

	if r.isHeld(t) {
		t.seen.Held = true

		return
	}

	if over := r.superseded(t); over >= catalog.MaxSuperseded {
		t.problem(catalog.ReasonTooManyInstallPlans, fmt.Sprintf("%d InstallPlans of it came to nothing, because the catalog or the "+
			"Subscription changed each time; delete them to get another", over))

		return
	}

	// The watch reports it, which leads to the next reconcile, and that carries it out.
	t.waits, t.missing = true, want
}

// isHeld says whether what comes next waits for what is installed, as in OLM.
func (r *resolution) isHeld(t *target) bool {
	if t.installed == nil {
		return false
	}

	forward := len(r.found.groups) == 1 && r.found.groups[0].Spec.UpgradeStrategy == operatorsv1.UpgradeFailForward

	switch t.installed.Status.Phase {
	case olmv1alpha1.CSVPhaseSucceeded:
		return false
	case olmv1alpha1.CSVPhaseFailed:
		return !forward
	default:
		return true
	}
}

// settle decides what becomes of each InstallPlan: it is carried out, it has been, or it is superseded.
func (r *resolution) settle() {
	for _, t := range r.targets {
		if t.waits || t.typed.Spec == nil {
			continue
		}

		for _, ip := range r.plansOf(t) {
			was := &ip.typed.Status

			switch {
			case ip.isComplete():
				if by := t.installed; by != nil && ip.isReplaced() == ip.installs(by) {
					ip.becomes(catalog.Replaced(was, by.Name, !ip.installs(by), r.now))
				}
			case ip.isSuperseded() && ip != t.plan: // A superseded InstallPlan stays so, unless it is wanted again.
			case ip.installs(t.installed):
				ip.becomes(catalog.Finished(was, r.now))
			case ip == t.plan:
				t.runs = t.isNamed()
			case t.seen.Choice != nil && !t.seen.Held:
				by := ""
				if t.plan != nil {
					by = t.plan.typed.Name
				}

				status := catalog.Superseded(was, by, r.now)
				status.Plan = nil // Its manifests are as large as a catalog, and of no use any more.
				ip.becomes(status)
			}
		}
	}
}

// isNamed says whether the status of a Subscription that configures its operator names the version that comes next. It is by the
// status that the configuration finds a version: one that came before would begin without it.
func (t *target) isNamed() bool {
	_, configures, err := unstructured.NestedFieldNoCopy(t.object.Object, "spec", "config")

	return err == nil && !configures || t.typed.Status.CurrentCSV == t.steps.Version.Name
}
