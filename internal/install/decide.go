package install

import (
	"fmt"
	"slices"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Verdict is what is decided about a CSV, before anything is written for it.
type Verdict struct {
	Phase   olm.ClusterServiceVersionPhase
	Reason  olm.ConditionReason
	Message string
	// Requirements are what it needs; nil when that was not looked at.
	Requirements []olm.RequirementStatus

	// Targets are those of the group in which the operator gets permissions, and which its annotation names; nil for all of them.
	// Withheld are the others, where another operator brings the same.
	Targets, Withheld []string
	// KeepRBAC says that the operator has its permissions, and ApplyObjects that its objects are written.
	KeepRBAC, ApplyObjects bool
	// RemoveDeployments says that its Deployments go, and DeleteCSV that the CSV itself does, because a newer one has taken its
	// place.
	RemoveDeployments, DeleteCSV bool
}

func failed(reason olm.ConditionReason, message string) Verdict {
	return Verdict{Phase: olm.CSVPhaseFailed, Reason: reason, Message: message}
}

// stuck is the verdict about a CSV of which nothing more is written; what it has installed stays.
func (w *Snapshot) stuck(csv *olm.ClusterServiceVersion, reason olm.ConditionReason, message string) Verdict {
	v := failed(reason, message)
	v.KeepRBAC = w.IsInstalled(csv)

	return v
}

// Decide says the result of a CSV. A CSV that is no sound member of one group holds nothing: who it would act for, and with
// whose authority, is not known. It heals by itself when the cause goes.
func (w *Snapshot) Decide(csv *olm.ClusterServiceVersion) Verdict {
	// First, before anything lets it keep, or get, what it asks for now.
	if message := w.actsAsAmbit(csv); message != "" {
		return failed(olm.CSVReasonComponentFailed, "install strategy failed: "+message)
	}

	// Whatever else is wrong with it: what it did, a later one does. It is deleted after the one that it replaces itself, which
	// nothing would replace otherwise, and which would be installed again.
	if l := w.lineage(); w.Group != nil && l.succeeded[l.cycle[csv.Name]] && !l.older[csv.Name] {
		return Verdict{
			Phase: olm.CSVPhaseDeleting, Reason: olm.CSVReasonReplaced, KeepRBAC: w.keeps(csv), DeleteCSV: true,
			Message: "has been replaced by a newer ClusterServiceVersion that has successfully installed.",
		}
	}

	if v := w.membership(csv); v.Phase != "" {
		return v
	}

	c := w.conflict(csv)
	if c.message != "" && !w.runs(csv) {
		return failed(olm.CSVReasonInterOperatorGroupOwnerConflict, c.message)
	}

	return c.limits(w.sound(csv))
}

// sound decides about a CSV that is in no conflict with another group, or runs all the same.
func (w *Snapshot) sound(csv *olm.ClusterServiceVersion) Verdict {
	if message := w.static(csv); message != "" {
		v := failed(olm.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs, message)
		v.RemoveDeployments = true

		return v
	}

	if name := csv.Spec.InstallStrategy.StrategyName; name != olm.InstallStrategyNameDeployment {
		return failed(olm.CSVReasonInvalidStrategy, "install strategy "+quoted(name)+" is not known; the only one is \"deployment\"")
	}

	if next := w.lineage().next(csv); next != nil {
		return Verdict{
			Phase: olm.CSVPhaseReplacing, Reason: olm.CSVReasonBeingReplaced, KeepRBAC: w.keeps(csv),
			Message: "being replaced by csv: " + next.Name,
		}
	}

	specs := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	if name := facts.Twice(specs, func(s *olm.StrategyDeploymentSpec) string { return s.Name }); name != "" {
		return w.stuck(csv, olm.CSVReasonInvalidStrategy, "the install strategy lists deployment "+quoted(name)+" twice")
	}

	if message := w.rival(csv); message != "" {
		return w.stuck(csv, olm.CSVReasonOwnerConflict, message)
	}

	if message := w.webhookProblem(csv, w.Group.Targets); message != "" {
		return w.stuck(csv, olm.CSVReasonInvalidWebhookDescription, message)
	}

	if config := w.Configs[csv.Name]; config != nil && config.Problem != "" {
		reason := olm.CSVReasonInvalidStrategy
		if config.LeftOut {
			reason = ReasonLimit
		}

		return w.stuck(csv, reason, config.Problem)
	}

	if message := w.multiplies(csv); message != "" {
		return w.stuck(csv, ReasonLimit, message)
	}

	if name := w.leftOut(csv); name != "" {
		return w.stuck(csv, ReasonLimit, fmt.Sprintf("deployment %s is left out: namespace %s holds more Deployments than may be "+
			"remembered, and this is one of the largest, or one of very many", name, w.Namespace))
	}

	return w.ready(csv)
}

// membership says what is wrong with the group of a CSV, or with the two together.
func (w *Snapshot) membership(csv *olm.ClusterServiceVersion) Verdict {
	switch {
	case len(w.Groups) == 0:
		return failed(olm.CSVReasonNoOperatorGroup, "csv in namespace with no operatorgroups")
	case len(w.Groups) > 1:
		return failed(olm.CSVReasonTooManyOperatorGroups,
			"csv created in namespace with multiple operatorgroups, can't pick one automatically")
	case len(w.Group.Targets) == 0:
		return failed(olm.CSVReasonNoTargetNamespaces,
			"no targetNamespaces are matched operatorgroups namespace selection: "+w.Problem)
	}

	modes, err := olm.NewInstallModeSet(csv.Spec.InstallModes)
	if err != nil {
		return failed(olm.CSVReasonInvalidInstallModes, err.Error())
	}

	if err := modes.Supports(w.Namespace, w.Group.Targets); err != nil {
		return failed(olm.CSVReasonUnsupportedOperatorGroup, err.Error())
	}

	return Verdict{}
}

// rival finds another CSV of the namespace that brings the same definition and keeps it, or has a Deployment, or a Service for
// webhooks, of the same name.
func (w *Snapshot) rival(csv *olm.ClusterServiceVersion) string {
	if w.keepers == nil {
		w.findKeepers()
	}

	for _, crd := range csv.Spec.CustomResourceDefinitions.Owned {
		if keeper := w.keepers[crd.Name]; keeper.Name != csv.Name {
			return "clusterserviceversion " + keeper.Name + " of this namespace owns " + crd.Name + " already"
		}
	}

	for _, part := range parts(csv) {
		if keeper := w.having[part]; keeper.Name != csv.Name {
			return "clusterserviceversion " + keeper.Name + " of this namespace has " + part + " already"
		}
	}

	return ""
}

// The words for what only one CSV of a namespace can have.
const (
	deploymentPart = "deployment "
	servicePart    = "service "
)

// parts are in words the Deployments of a CSV, and the Services by which these answer for webhooks: Deployments whose names
// differ may have one Service.
func parts(csv *olm.ClusterServiceVersion) []string {
	specs := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
	out := collect.Map(specs, func(s olm.StrategyDeploymentSpec) string { return deploymentPart + s.Name })

	if len(csv.Spec.WebhookDefinitions) > maxWebhooks {
		return out // None of them is served.
	}

	return append(out, collect.Map(ServingOf(csv), func(s Serving) string { return servicePart + s.Service })...)
}

// findKeepers finds for each definition the CSV that keeps it: of those that are not being replaced, one that runs, else the one
// that was there first. A Deployment or a Service is that of the CSV that owns it, or replaces the one that does, else of the
// same.
func (w *Snapshot) findKeepers() {
	w.keepers, w.having = map[string]*olm.ClusterServiceVersion{}, map[string]*olm.ClusterServiceVersion{}
	owners := w.partOwners()

	for _, csv := range w.CSVs {
		if w.lineage().next(csv) != nil {
			continue
		}

		for _, crd := range csv.Spec.CustomResourceDefinitions.Owned {
			if keeper := w.keepers[crd.Name]; keeper == nil || keeper != csv && w.isBefore(csv, keeper) {
				w.keepers[crd.Name] = csv
			}
		}

		for _, part := range parts(csv) {
			if keeper := w.having[part]; keeper == nil || keeper != csv && w.hasBefore(csv, keeper, owners[part]) {
				w.having[part] = csv
			}
		}
	}
}

// hasBefore says whether an object of these owners is that of a rather than of b.
func (w *Snapshot) hasBefore(a, b *olm.ClusterServiceVersion, owners []*olm.ClusterServiceVersion) bool {
	has := func(csv *olm.ClusterServiceVersion) bool {
		return slices.ContainsFunc(owners, func(owner *olm.ClusterServiceVersion) bool {
			return owner == csv || w.lineage().replaces(csv, owner)
		})
	}

	if of := has(a); of != has(b) {
		return of
	}

	return w.isBefore(a, b)
}

// partOwners are the CSVs that own each Deployment and each Service, by its words.
func (w *Snapshot) partOwners() map[string][]*olm.ClusterServiceVersion {
	by, out := make(map[types.UID]*olm.ClusterServiceVersion, len(w.CSVs)), map[string][]*olm.ClusterServiceVersion{}

	for _, csv := range w.CSVs {
		by[csv.UID] = csv
	}

	add := func(part string, owner types.UID) {
		if csv := by[owner]; csv != nil && !slices.Contains(out[part], csv) {
			out[part] = append(out[part], csv)
		}
	}

	for name, d := range w.Deployments {
		if d == nil {
			continue
		}

		for _, r := range d.OwnerReferences {
			add(deploymentPart+name, r.UID)
		}
	}

	for name, s := range w.Services {
		for owner := range strings.SplitSeq(s.Owners, ",") {
			add(servicePart+name, types.UID(owner))
		}
	}

	return out
}

func (w *Snapshot) isBefore(a, b *olm.ClusterServiceVersion) bool {
	if runs := w.runs(a); runs != w.runs(b) {
		return runs
	}

	return scope.CompareAge(a, b) < 0
}

// ready says whether a sound member can be installed, and continues with one that was. While it is only not known whether
// something is still there, one that is installed goes on, and one that has begun loses nothing: it would be written again a
// moment later.
func (w *Snapshot) ready(csv *olm.ClusterServiceVersion) Verdict {
	status, missing := w.requirements(csv)
	installed, unsure := w.IsInstalled(csv), CountUnknown(status) == len(missing)

	if len(missing) > 0 && (!installed || !unsure || !wereMet(csv, status)) {
		return Verdict{
			Phase: olm.CSVPhasePending, Reason: olm.CSVReasonRequirementsNotMet, Requirements: status,
			KeepRBAC: installed || unsure && w.HasBegun(csv),
			Message:  "one or more requirements couldn't be found: " + first(missing),
		}
	}

	return Verdict{
		Phase: olm.CSVPhaseInstallReady, Reason: olm.CSVReasonRequirementsMet, Requirements: status, KeepRBAC: true, ApplyObjects: true,
		Message: "all requirements found, attempting install",
	}
}

// wereMet says whether the requirements of which it is not known whether they are met were met before, by the status. One that is
// not known in it was, unless nothing was installed for that.
func wereMet(csv *olm.ClusterServiceVersion, status []olm.RequirementStatus) bool {
	for i := range status {
		now := &status[i]
		wasMet := func(before olm.RequirementStatus) bool {
			return before.Kind == now.Kind && before.Name == now.Name && (before.Status == olm.RequirementStatusReasonPresent ||
				before.Status == olm.RequirementStatusReasonNotAvailable && csv.Status.Phase != olm.CSVPhasePending)
		}

		if now.Status == olm.RequirementStatusReasonNotAvailable && !slices.ContainsFunc(csv.Status.RequirementStatus, wasMet) {
			return false
		}
	}

	return true
}

// CountUnknown counts the requirements of which it is not known whether they are met.
func CountUnknown(status []olm.RequirementStatus) int {
	return collect.Count(status, func(s olm.RequirementStatus) bool { return s.Status == olm.RequirementStatusReasonNotAvailable })
}

func quoted(s string) string { return `"` + s + `"` }

// Delayed is the verdict about a CSV of which something could not be written for a reason that may pass by itself: it is no
// failure, and nobody has to do anything. why is empty when nothing was in the way. runs says that the CSV had succeeded and that
// the answer to a write is only late: then its operator goes on running.
func (v Verdict) Delayed(why string, runs bool) Verdict {
	if !v.ApplyObjects || why == "" || v.Phase == olm.CSVPhaseFailed {
		return v
	}

	if runs && v.Phase == olm.CSVPhaseSucceeded {
		v.Message += "; something more is being written: " + why

		return v
	}

	v.Phase, v.Reason = olm.CSVPhaseInstalling, olm.CSVReasonWaiting
	v.Message = "installing: it is tried again soon: " + why

	return v
}

// Leaving is the verdict about a CSV of which something is left that may not be deleted, in the words of Left; empty when there
// is nothing.
func (v Verdict) Leaving(left string) Verdict {
	if !strings.Contains(v.Message, left) {
		v.Message = strings.TrimSuffix(v.Message, ".") + "; " + left
	}

	return v
}

// Finish says the result of a CSV whose objects were written. refusal says why something could not be, with everything that is
// missing; empty when nothing was refused.
func (w *Snapshot) Finish(csv *olm.ClusterServiceVersion, v Verdict, refusal string) Verdict {
	if !v.ApplyObjects || v.Phase == olm.CSVPhaseFailed {
		return v
	}

	if refusal != "" {
		v.Phase, v.Reason = olm.CSVPhaseFailed, olm.CSVReasonComponentFailed
		v.Message = "install strategy failed: " + refusal

		return v
	}

	for _, spec := range csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs {
		waiting := waitsFor(w.Deployments[spec.Name])
		if waiting == "" {
			continue
		}

		v.Phase, v.Reason = olm.CSVPhaseInstalling, olm.CSVReasonWaiting
		v.Message = "installing: waiting for deployment " + spec.Name + " to become ready: " + waiting

		if strings.HasPrefix(waiting, "deployment exceeded") {
			v.Phase, v.Reason = olm.CSVPhaseFailed, olm.CSVReasonComponentFailed
			v.Message = "install failed: deployment " + spec.Name + " not ready before timeout: " + waiting
		}

		return v
	}

	v.Phase, v.Reason = olm.CSVPhaseSucceeded, olm.CSVReasonInstallSuccessful
	v.Message = "install strategy completed with no errors"

	return v
}
