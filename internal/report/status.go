package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Status returns the status of the scope with this index. before is the status that it replaces; what does not differ is taken
// over, so that an unchanged cluster gives an unchanged status. It names all failed members; Cut takes those that are too many.
func Status(
	p *plan.Plan, out *apply.Outcome, index int, before *operatorv1.NamespaceScopeStatus,
) operatorv1.NamespaceScopeStatus {
	s := &p.Scopes[index]
	list := listOf(p, out, s)
	found := problemsOf(s, &out.Scopes[index], list, inOperatorNamespace(p, out, index, list))

	status := *before.DeepCopy()
	status.ValidatedMembersTotal = 0
	status.ObservedGeneration = s.Scope.Generation
	status.ValidatedMembers = validated(p, s, list, &out.Scopes[index])
	status.FailedMembers = found.members
	status.UnprojectedRoles = found.unprojects[:min(len(found.unprojects), maxUnprojected)]

	set := func(c metav1.Condition) {
		c.Message = printable.Text(c.Message)
		c.ObservedGeneration = s.Scope.Generation
		meta.SetStatusCondition(&status.Conditions, c)
	}
	set(accountsFound(s))
	set(rolesFound(s, &out.Scopes[index]))

	for _, optional := range []struct {
		kind string
		is   *metav1.Condition
	}{
		{ConditionNamespacesSelected, namespacesSelected(s)},
		{ConditionTakenOver, takenOver(s)}, {ConditionNoForeignBindings, foreignBindings(s)},
		{ConditionMembersFinished, finishing(s, &status, list)}, {ConditionRulesEffective, rulesEffective(s)},
		{ConditionClusterWide, clusterWide(s)},
	} {
		if optional.is != nil {
			set(*optional.is)
		} else {
			meta.RemoveStatusCondition(&status.Conditions, optional.kind)
		}
	}

	injected := injectionOf(p, out, index)
	injected.fill(&status, set)

	// A list that failed is not pending while it is tried again: an API server that never answers would change the status for ever.
	if was := meta.FindStatusCondition(before.Conditions, ConditionReady); was != nil {
		found.listFailed = was.Reason == ReasonWatchListFailed
	}

	set(ready(p, s, out.Scopes[index].Nobody, &found, list, injected.problem(), len(status.ValidatedMembers)))
	slices.SortFunc(status.Conditions, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })

	return status
}

// listOf finds the result of the scope's watch list.
func listOf(p *plan.Plan, out *apply.Outcome, s *plan.ScopePlan) *apply.ListOutcome {
	list := out.List(p, s.Scope.WatchList)
	if why := out.Barred[s.Scope.Owner]; why != nil && list != nil && list.Err == nil {
		return &apply.ListOutcome{Write: list.Write, WriteOutcome: apply.WriteOutcome{Result: apply.Failed, Err: why}}
	}

	return list
}

// validated are the members of the scope that the ConfigMap names: as it was written, or where it could not be written, as it is.
// It names one in which the scope was refused and never had anything because of another scope, and not because of this one.
func validated(p *plan.Plan, s *plan.ScopePlan, list *apply.ListOutcome, done *apply.ScopeOutcome) []string {
	if list == nil {
		return nil
	}

	named := list.Write.Members

	if !list.Written() {
		for i := range p.Lists {
			if p.Lists[i].Name == s.Scope.WatchList {
				named = strings.Split(p.Lists[i].Live.List, ",")
			}
		}
	}

	newcomer := map[string]struct{}{}

	for i := range done.Failures {
		f := &done.Failures[i]
		if n := f.Change.Namespace; f.Class != apply.Dangling && s.IsBare(n) && !s.IsReported(n) {
			newcomer[n] = struct{}{}
		}
	}

	var members []string

	for _, n := range named {
		if _, is := newcomer[n]; is {
			continue
		}

		if _, member := slices.BinarySearch(s.Members, n); member || s.IsFinishing(n) || n == p.Key.Namespace {
			members = append(members, n)
		}
	}

	return slices.Compact(slices.Sorted(slices.Values(members)))
}

// inOperatorNamespace is why something could not be written in the scope's own namespace.
func inOperatorNamespace(p *plan.Plan, out *apply.Outcome, index int, list *apply.ListOutcome) error {
	if list != nil && list.Err != nil {
		return list.Err
	}

	for i := range out.Restarts {
		if slices.Contains(p.Restarts[i].Scopes, index) && out.Restarts[i].Err != nil {
			return out.Restarts[i].Err
		}
	}

	for i := range out.Injections {
		if p.Injections[i].Scope == index && out.Injections[i].Err != nil {
			return out.Injections[i].Err
		}
	}

	return nil
}

