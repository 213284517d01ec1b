package predict

import (
	"errors"

	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/report"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// refusalOf says in the words of one write why it was not made. What lacks permissions names those that this write needs;
// otherwise says the rest.
func refusalOf(s *plan.ScopePlan, namespace string, err error, otherwise func() (reason, message string)) *Refusal {
	if missing, ok := errors.AsType[*apply.MissingError](err); ok {
		return &Refusal{
			Reason: report.MemberUnauthorized, Missing: missing.Rules,
			Message: printable.Text(report.Unauthorized(s, missing, missing.Rules)),
		}
	}

	if nobody, ok := errors.AsType[*apply.IdentityError](err); ok {
		return &Refusal{
			Reason: report.MemberUnauthorized, Message: printable.Text(writer.NobodyIn(s.Scope, nobody.Why, namespace)),
		}
	}

	reason, message := otherwise()

	return &Refusal{Reason: reason, Message: message}
}

// inOperatorNamespace says why something was not written in the operator namespace, for a scope of the plan. reason is that of
// failures for which no permission is missing.
func inOperatorNamespace(p *plan.Plan, index int, reason string, err error) *Refusal {
	otherwise := func() (string, string) { return reason, printable.Text(apply.Message(err)) }

	if index < 0 {
		reason, message := otherwise()

		return &Refusal{Reason: reason, Message: message}
	}

	return refusalOf(&p.Scopes[index], p.Key.Namespace, err, otherwise)
}

// first is the scope that stands for those that share something; -1 where there is none.
func first(scopes []int) int {
	if len(scopes) == 0 {
		return -1
	}

	return scopes[0]
}
