package catalog

import (
	"crypto/sha256"
	"slices"
	"strconv"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// AnnotationSteps on an InstallPlan says which steps it is for. The steps are worked out from the catalog each time, and never
// read back from the status: whoever may write a status does not decide what is installed. If the catalog holds something else by
// now, the annotation no longer fits, and another InstallPlan replaces this one: nobody gets what they did not approve.
const AnnotationSteps = "ambit.dev/steps"

const (
	// alphabet leaves out vowels and what looks alike, as Kubernetes does for generated names.
	alphabet = "bcdfghjklmnpqrstvwxz2456789"
	// suffix is how many letters follow "install-".
	suffix = 5
)

// Owner is the Subscription that an InstallPlan is for.
type Owner struct {
	Name string
	UID  types.UID
	// Approval is what its spec asks for.
	Approval olmv1alpha1.Approval
}

// NewInstallPlan returns the InstallPlan of steps. Its name follows from them, so that a second attempt, after a crash, makes the
// same one. stepsOf returns the annotation of an InstallPlan that exists. Two different plans hardly ever get one name; if they
// do, the second takes another.
func NewInstallPlan(o *Owner, s *Steps, stepsOf func(name string) (string, bool)) *olmv1alpha1.InstallPlan {
	steps := scope.Digest(32, s.Digest(), string(o.Approval), string(o.UID))

	p := &olmv1alpha1.InstallPlan{
		TypeMeta: metav1.TypeMeta{APIVersion: olmv1alpha1.InstallPlanAPIVersion, Kind: olmv1alpha1.InstallPlanKind},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   s.Namespace,
			Labels:      map[string]string{scope.PackageLabel(s.Package, s.Namespace): ""},
			Annotations: map[string]string{AnnotationSteps: steps},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: olmv1alpha1.SubscriptionCRDAPIVersion, Kind: olmv1alpha1.SubscriptionKind, Name: o.Name, UID: o.UID,
			}},
		},
		Spec: olmv1alpha1.InstallPlanSpec{
			CatalogSource: s.Source, CatalogSourceNamespace: s.SourceNamespace,
			ClusterServiceVersionNames: []string{s.Version.Name},
			Approval:                   o.Approval, Approved: o.Approval == olmv1alpha1.ApprovalAutomatic,
		},
	}

	for try := 0; ; try++ {
		p.Name = "install-" + letters(steps, try)
		if have, taken := stepsOf(p.Name); !taken || have == steps {
			return p
		}
	}
}

func letters(steps string, try int) string {
	var out [suffix]byte

	sum := sha256.Sum256([]byte(steps + strconv.Itoa(try)))
	for i := range out {
		out[i] = alphabet[int(sum[i])%len(alphabet)]
	}

	return string(out[:])
}

// Failure is why an InstallPlan does not get on.
type Failure struct {
	Reason  olmv1alpha1.InstallPlanConditionReason
	Message string
	// Waiting says that it has not failed: nothing was tried yet, or it is tried again.
	Waiting bool
}

// Progress is what is known of an InstallPlan.
type Progress struct {
	Now   metav1.Time
	Steps *Steps
	// States are those of the steps, in their order.
	States []olmv1alpha1.StepStatus
	// Account is the service account that everything is written as; nil for Ambit itself.
	Account *corev1.ObjectReference
	// Approved is spec.approved.
	Approved bool
	// Failure is nil when nothing is in the way.
	Failure *Failure
}

