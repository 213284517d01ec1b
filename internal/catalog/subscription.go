package catalog

import (
	"cmp"
	"fmt"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/printable"
)

// Seen is what is known of a Subscription.
type Seen struct {
	Now metav1.Time
	// Source is its CatalogSource; nil when that is not there. SourceNamespace and SourceName are where it was looked for.
	Source                      *Source
	SourceNamespace, SourceName string
	// Choice is what it gets; nil when Problem says why not.
	Choice  *Choice
	Problem *Problem
	// Installed is the ClusterServiceVersion that is there.
	Installed string
	// Plan is the InstallPlan of Choice.Next, or else the one that installed Installed; nil when there is none.
	Plan *olmv1alpha1.InstallPlan
	// Held says that what is next waits for what is installed.
	Held bool
	// LeftOut says that nothing of its spec is known, because the Subscriptions of the namespace take too much memory.
	LeftOut bool
}

// leftOutWords are without numbers: they would change with each object that comes or goes.
const leftOutWords = "the Subscriptions of this namespace take more memory than there is for them, and this is one of the " +
	"largest; what it installed stays as it is; make it smaller, or delete others"

// Problem is why a Subscription gets nothing.
type Problem struct{ Reason, Message string }

// Status is the status that a Subscription should have. Its conditions are OLM's: except for the health of the catalog, they
// report what is wrong, and are removed when that is over.
func (s *Seen) Status(was *olmv1alpha1.SubscriptionStatus) olmv1alpha1.SubscriptionStatus {
	out := *was.DeepCopy()

	if s.LeftOut {
		// Nothing else is known any better than before.
		s.set(&out, olmv1alpha1.SubscriptionResolutionFailed, (&Problem{ReasonLimit, leftOutWords}).condition())

		return out
	}

	out.InstalledCSV, out.Reason = s.Installed, ""
	out.CurrentCSV = s.Installed

	if s.Choice != nil && s.Choice.Next != nil && (s.Plan != nil || s.Installed == "") {
		out.CurrentCSV = s.Choice.Next.Name
	}

	out.State = s.state()
	s.plan(&out)
	s.health(&out)
	s.conditions(&out)

	out.LastUpdated = was.LastUpdated
	if out.LastUpdated.IsZero() || !equality.Semantic.DeepEqual(&out, was) {
		out.LastUpdated = s.Now
	}

	return out
}

func (s *Seen) state() olmv1alpha1.SubscriptionState {
	pending := s.Choice != nil && s.Choice.Next != nil

	switch {
	case s.Choice == nil, s.Problem != nil:
		// What is installed stays what it is while nobody knows what comes next.
		if s.Installed != "" {
			return olmv1alpha1.SubscriptionStateAtLatest
		}

		return olmv1alpha1.SubscriptionStateNone
	case !pending:
		return olmv1alpha1.SubscriptionStateAtLatest
	case s.Held || s.Plan == nil:
		return olmv1alpha1.SubscriptionStateUpgradeAvailable
	case s.Plan.Status.Phase == olmv1alpha1.InstallPlanPhaseFailed:
		return olmv1alpha1.SubscriptionStateFailed
	default:
		return olmv1alpha1.SubscriptionStateUpgradePending
	}
}

// plan names the InstallPlan, as OLM does in two places.
func (s *Seen) plan(out *olmv1alpha1.SubscriptionStatus) {
	if s.Plan == nil {
		return // The last one stays named: it installed what is there.
	}

	if out.InstallPlanRef != nil && out.InstallPlanRef.UID == s.Plan.UID && out.Install != nil {
		return // The reference keeps the resource version of that time.
	}

	out.InstallPlanRef = &corev1.ObjectReference{
		APIVersion: olmv1alpha1.InstallPlanAPIVersion, Kind: olmv1alpha1.InstallPlanKind,
		Namespace: s.Plan.Namespace, Name: s.Plan.Name, UID: s.Plan.UID, ResourceVersion: s.Plan.ResourceVersion,
	}
	out.Install = olmv1alpha1.NewInstallPlanReference(out.InstallPlanRef)
}

func (s *Seen) health(out *olmv1alpha1.SubscriptionStatus) {
	if s.Source == nil {
		out.CatalogHealth = nil

		return
	}

	reason, _ := s.Source.Problem()
	now := olmv1alpha1.SubscriptionCatalogHealth{
		Healthy: reason == "", LastUpdated: s.Now.DeepCopy(),
		CatalogSourceRef: &corev1.ObjectReference{
			APIVersion: olmv1alpha1.CatalogSourceCRDAPIVersion, Kind: olmv1alpha1.CatalogSourceKind,
			Namespace: s.Source.Namespace, Name: s.Source.Name, UID: s.Source.UID,
		},
	}

	if was := out.CatalogHealth; len(was) == 1 && was[0].CatalogSourceRef != nil && was[0].Equals(now) {
		return
	}

	out.CatalogHealth = []olmv1alpha1.SubscriptionCatalogHealth{now}
}