func ready(
	p *plan.Plan, s *plan.ScopePlan, nobody string, found *problems, list *apply.ListOutcome, injection string, served int,
) metav1.Condition {
	reason, problem := listProblem(s, list, found.listFailed)

	switch {
	case s.Scope.Problem != "":
		return isNot(ConditionReady, ReasonInvalidSpec, s.Scope.Problem)
	case nobody != "":
		return isNot(ConditionReady, ReasonAuthorizationRequired, nobody)
	case p.LeftOut != "":
		return isNot(ConditionReady, ReasonLimitExceeded, fmt.Sprintf("namespace %s holds more than may be remembered: the largest "+
			"objects of it, and the youngest of too many scopes, are left out and count as not being there: %s",
			s.Scope.Key.Namespace, p.LeftOut))
	case len(s.Beyond) > 0 && len(s.Members) == 0 && len(s.Accounts) == 0:
		return isNot(ConditionReady, ReasonLimitExceeded, fmt.Sprintf("the scopes of namespace %s project more than %d service "+
			"accounts, RoleBindings and subjects of these: this one projects nothing, and its members are left out",
			s.Scope.Key.Namespace, plan.MaxProjected))
	case len(s.Beyond) > 0:
		return isNot(ConditionReady, ReasonLimitExceeded, fmt.Sprintf(
			"the scopes of namespace %s ask for more than %d Roles and RoleBindings: of %d members the last %d by name are left out",
			s.Scope.Key.Namespace, plan.MaxObjects, len(s.Members)+len(s.Beyond)+len(s.Absent)+1, len(s.Beyond)))
	case s.Selection.Problem != "":
		return isNot(ConditionReady, ReasonInvalidSpec, s.Selection.Problem+"; named members are served"+found.exceptMembers())
	case reason != "":
		return isNot(ConditionReady, reason, problem)
	case found.onlyUnauthorized():
		return isNot(ConditionReady, ReasonAuthorizationRequired, fmt.Sprintf(
			"%d of %d members are not authorized: %s; see status.failedMembers for the command that grants what is missing",
			len(found.members), found.among(s), some(namespacesOf(found.members))))
	case len(found.members) > 0:
		return isNot(ConditionReady, ReasonMembersFailed, fmt.Sprintf("%d of %d members are not fully served: %s",
			len(found.members), found.among(s), some(memberNames(found.members))))
	case injection != "":
		return isNot(ConditionReady, ReasonInjectionFailed, injection)
	case len(found.unprojects) > 0:
		return is(ConditionReady, ReasonSubsetProjected, fmt.Sprintf("%s; %s could not be projected, see status.unprojectedRoles",
			servedMembers(served), printable.Number(len(found.unprojects), "role", "roles")))
	default:
		return is(ConditionReady, ReasonReconciled, servedMembers(served))
	}
}

func servedMembers(n int) string { return printable.Number(n, "member is", "members are") + " served" }

