package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/injection"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// What a plan leaves open depends on the results of its first writes. Whoever applies it says what these were, as data, and is
// told here what comes next.

// Member is a namespace from the point of view of the scope with an index.
type Member struct {
	Scope     int
	Namespace string
}

// Members are a set.
type Members map[Member]struct{}

// Has says whether a namespace is among the members as one of a scope.
func (m Members) Has(index int, namespace string) bool {
	_, is := m[Member{index, namespace}]

	return is
}

// ResolveList says what to write into a list, given the members that miss something that a scope projects there, and those in
// which something of it was refused. A new member enters once every scope that shares the list has its permissions there; one
// that is in the list stays while it is a member, unless what was there is known to be gone and refused again.
func ResolveList(l *ListPlan, missing, refused Members) ListWrite {
	w := ListWrite{Exists: l.Exists, Created: !l.Exists || l.Live.Created, Version: l.Live.Version}

	if len(l.Scopes) == 0 {
		w.Action, w.Intact = l.leave(), l.intact()
		w.Empties = l.outlives(w.Action)

		return w
	}

	// Nothing would enter it. Whoever waits for a list would begin with the operator namespace alone, and once more soon after.
	if l.Waits {
		w.Action = KeepList

		return w
	}

	for i := range l.Members {
		if m := &l.Members[i]; m.stays(refused) || m.enters(missing) {
			w.Members = append(w.Members, m.Namespace)
		}
	}

	w.Value = strings.Join(w.Members, ",")

	switch {
	case l.holds(w.Value):
		w.Action = KeepList
	case l.Live.Immutable:
		w.Action = BlockedList
	default:
		w.Action = ApplyList
		w.Since = l.since(w.Value)
		w.Generation = l.Live.Generation

		if w.Before = l.Live.Before; w.Since.IsZero() {
			w.Generation++
			w.Before = l.Live.ChangedAt()
		}
	}

	return w
}

// holds says whether a list is in the cluster as Ambit would write it.
func (l *ListPlan) holds(value string) bool {
	return l.Exists && l.Live.HasList && l.Live.List == value && l.intact() && (!l.Live.Applied.IsZero() || l.Live.Immutable)
}

func (l *ListPlan) leave() ListAction {
	switch {
	case l.Live.Created && !l.Live.OtherKeys:
		return DeleteList
	case l.Live.Immutable:
		return BlockedList
	default:
		return ReleaseList
	}
}

// outlives says whether a list stays in its ConfigMap although that is deleted, and can be taken out.
func (l *ListPlan) outlives(action ListAction) bool {
	return action == DeleteList && l.Live.Held && l.Live.HasList && !l.Live.Immutable
}

func (m *ListMember) stays(refused Members) bool {
	return m.Stays && !slices.ContainsFunc(m.Unless, func(i int) bool { return refused.Has(i, m.Namespace) })
}

func (m *ListMember) enters(missing Members) bool {
	return len(m.Enters) > 0 && !slices.ContainsFunc(m.Enters, func(i int) bool { return missing.Has(i, m.Namespace) })
}

// since keeps the time of the last change when a write only repairs the list, so that no reader is restarted for a list
// that it knows. Zero means that the write itself is the change.
func (l *ListPlan) since(value string) time.Time {
	marked := l.Live.ListHash == scope.ListHash(value, l.Live.Generation)
	// IBM's operator writes the same members in any order.
	same := l.Live.HasList && sameMembers(l.Live.List, value)

	switch changed := l.Live.ChangedAt(); {
	case !l.Live.Since.IsZero() && !changed.IsZero() && (marked || same):
		return changed
	case marked && l.Live.HasList && !changed.IsZero():
		// Somebody changed the list. The API server does not note that as a change of Ambit's.
		return changed
	case same && !l.Live.Ours() && l.Reported == "":
		// It is taken over from somebody who wrote the same list.
		return l.Live.Written
	case marked, same, !l.Live.Ours() && l.Reported == value:
		// Somebody took away the key or the marks, by which the API server notes a change of Ambit's, or that note, or the whole
		// ConfigMap. What is known is that no reader of this scope is older than the scope.
		return l.Oldest
	default:
		return time.Time{}
	}
}

// ResolveWebhook returns the patch by which every webhook asks for the members of the list besides all that it asks for anyway;
// nil when it does so already. Where the limit ends, it returns the one by which that is taken back.
func ResolveWebhook(w *WebhookPlan, members []string) []injection.Op {
	want := ""
	if !w.IsTakenBack() {
		want = strings.Join(members, ",")
	}

	var ops []injection.Op

	for i := range w.Live.Webhooks {
		ops = append(ops, w.limit(i, want)...)
	}

	if len(ops) == 0 && w.Live.Replaced == want {
		return nil
	}

	return append(ops, injection.Annotate("", map[string]string{scope.AnnotationReplaced: w.Live.Replaced}, w.Live.Annotated,
		map[string]string{scope.AnnotationReplaced: want})...)
}

// ResolveInjection returns what is written for an injection. Where it gives a workload other pods, the template says which lists
// these begin with, so that nothing restarts them for a list that this plan wrote before.
func ResolveInjection(in *Injection, written map[string]string) Injection {
	out := *in

	with := in.With
	if in.Reads != nil {
		with = ResolveHash(in.Reads, written)
	}

	if with == "" {
		return out
	}

	mark := map[string]string{scope.AnnotationInjectedWith: with}
	ops := injection.Annotate(atTemplate, map[string]string{scope.AnnotationInjectedWith: in.With}, !in.Bare, mark)

	switch in.Action {
	case ApplyInjection:
		out.Spec.Template.Metadata = &injection.Metadata{Annotations: mark}
		if len(in.Otherwise) > 0 {
			out.Otherwise = slices.Concat(in.Otherwise, ops)
		}
	case PatchInjection:
		out.Patch = slices.Concat(in.Patch, ops)
	case ReleaseInjection, RestoreInjection, DisownInjection:
	}

	return out
}

// ResolveHash is what a workload is annotated with: the hash of the list that it reads, or of all of them together, given by
// name. So one restart is for all, and none of them restarts it because it was annotated with another. For lists that were
// written meanwhile the new hash counts: the reader begins with that list.
func ResolveHash(reads, written map[string]string) string {
	hashes := collect.Map(slices.Sorted(maps.Keys(reads)), func(list string) string {
		return cmp.Or(written[list], reads[list])
	})

	if len(hashes) == 1 {
		return hashes[0]
	}

	return scope.Digest(16, append([]string{"lists"}, hashes...)...)
}
