package report

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Referred is what an instance has to know of its template.
type Referred struct {
	// Name is that of the template, Index that of its scope in the plan; -1 when there is no such template.
	Name  string
	Index int
	// Invalid are its subjects that get nothing.
	Invalid []string
	// KindMissing says that there can be none, because the definition of the kind is missing.
	KindMissing bool
}

// instance is what status and events of an instance are made from.
type instance struct {
	*plan.ScopePlan

	out *apply.ScopeOutcome
	to  Referred
	// binds says that somebody gets something where nothing fails.
	binds bool
	// problem is what is wrong with the template, roles says that it is about the ClusterRoles themselves.
	problem string
	roles   bool
	// everywhere is what failed in the whole cluster, failed what failed in namespaces.
	everywhere, failed []operatorv1.FailedMember
}

func newInstance(p *plan.Plan, out *apply.Outcome, index int, to Referred) *instance {
	in := &instance{ScopePlan: &p.Scopes[index], out: &out.Scopes[index], to: to, binds: isBound(p, out, index)}

	for _, m := range problemsOf(in.ScopePlan, in.out, nil, nil).members {
		if m.Namespace == "" {
			in.everywhere = append(in.everywhere, m)
		} else {
			in.failed = append(in.failed, m)
		}
	}

	if to.Index >= 0 {
		s, o := &p.Scopes[to.Index], &out.Scopes[to.Index]
		in.problem = templateProblem(s, o, to.Invalid)
		in.roles = rolesProblem(s, o) != ""
	}

	return in
}

// bound counts the namespaces in which everything is bound: none, as long as a ClusterRole is missing, or nobody is to have one.
func (in *instance) bound() int {
	if in.Everywhere || !in.binds {
		return 0
	}

	return in.served()
}

// served counts the namespaces in which nothing failed.
func (in *instance) served() int { return len(notAmong(in.failed, in.Members)) }

// isBound says whether what a scope binds is there: somebody is to have something, and all ClusterRoles of its template exist. It
// is true of whatever has no template.
func isBound(p *plan.Plan, out *apply.Outcome, index int) bool {
	template := p.Scopes[index].Scope.Template
	if template == (scope.Owner{}) {
		return true
	}

	at := slices.IndexFunc(p.Scopes, func(s plan.ScopePlan) bool { return s.Scope.Owner == template })

	return at >= 0 && len(p.Scopes[index].Copies) > 0 && rolesProblem(&p.Scopes[at], &out.Scopes[at]) == ""
}

// CutInstance leaves the first namespaces that are not fully served in a status; the condition Scoped says how many there are.
func CutInstance(status *operatorsv1alpha1.ScopeInstanceStatus) {
	status.FailedNamespaces = firstFailed(status.FailedNamespaces, maxDetails)
}

// unserved counts the namespaces that are not fully served: all of them, where the reason is in what they share. The whole
// cluster counts as one.
func (in *instance) unserved() int {
	switch reason, _ := in.whyNot(); {
	case reason != "" && in.Everywhere:
		return 1
	case in.to.Index < 0 || in.out.Nobody != "" || in.problem != "":
		return len(in.failed) + in.served()
	default:
		return len(in.failed)
	}
}

