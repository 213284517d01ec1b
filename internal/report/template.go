package report

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/plan"
)

// Condition types of ScopeTemplates and ScopeInstances, and their reasons. Those of the Oria operator, but for
// RulesEffective.
const (
	ConditionTemplated      = "Templated"
	ConditionScoped         = "Scoped"
	ConditionRulesEffective = "RulesEffective"

	ReasonTemplatingSuccessful  = "TemplatingSuccessful"
	ReasonTemplatingFailed      = "TemplatingFailed"
	ReasonScopingSuccessful     = "ScopingSuccessful"
	ReasonScopingFailed         = "ScopingFailed"
	ReasonScopeTemplateNotFound = "ScopeTemplateNotFound"
	// ReasonAllEffective and ReasonClusterScopedRules belong to RulesEffective.
	ReasonAllEffective       = "AllEffective"
	ReasonClusterScopedRules = "ClusterScopedRules"
)

// TemplateStatus returns the status of the template whose scope has this index. invalid are the subjects that get nothing.
func TemplateStatus(
	p *plan.Plan, out *apply.Outcome, index int, invalid []string, before *operatorsv1alpha1.ScopeTemplateStatus,
) operatorsv1alpha1.ScopeTemplateStatus {
	s := &p.Scopes[index]
	status := *before.DeepCopy()
	status.ObservedGeneration = s.Scope.Generation
	status.ClusterRoles = made(s, &out.Scopes[index])

	c := metav1.Condition{Type: ConditionTemplated, ObservedGeneration: s.Scope.Generation}
	c.Status, c.Reason, c.Message = metav1.ConditionTrue, ReasonTemplatingSuccessful,
		fmt.Sprintf("%d ClusterRoles are as the template says", len(s.Copies))

	if len(s.Members) == 0 {
		c.Message = "no ScopeInstance refers to this template, so it has no ClusterRoles"
	}

	if problem := templateProblem(s, &out.Scopes[index], invalid); problem != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, ReasonTemplatingFailed, problem
	}

	meta.SetStatusCondition(&status.Conditions, c)

	return status
}

// made are the ClusterRoles of a template that exist after its plan was applied.
func made(s *plan.ScopePlan, out *apply.ScopeOutcome) []string {
	if len(s.Members) == 0 {
		return nil
	}

	var names []string

	for i := range s.Copies {
		name := s.Copies[i].Name
		if !slices.ContainsFunc(out.Failures, func(f apply.Failure) bool {
			return f.Change.Key.Name == name && f.Change.Action == plan.Create
		}) {
			names = append(names, name)
		}
	}

	slices.Sort(names)

	return names
}

// templateProblem is what is wrong with a template, the worst first; empty when nothing is.
func templateProblem(s *plan.ScopePlan, out *apply.ScopeOutcome, invalid []string) string {
	switch {
	case out.Nobody != "":
		return out.Nobody
	case len(s.Foreign) > 0:
		return "ClusterRoles that Ambit did not make have these names, so they are neither changed nor bound: " +
			some(s.Foreign) + "; rename or delete them, or choose another generateName"
	case len(out.Failures) > 0:
		f := &out.Failures[0]

		return fmt.Sprintf("%s %s: %s", f.Change.Key.Kind, f.Change.Key.Name, shorten(f.Err))
	case len(invalid) > 0:
		return "these subjects get nothing, the others are served: " + some(invalid)
	default:
		return ""
	}
}

// Referred is what an instance has to know of its template.
type Referred struct {
	// Name is that of the template, Index that of its scope in the plan; -1 when there is no such template.
	Name  string
	Index int
	// Invalid are its subjects that get nothing.
	Invalid []string
}