func (s *Seen) conditions(out *olmv1alpha1.SubscriptionStatus) {
	pending, failed := s.installing()

	s.set(out, olmv1alpha1.SubscriptionCatalogSourcesUnhealthy, s.catalogs())
	s.set(out, olmv1alpha1.SubscriptionResolutionFailed, s.Problem.condition())
	s.set(out, olmv1alpha1.SubscriptionInstallPlanPending, pending)
	s.set(out, olmv1alpha1.SubscriptionInstallPlanFailed, failed)

	// OLM may have left the first, and an older Ambit the other.
	out.RemoveConditions(olmv1alpha1.SubscriptionInstallPlanMissing, conditionConfigIgnored)
}

func (p *Problem) condition() *olmv1alpha1.SubscriptionCondition {
	if p == nil {
		return nil
	}

	return &olmv1alpha1.SubscriptionCondition{Status: corev1.ConditionTrue, Reason: p.Reason, Message: p.Message}
}

// catalogs is the condition that says whether the catalog can be used; nil for a Subscription that gets nothing for a reason of
// its own: nobody looks for its catalog.
func (s *Seen) catalogs() *olmv1alpha1.SubscriptionCondition {
	if s.Source == nil && s.SourceName == "" {
		return nil
	}

	c := &olmv1alpha1.SubscriptionCondition{Status: corev1.ConditionTrue, Reason: olmv1alpha1.UnhealthyCatalogSourceFound}

	if s.Source == nil {
		c.Message = fmt.Sprintf("targeted catalogsource %s/%s missing", s.SourceNamespace, s.SourceName)

		return c
	}

	if reason, words := s.Source.Problem(); reason != "" {
		c.Message = fmt.Sprintf("targeted catalogsource %s/%s unhealthy: %s", s.Source.Namespace, s.Source.Name, words)

		return c
	}

	c.Status, c.Reason = corev1.ConditionFalse, olmv1alpha1.AllCatalogSourcesHealthy
	c.Message = "all available catalogsources are healthy"

	return c
}

// installing are the conditions about the InstallPlan; nil when they have nothing to say.
func (s *Seen) installing() (pending, failed *olmv1alpha1.SubscriptionCondition) {
	// An earlier plan that came to nothing no longer matters once there is nothing to do.
	if s.Plan == nil || s.Choice != nil && s.Choice.Next == nil {
		return nil, nil
	}

	status := &s.Plan.Status
	c := &olmv1alpha1.SubscriptionCondition{Status: corev1.ConditionTrue, Reason: string(status.Phase)}

	switch status.Phase {
	case olmv1alpha1.InstallPlanPhaseComplete:
		return nil, nil
	case olmv1alpha1.InstallPlanPhaseFailed:
		why := status.GetCondition(olmv1alpha1.InstallPlanInstalled)
		c.Reason, c.Message = cmp.Or(string(why.Reason), olmv1alpha1.InstallPlanFailed), why.Message

		return nil, c
	case olmv1alpha1.InstallPlanPhaseNone:
		c.Reason = olmv1alpha1.InstallPlanNotYetReconciled
	case olmv1alpha1.InstallPlanPhaseRequiresApproval:
		c.Message = fmt.Sprintf("set spec.approved of InstallPlan %s to true to install %s", s.Plan.Name, s.next())
	default:
		c.Message = status.GetCondition(olmv1alpha1.InstallPlanInstalled).Message
	}

	return c, nil
}

func (s *Seen) next() string {
	if s.Choice == nil || s.Choice.Next == nil {
		return s.Installed
	}

	return s.Choice.Next.Name
}

// set writes a condition, with a new time only when it says something new, or with nil removes it.
func (s *Seen) set(
	out *olmv1alpha1.SubscriptionStatus, kind olmv1alpha1.SubscriptionConditionType, c *olmv1alpha1.SubscriptionCondition,
) {
	if c == nil {
		out.RemoveConditions(kind)

		return
	}

	c.Type = kind
	// What it quotes may be as long as an object can be, and the status has to be written all the same.
	c.Message = printable.Cut(c.Message, 10*maxWords)

	was := out.GetCondition(c.Type)
	if was.Equals(*c) {
		return
	}

	c.LastTransitionTime = was.LastTransitionTime
	if was.Status != c.Status || c.LastTransitionTime == nil {
		c.LastTransitionTime = s.Now.DeepCopy()
	}

	out.SetCondition(*c)
}

// ApprovalProblem says why what a Subscription says of approvals means nothing; empty when it means something. OLM takes every
// other word for Automatic, "manual" among them: nothing is installed by a word that may have meant the opposite.
func ApprovalProblem(approval olmv1alpha1.Approval) string {
	switch approval {
	case "", olmv1alpha1.ApprovalAutomatic, olmv1alpha1.ApprovalManual:
		return ""
	default:
		return fmt.Sprintf("spec.installPlanApproval is %q; it has to be %s or %s", printable.Cut(string(approval), MaxName),
			olmv1alpha1.ApprovalAutomatic, olmv1alpha1.ApprovalManual)
	}
}