// InstanceStatus returns the status of the instance whose scope has this index, with all namespaces in which something failed;
// and how many are not fully served, for whichever reason.
func InstanceStatus(
	p *plan.Plan, out *apply.Outcome, index int, to Referred, before *operatorsv1alpha1.ScopeInstanceStatus,
) (status operatorsv1alpha1.ScopeInstanceStatus, failed int) {
	in := newInstance(p, out, index, to)

	status = *before.DeepCopy()
	status.ObservedGeneration = in.Scope.Generation
	status.Reach = operatorsv1alpha1.ReachNamespaces

	if in.Everywhere {
		status.Reach = operatorsv1alpha1.ReachCluster
	}

	status.FailedNamespaces = in.failed
	status.BoundNamespaces = int32(in.bound()) //nolint:gosec // There are never as many namespaces.

	scoped := in.scoped()

	for _, one := range []struct {
		kind string
		is   *metav1.Condition
	}{
		{ConditionRulesEffective, in.effective()}, {ConditionScoped, &scoped}, {ConditionClusterWide, clusterWide(in.ScopePlan)},
	} {
		if one.is == nil {
			meta.RemoveStatusCondition(&status.Conditions, one.kind)

			continue
		}

		one.is.ObservedGeneration, one.is.Message = in.Scope.Generation, shortened(printable.Text(one.is.Message), maxMessage)
		meta.SetStatusCondition(&status.Conditions, *one.is)
	}

	return status, in.unserved()
}

func (in *instance) scoped() metav1.Condition {
	if reason, message := in.whyNot(); reason != "" {
		return isNot(ConditionScoped, reason, message)
	}

	yes := is(ConditionScoped, ReasonScopingSuccessful,
		fmt.Sprintf("%s bound in %s", are(len(in.Copies), "ClusterRole"), namespaces(in.bound())))

	switch {
	case len(in.Copies) == 0:
		yes.Message = fmt.Sprintf("nothing is bound, because ScopeTemplate %s has no subjects", in.to.Name)
	case in.Everywhere:
		yes.Message = are(len(in.Copies), "ClusterRole") + " bound in the whole cluster"
	case in.selectsNothing():
		yes.Message += "; spec.namespaceSelector matches none, so these are the named ones"
	}

	return yes
}

// whyNot says why an instance is not scoped, the worst first; reason is empty when it is.
func (in *instance) whyNot() (reason, message string) {
	switch {
	case in.to.Index < 0 && in.to.KindMissing:
		return ReasonScopeTemplateNotFound, fmt.Sprintf("ScopeTemplate %s does not exist, and cannot: the CustomResourceDefinition "+
			"scopetemplates.operators.coreos.com is missing; nothing is bound until both are there", in.to.Name)
	case in.to.Index < 0:
		return ReasonScopeTemplateNotFound,
			fmt.Sprintf("ScopeTemplate %s does not exist; nothing is bound until it does", in.to.Name)
	case in.out.Nobody != "":
		return ReasonScopingFailed, in.out.Nobody
	case in.Selection.Problem != "":
		return ReasonScopingFailed, in.Selection.Problem
	}

	var words []string

	switch {
	case len(in.everywhere) > 0:
		words = append(words, in.everywhere[0].Message)
	case len(in.failed) > 0:
		words = append(words, fmt.Sprintf("%d of %s not fully served: %s",
			len(in.failed), are(len(in.failed)+in.served(), "namespace"), some(memberNames(in.failed))))
	case !in.Everywhere && in.selectsNothing() && len(in.Members) == 0:
		words = append(words,
			"spec.namespaceSelector matches no namespace, so nothing is bound; namespaces join as soon as their labels match")
	}

	if in.problem != "" {
		words = append(words, fmt.Sprintf("ScopeTemplate %s: %s", in.to.Name, in.problem))
	}

	if len(words) == 0 {
		return "", ""
	}

	return ReasonScopingFailed, strings.Join(words, "; ")
}

func (in *instance) selectsNothing() bool { return in.Selection.Asked && in.Selection.Matched == 0 }

// effective is nil where no rule is bound at all, because nobody serves the instance or its template does not exist.
func (in *instance) effective() *metav1.Condition {
	switch {
	case in.out.Nobody != "" || in.to.Index < 0:
		return nil
	case len(in.Ineffective) > 0:
		return ineffective(in.Ineffective, "bind them in the whole cluster by an instance of another template, or leave them out")
	default:
		return new(is(ConditionRulesEffective, ReasonAllEffective, "every rule takes effect where it is bound"))
	}
}

func namespaces(n int) string { return printable.Number(n, "namespace", "namespaces") }