// InstanceStatus returns the status of the instance whose scope has this index.
func InstanceStatus(
	p *plan.Plan, out *apply.Outcome, index int, to Referred, before *operatorsv1alpha1.ScopeInstanceStatus,
) operatorsv1alpha1.ScopeInstanceStatus {
	s := &p.Scopes[index]
	found := problemsOf(s, &out.Scopes[index], nil, nil)

	status := *before.DeepCopy()
	status.ObservedGeneration = s.Scope.Generation
	status.Reach = operatorsv1alpha1.ReachNamespaces

	if s.Scope.Members.Everywhere {
		status.Reach = operatorsv1alpha1.ReachCluster
	}

	everywhere, failed := divide(found.members)
	status.FailedNamespaces = failed[:min(len(failed), maxFailedMembers)]
	status.BoundNamespaces = 0

	if status.Reach == operatorsv1alpha1.ReachNamespaces && to.Index >= 0 {
		bound := len(s.Members) - len(failed) + len(s.Absent)
		status.BoundNamespaces = int32(max(0, bound)) //nolint:gosec // There are never as many namespaces.
	}

	set := func(c metav1.Condition) {
		c.ObservedGeneration = s.Scope.Generation
		meta.SetStatusCondition(&status.Conditions, c)
	}
	set(scoped(p, out, index, to, everywhere, failed, int(status.BoundNamespaces)))
	set(effective(s))

	return status
}

// divide separates what failed in the whole cluster from what failed in namespaces.
func divide(members []operatorv1.FailedMember) (everywhere, failed []operatorv1.FailedMember) {
	for _, m := range members {
		if m.Namespace == "" {
			everywhere = append(everywhere, m)
		} else {
			failed = append(failed, m)
		}
	}

	return everywhere, failed
}

func scoped(
	p *plan.Plan, out *apply.Outcome, index int, to Referred, everywhere, failed []operatorv1.FailedMember, bound int,
) metav1.Condition {
	s := &p.Scopes[index]
	no := func(reason, format string, args ...any) metav1.Condition {
		return metav1.Condition{
			Type: ConditionScoped, Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...),
		}
	}

	switch {
	case to.Index < 0:
		return no(ReasonScopeTemplateNotFound, "ScopeTemplate %s does not exist; nothing is bound until it does", to.Name)
	case out.Scopes[index].Nobody != "":
		return no(ReasonScopingFailed, "%s", out.Scopes[index].Nobody)
	case s.Selection.Problem != "":
		return no(ReasonScopingFailed, "%s", s.Selection.Problem)
	case templateProblem(&p.Scopes[to.Index], &out.Scopes[to.Index], to.Invalid) != "":
		return no(ReasonScopingFailed, "ScopeTemplate %s: %s", to.Name,
			templateProblem(&p.Scopes[to.Index], &out.Scopes[to.Index], to.Invalid))
	case len(everywhere) > 0:
		return no(ReasonScopingFailed, "%s", everywhere[0].Message)
	case len(failed) > 0:
		return no(ReasonScopingFailed, "%d of %d namespaces are not fully served: %s",
			len(failed), len(failed)+bound, some(memberNames(failed)))
	case s.Selection.Asked && s.Selection.Matched == 0 && bound == 0:
		return no(ReasonScopingFailed,
			"spec.namespaceSelector matches no namespace, so nothing is bound; namespaces join as soon as their labels match")
	}

	yes := metav1.Condition{Type: ConditionScoped, Status: metav1.ConditionTrue, Reason: ReasonScopingSuccessful}
	yes.Message = fmt.Sprintf("%d ClusterRoles are bound in %d namespaces", len(s.Copies), bound)

	if s.Scope.Members.Everywhere {
		yes.Message = fmt.Sprintf("%d ClusterRoles are bound in the whole cluster", len(s.Copies))
	}

	return yes
}

func effective(s *plan.ScopePlan) metav1.Condition {
	c := metav1.Condition{
		Type: ConditionRulesEffective, Status: metav1.ConditionTrue, Reason: ReasonAllEffective,
		Message: "every rule takes effect where it is bound",
	}

	if len(s.Ineffective) > 0 {
		c.Status, c.Reason = metav1.ConditionFalse, ReasonClusterScopedRules
		c.Message = "in a namespace these rules mean nothing, because what they name has none: " + some(s.Ineffective) +
			"; bind them in the whole cluster by an instance of another template, or leave them out"
	}

	return c
}