// is makes a condition that is true, and isNot one that is false.
func is(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func isNot(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// listProblem says what is wrong with the watch list; nothing when the reason is empty. failed says that it had failed before.
func listProblem(s *plan.ScopePlan, list *apply.ListOutcome, failed bool) (reason, message string) {
	name := s.Scope.WatchList

	switch {
	case list == nil:
		return "", ""
	case list.Write.Action == plan.BlockedList:
		return ReasonConfigMapConflict, "ConfigMap " + name +
			" is immutable, so the watch list cannot be written; delete it, or have the scope name another one"
	case list.Err == nil:
		return "", ""
	case isForbidden(list.Err):
		return ReasonAuthorizationRequired, "the watch list in ConfigMap " + name + " cannot be written: " +
			shorten(list.Err) + "; see status.failedMembers"
	case list.Is(apply.Refused):
		return ReasonConfigMapConflict, "the API server refuses the watch list in ConfigMap " + name + ": " + shorten(list.Err)
	case errors.Is(list.Err, apply.ErrUnanswered) && !failed:
		return ReasonWatchListPending, "ConfigMap " + name + " is being written; the API server has not answered yet"
	default:
		return ReasonWatchListFailed, "ConfigMap " + name + " could not be written; it is tried again"
	}
}

func isForbidden(err error) bool {
	_, missing := errors.AsType[*apply.MissingError](err)

	return missing || errors.Is(err, apply.ErrNoIdentity) || apierrors.IsForbidden(err)
}

func namespacesOf(failed []operatorv1.FailedMember) []string {
	return collect.Map(failed, func(f operatorv1.FailedMember) string { return f.Namespace })
}

func memberNames(failed []operatorv1.FailedMember) []string {
	return collect.Map(failed, func(f operatorv1.FailedMember) string { return f.Namespace + " (" + f.Reason + ")" })
}

func accountsFound(s *plan.ScopePlan) metav1.Condition {
	if len(s.MissingAccounts) > 0 {
		return isNot(ConditionAccountsFound, ReasonMissing, fmt.Sprintf("service accounts that do not exist in namespace %s: %s; they "+
			"are projected once they do", s.Scope.Key.Namespace, some(printable.Names(s.MissingAccounts))))
	}

	return is(ConditionAccountsFound, ReasonAllFound,
		printable.Number(len(s.Accounts), "service account is", "service accounts are")+" projected")
}

func rolesFound(s *plan.ScopePlan, out *apply.ScopeOutcome) metav1.Condition {
	dangling := slices.Clone(s.DanglingBindings)

	// Where Ambit may not look for a ClusterRole, the API server says that it does not exist.
	for i := range out.Failures {
		if f := &out.Failures[i]; f.Class == apply.Dangling && f.Change.Copy != nil {
			source, _ := projected.ParseSource(f.Change.Copy.Source)
			dangling = append(dangling, plan.Dangling(source.Name, f.Change.Copy.RoleRef.Kind, f.Change.Copy.RoleRef.Name))
		}
	}

	slices.Sort(dangling)

	if dangling = slices.Compact(dangling); len(dangling) > 0 {
		return isNot(ConditionRolesFound, ReasonMissing,
			"role bindings whose role does not exist are not projected: "+some(dangling))
	}

	return is(ConditionRolesFound, ReasonAllFound, "every role binding has its role"+leases(s))
}

// leases hints at bindings that are hardly meant for members.
func leases(s *plan.ScopePlan) string {
	if len(s.Leases) == 0 {
		return ""
	}

	return "; these let accounts lead, which is hardly meant for members, and are not projected with the annotation " +
		scope.AnnotationProject + ": " + scope.ProjectDisabled + ": " + some(printable.Names(s.Leases))
}

// rulesEffective names rules that give nothing in members; nil when there are none.
func rulesEffective(s *plan.ScopePlan) *metav1.Condition {
	if len(s.Ineffective) == 0 {
		return nil
	}

	return ineffective(s.Ineffective, "grant them by a ClusterRoleBinding, or remove them from the Roles")
}

// ineffective says which rules give nothing in a namespace, and what to do about them.
func ineffective(rules []string, advice string) *metav1.Condition {
	return new(isNot(ConditionRulesEffective, ReasonClusterScopedRules,
		"these rules have no effect in a namespace, because they name cluster-scoped resources or URLs: "+some(rules)+"; "+advice))
}

// clusterWide names what accounts of a scope hold in the whole cluster; nil when they hold nothing that its members would limit.
func clusterWide(s *plan.ScopePlan) *metav1.Condition {
	switch {
	case len(s.ClusterWide) > 0:
		return new(is(ConditionClusterWide, ReasonBoundInCluster, plan.SayClusterWide(s.ClusterWide, s.ClusterWideMore)))
	case s.ClusterWideMore > 0:
		return &metav1.Condition{
			Type: ConditionClusterWide, Status: metav1.ConditionUnknown, Reason: ReasonTooManyBindings,
			Message: fmt.Sprintf("%d ClusterRoleBindings that name accounts of the namespace were not checked: there are too many, "+
				"or their ClusterRoles are too large", s.ClusterWideMore),
		}
	default:
		return nil
	}
}

// takenOver says what is left of IBM's operator; nil when nothing is.
func takenOver(s *plan.ScopePlan) *metav1.Condition {
	switch {
	case len(s.Legacy) > 0:
		return new(isNot(ConditionTakenOver, ReasonTakingOver,
			"Ambit replaces ibm-namespace-scope-operator and removes what that operator projected"))
	case len(s.ForeignLegacy) > 0:
		return new(isNot(ConditionTakenOver, ReasonLeftAlone, "these bear the label namespace-scope-configmap, and are not what "+
			"ibm-namespace-scope-operator writes; delete them if nobody needs them: "+some(s.ForeignLegacy)))
	default:
		return nil
	}
}

// foreignBindings names who else bound what was projected; nil when nobody did. Such a binding gives no more than when it was
// made, since a Role that was projected never gains rules. Ambit leaves the binding alone, because it did not make it.
func foreignBindings(s *plan.ScopePlan) *metav1.Condition {
	if len(s.ForeignBindings) == 0 {
		return nil
	}

	return new(isNot(ConditionNoForeignBindings, ReasonBoundByOthers,
		"bindings that Ambit did not make refer to copies of this scope, which are replaced when they gain rules, so these "+
			"bindings gain nothing; delete them if nobody needs them: "+some(s.ForeignBindings)))
}

func namespacesSelected(s *plan.ScopePlan) *metav1.Condition {
	switch {
	case !s.Selection.Asked:
		return nil
	case s.Selection.Problem != "":
		return new(isNot(ConditionNamespacesSelected, ReasonInvalidSelector, s.Selection.Problem))
	case s.Selection.Matched == 0:
		return new(isNot(ConditionNamespacesSelected, ReasonNothingSelected,
			"spec.namespaceSelector matches no namespace; namespaces join as soon as their labels match"))
	default:
		return new(is(ConditionNamespacesSelected, ReasonSelected,
			"spec.namespaceSelector matches "+namespaces(s.Selection.Matched)))
	}
}