// Status is the status that an InstallPlan should have that is not complete. A complete one is never asked about again: it stays
// complete, whatever becomes of what it wrote.
func (p *Progress) Status(was *olmv1alpha1.InstallPlanStatus) olmv1alpha1.InstallPlanStatus {
	out := *was.DeepCopy()
	out.CatalogSources = []string{p.Steps.Source}
	out.BundleLookups = nil
	out.Plan = p.Steps.Plan(p.States)
	out.AttenuatedServiceAccountRef = p.Account
	out.Message = printable.Text(shorten(p.Steps.Notes))

	switch {
	case !p.Approved:
		out.Phase = olmv1alpha1.InstallPlanPhaseRequiresApproval
		out.Conditions, out.StartTime = nil, nil
	case p.Failure != nil:
		out.Phase = olmv1alpha1.InstallPlanPhaseFailed
		if p.Failure.Waiting {
			out.Phase = olmv1alpha1.InstallPlanPhaseInstalling
		}

		out.Message = printable.Text(p.Failure.Message)
		p.condition(&out, corev1.ConditionFalse, p.Failure.Reason, out.Message)
	case p.done():
		out.Phase = olmv1alpha1.InstallPlanPhaseComplete
		p.condition(&out, corev1.ConditionTrue, "", "")
	default:
		out.Phase = olmv1alpha1.InstallPlanPhaseInstalling
		// An earlier failure is reported until it is known to be over.
	}

	if out.StartTime == nil && p.Approved {
		out.StartTime = p.Now.DeepCopy()
	}

	return out
}

func (p *Progress) done() bool {
	return !slices.ContainsFunc(p.States, func(s olmv1alpha1.StepStatus) bool {
		return s != olmv1alpha1.StepStatusCreated && s != olmv1alpha1.StepStatusPresent
	})
}

// condition sets the condition Installed, with new times only when it says something new.
func (p *Progress) condition(
	s *olmv1alpha1.InstallPlanStatus, status corev1.ConditionStatus, reason olmv1alpha1.InstallPlanConditionReason, message string,
) {
	was := s.GetCondition(olmv1alpha1.InstallPlanInstalled)
	if was.Status == status && was.Reason == reason && was.Message == message {
		return
	}

	s.SetCondition(olmv1alpha1.InstallPlanCondition{
		Type: olmv1alpha1.InstallPlanInstalled, Status: status, Reason: reason, Message: message,
		LastUpdateTime: p.Now.DeepCopy(), LastTransitionTime: p.Now.DeepCopy(),
	})
}

// Finished is the status of an InstallPlan whose ClusterServiceVersion exists.
func Finished(was *olmv1alpha1.InstallPlanStatus, now metav1.Time) olmv1alpha1.InstallPlanStatus {
	out := *was.DeepCopy()
	if out.CatalogSources == nil {
		out.CatalogSources = []string{}
	}

	for _, step := range out.Plan {
		if step.Status != olmv1alpha1.StepStatusCreated {
			step.Status = olmv1alpha1.StepStatusPresent
		}
	}

	out.Phase, out.Message = olmv1alpha1.InstallPlanPhaseComplete, ""
	p := &Progress{Now: now}
	p.condition(&out, corev1.ConditionTrue, "", "")

	return out
}

// Superseded is the status of an InstallPlan that another one replaced before it was complete.
func Superseded(was *olmv1alpha1.InstallPlanStatus, by string, now metav1.Time) olmv1alpha1.InstallPlanStatus {
	out := *was.DeepCopy()
	if out.CatalogSources == nil {
		out.CatalogSources = []string{}
	}

	out.Phase = olmv1alpha1.InstallPlanPhaseFailed
	out.Message = superseded(by)
	p := &Progress{Now: now}
	p.condition(&out, corev1.ConditionFalse, ReasonSuperseded, out.Message)

	return out
}

// InstallPlanReplaced is the condition of a complete InstallPlan that says whether another version is installed by now. Once
// nothing is, it tells whether what the InstallPlan installed was uninstalled.
const InstallPlanReplaced olmv1alpha1.InstallPlanConditionType = "Replaced"

// Replaced is the status of a complete InstallPlan while a version is installed: another one, or its own.
func Replaced(was *olmv1alpha1.InstallPlanStatus, by string, is bool, now metav1.Time) olmv1alpha1.InstallPlanStatus {
	out := *was.DeepCopy()
	c := olmv1alpha1.InstallPlanCondition{
		Type: InstallPlanReplaced, Status: corev1.ConditionFalse, Message: "ClusterServiceVersion " + by + " is installed",
		LastUpdateTime: now.DeepCopy(), LastTransitionTime: now.DeepCopy(),
	}

	if is {
		c.Status = corev1.ConditionTrue
	}

	out.SetCondition(c)

	return out
}
