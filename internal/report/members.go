package report

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/apply"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/grant"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/writer"
)

const (
	// maxFailedMembers and maxUnprojected bound the lists in status; their full count is in the condition.
	maxFailedMembers = 50
	maxUnprojected   = 500
	// maxReason bounds one message within a list.
	maxReason = 300
	// maxNames is how many names a message has before it says "and 12 more".
	maxNames = 8
)

// problems is what went wrong for one scope, in a stable order.
type problems struct {
	members    []operatorv1.FailedMember
	unprojects []string
	// listFailed says that the watch list could not be written before.
	listFailed bool
}

// exceptMembers ends a sentence about members that are served, with those that are not.
func (p *problems) exceptMembers() string {
	if len(p.members) == 0 {
		return ""
	}

	return ", but for " + some(memberNames(p.members))
}

// onlyUnauthorized says whether all that is wrong is a lack of permissions.
func (p *problems) onlyUnauthorized() bool {
	return len(p.members) > 0 && !slices.ContainsFunc(p.members, func(m operatorv1.FailedMember) bool {
		return m.Reason != MemberUnauthorized
	})
}

// among counts the members, and the namespaces that left and keep what should be gone.
func (p *problems) among(s *plan.ScopePlan) int {
	left := collect.Count(p.members, func(m operatorv1.FailedMember) bool { return hasLeft(s, m.Namespace) })

	return len(s.Members) + len(s.Absent) + 1 + left
}

func problemsOf(s *plan.ScopePlan, out *apply.ScopeOutcome, list *apply.ListOutcome, writeErr error) problems {
	failed := map[string]operatorv1.FailedMember{}
	for _, a := range s.Absent {
		failed[a.Namespace] = absentMember(s, a)
	}

	if missing, ok := errors.AsType[*apply.MissingError](writeErr); ok {
		failed[s.Scope.Key.Namespace] = unauthorized(s, missing)
	}

	failures := slices.Clone(out.Failures)
	slices.SortFunc(failures, func(a, b apply.Failure) int {
		return cmp.Or(cmp.Compare(a.Change.Namespace, b.Change.Namespace), cmp.Compare(role(&a), role(&b)),
			cmp.Compare(a.Change.Key.Kind, b.Change.Key.Kind))
	})

	var p problems

	conflicts, words := map[string]struct{}{}, words{}

	for i := range failures {
		f := &failures[i]
		if f.Class == apply.Conflict {
			conflicts[f.Change.Namespace] = struct{}{} // The next plan, which follows at once, settles it.

			continue
		}

		if f.Class == apply.Dangling {
			continue // The condition RolesFound names it.
		}

		if isRefusedGrant(f) {
			p.unprojects = append(p.unprojects, printable.Text(f.Change.Namespace+"/"+role(f)+": "+words.of(f.Err)))

			// A member that the written list names is served with the subset. One that it does not name has failed.
			if s.Scope.AllowSubset && (list == nil || !list.Written() || slices.Contains(list.Write.Members, f.Change.Namespace)) {
				continue
			}
		}

		if _, known := failed[f.Change.Namespace]; !known {
			failed[f.Change.Namespace] = failedMember(s, f)
		}
	}

	if list != nil && list.Written() {
		holdBack(s, list.Write.Members, failed, conflicts)
	}

	// A Role and its binding may fail for the same reason; one line says it.
	p.unprojects = slices.Compact(slices.Sorted(slices.Values(p.unprojects)))

	for _, namespace := range slices.Sorted(maps.Keys(failed)) {
		m := failed[namespace]
		m.Message = printable.Text(m.Message)
		p.members = append(p.members, m)
	}

	return p
}

// holdBack names the members that are in order for this scope, and are not in the list because they are not for another
// scope that shares it.
func holdBack(
	s *plan.ScopePlan, listed []string, failed map[string]operatorv1.FailedMember, conflicts map[string]struct{},
) {
	for _, namespace := range s.Members {
		_, isListed := slices.BinarySearch(listed, namespace)
		_, known := failed[namespace]

		if _, passing := conflicts[namespace]; isListed || known || passing {
			continue
		}

		failed[namespace] = operatorv1.FailedMember{
			Namespace: namespace, Reason: MemberHeldBack,
			Message: "another scope that shares ConfigMap " + s.Scope.WatchList + " could not be served there; see its status",
		}
	}
}

// words are texts about missing permissions, by the first of these: a scope may lack the same ones in thousands of members.
type words map[*rbacv1.PolicyRule]string

// of is an error in a few words.
func (w words) of(err error) string {
	missing, ok := errors.AsType[*apply.MissingError](err)
	if !ok || len(missing.Rules) == 0 {
		return shorten(err)
	}

	text, known := w[&missing.Rules[0]]
	if !known {
		text = shorten(err)
		w[&missing.Rules[0]] = text
	}

	return text
}

func isRefusedGrant(f *apply.Failure) bool {
	return f.Class == apply.Refused && !f.Change.Action.TakesAway()
}

func role(f *apply.Failure) string {
	if f.Change.Copy != nil {
		return printable.Name(f.Change.Copy.SourceRole)
	}

	return printable.Name(f.Change.Key.Name)
}

func absentMember(s *plan.ScopePlan, a plan.Absent) operatorv1.FailedMember {
	reason, message := Absent(a)
	if a.Closed != "" {
		message += "; to let Ambit in: " + grant.CommandFor(a.Namespace, s.Scope)
	}

	return operatorv1.FailedMember{Namespace: a.Namespace, Reason: reason, Message: message}
}

// Absent says why a member cannot be served.
func Absent(a plan.Absent) (reason, message string) {
	switch {
	case a.Closed != "":
		return MemberUnauthorized, a.Closed
	case a.Terminating:
		return MemberTerminating, isBeingDeleted
	default:
		return MemberNotFound, "the namespace does not exist; it is served as soon as it does"
	}
}

