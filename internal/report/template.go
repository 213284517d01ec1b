package report

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// TemplateStatus returns the status of the template whose scope has this index. invalid are the subjects that get nothing.
func TemplateStatus(
	p *plan.Plan, out *apply.Outcome, index int, invalid []string, before *operatorsv1alpha1.ScopeTemplateStatus,
) operatorsv1alpha1.ScopeTemplateStatus {
	s := &p.Scopes[index]
	status := *before.DeepCopy()
	status.ObservedGeneration = s.Scope.Generation
	status.ClusterRoles = made(s, &out.Scopes[index])

	c := is(ConditionTemplated, ReasonTemplatingSuccessful, are(len(s.Copies), "ClusterRole")+" as the template says")

	if len(s.Members) == 0 {
		c.Message = "no ScopeInstance refers to this template, so it has no ClusterRoles"
	}

	if problem := templateProblem(s, &out.Scopes[index], invalid); problem != "" {
		c = isNot(ConditionTemplated, ReasonTemplatingFailed, problem)
	}

	c.ObservedGeneration, c.Message = s.Scope.Generation, shortened(printable.Text(c.Message), maxMessage)
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
		name := s.ClusterRoles[s.Copies[i].Slot]
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
	if problem := rolesProblem(s, out); problem != "" || len(invalid) == 0 {
		return problem
	}

	return "these subjects get nothing, the others are served: " + some(invalid)
}

// rolesProblem is what is wrong with the ClusterRoles of a template; empty when nothing is.
func rolesProblem(s *plan.ScopePlan, out *apply.ScopeOutcome) string {
	switch failed := problemsOf(s, out, nil, nil).members; {
	case out.Nobody != "":
		return out.Nobody
	case len(s.Foreign) > 0:
		return "ClusterRoles that Ambit did not make have these names, so they are neither changed nor bound: " +
			some(s.Foreign) + "; rename or delete them, or choose another generateName"
	case len(failed) > 0:
		return failed[0].Message
	default:
		return ""
	}
}

// are says "1 ClusterRole is" and "2 ClusterRoles are".
func are(n int, what string) string { return printable.Number(n, what+" is", what+"s are") }