const isBeingDeleted = "the namespace is being deleted"

// unauthorized says what an identity lacks in a namespace, and what to do about it.
func unauthorized(s *plan.ScopePlan, e *apply.MissingError) operatorv1.FailedMember {
	return operatorv1.FailedMember{
		Namespace: e.Namespace, Reason: MemberUnauthorized, Message: Unauthorized(s, e, e.All),
	}
}

// Unauthorized says that an identity lacks some rules, and what to do about it.
func Unauthorized(p *plan.ScopePlan, e *apply.MissingError, rules []rbacv1.PolicyRule) string {
	message := fmt.Sprintf("%s may not %s", e.Identity, authority.Words(rules, maxReason))

	switch s := p.Scope; {
	case s.Owner.Namespace == "":
		return message
	case e.Identity.IsOwn() && s.Delegate == "" && !e.Granted:
		return message + "; " + grant.ToName(s.Owner) + ", which namespaces can authorize"
	case hasLeft(p, e.Namespace):
		return message + "; to let it remove what is left there: " + grant.LeavingCommandFor(e.Namespace, s)
	default:
		return message + "; to grant it: " + grant.CommandFor(e.Namespace, s)
	}
}

// hasLeft says whether a namespace is no member of a scope: it left, or the scope itself goes.
func hasLeft(p *plan.ScopePlan, namespace string) bool {
	_, member := slices.BinarySearch(p.Members, namespace)
	_, absent := slices.BinarySearchFunc(p.Absent, namespace, func(a plan.Absent, name string) int {
		return cmp.Compare(a.Namespace, name)
	})

	return !member && !absent && namespace != p.Scope.Key.Namespace && !slices.Contains(p.Beyond, namespace)
}

// Refused says why a change failed, as the status does.
func Refused(s *plan.ScopePlan, f *apply.Failure) (reason, message string) {
	m := failedMember(s, f)

	return m.Reason, printable.Text(m.Message)
}

// Members are those of a scope that are served by what was applied, its operator namespace among them, and those that are not, as
// the status has them, but all of them. Both are sorted.
func Members(p *plan.Plan, out *apply.Outcome, index int) (served []string, failed []operatorv1.FailedMember) {
	s := &p.Scopes[index]

	members, list := s.Members, (*apply.ListOutcome)(nil)
	if !s.Scope.Explicit() {
		list = listOf(p, out, s)
		members = validated(p, s, list, &out.Scopes[index])
	}

	failed = problemsOf(s, &out.Scopes[index], list, inOperatorNamespace(p, out, index, list)).members
	if s.Scope.Deleting() || s.Scope.Explicit() && !isBound(p, out, index) {
		return nil, failed
	}

	return notAmong(failed, members), failed
}

// notAmong are the members that are not among the failed ones.
func notAmong(failed []operatorv1.FailedMember, members []string) []string {
	return collect.Filter(members, func(name string) bool {
		return !slices.ContainsFunc(failed, func(m operatorv1.FailedMember) bool { return m.Namespace == name })
	})
}

func failedMember(s *plan.ScopePlan, f *apply.Failure) operatorv1.FailedMember {
	if missing, ok := errors.AsType[*apply.MissingError](f.Err); ok {
		return unauthorized(s, missing)
	}

	m := operatorv1.FailedMember{Namespace: f.Change.Namespace, Message: "role " + role(f) + ": " + shorten(f.Err)}

	if errors.Is(f.Err, apply.ErrNoIdentity) {
		m.Message = writer.NobodyIn(s.Scope, m.Message, f.Change.Namespace)
	}

	switch m.Reason = reasonOf(f); m.Reason {
	case MemberNameClash:
		m.Message = fmt.Sprintf("%s %s: %s", f.Change.Key.Kind, f.Change.Key.Name, apply.ErrNameClash)
	case MemberTerminating:
		m.Message = isBeingDeleted
	case MemberTemporaryError:
		// A temporary error differs from one try to the next; the message must not, since it would be another status each time.
		m.Message = "role " + role(f) + " could not be written; it is tried again"
	}

	return m
}

// reasonOf is the reason of a failed member for one failure.
func reasonOf(f *apply.Failure) string {
	_, missing := errors.AsType[*apply.MissingError](f.Err)

	switch {
	case missing, errors.Is(f.Err, apply.ErrNoIdentity):
		return MemberUnauthorized
	case errors.Is(f.Err, apply.ErrNameClash):
		return MemberNameClash
	case f.Class == apply.Gone:
		return MemberTerminating
	case f.Change.Action == plan.Delete:
		return MemberNotRevoked
	case f.Class == apply.Refused:
		return MemberRefused
	default:
		return MemberTemporaryError
	}
}

func shorten(err error) string {
	text := []rune(printable.Text(strings.Join(strings.Fields(apply.Message(err)), " ")))

	// What an admission policy says comes last, and is what helps.
	if _, why, is := strings.Cut(string(text), " denied request: "); is && len(text) > maxReason {
		text = []rune("an admission policy denies it: " + why)
	}

	if len(text) > maxReason {
		return string(text[:maxReason-1]) + "…"
	}

	return string(text)
}

// some joins names and ends with "and 12 more" when there are many. What a binding refers to may have a name of any length.
func some(names []string) string { return someOf(names, len(names)) }

// someOf is some where there are more than those that are known.
func someOf(names []string, all int) string {
	listed := slices.Clone(names[:min(len(names), maxNames)])
	for i := range listed {
		listed[i] = shortened(listed[i], maxMessage/(2*maxNames))
	}

	return printable.Counted(listed, ", ", max(all, len(names))-len(listed))
}
