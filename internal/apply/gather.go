package apply

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// maxWords bounds the words about missing permissions in an error.
const maxWords = 160

// MissingError says which permissions an identity lacks for a write.
type MissingError struct {
	Identity  Identity
	Namespace string
	// Rules are what the write itself needs. All are what the scope needs in the namespace besides what its identity has:
	// complete, as far as it can be known before the first write.
	Rules, All []rbacv1.PolicyRule
	// Granted says that the identity has no rights but those that namespaces granted to it.
	Granted bool
}

// Error names the first of the missing rules.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s may not %s", e.Identity, authority.Words(e.Rules, maxWords))
}

// gather finds, before anything is written, all that the API server would refuse for want of permissions. What an identity
// holds is asked once for a namespace; what that does not cover is tried by a dry run, because the API server has the last
// word. Ambit itself, where it holds everything, is not asked.
func (r *run) gather(ctx context.Context) {
	places := map[plan.Member][]*plan.Change{}

	var order []plan.Member

	for i := range r.plan.Scopes {
		if !r.isInDoubt(r.identities[i]) {
			continue
		}

		s := &r.plan.Scopes[i]
		for _, changes := range [][]plan.Change{s.Revoke, s.Grant, s.Prune, s.Retire, s.Legacy} {
			for j := range changes {
				if r.takesAway(i, &changes[j]) {
					continue
				}

				m := plan.Member{Scope: i, Namespace: changes[j].Namespace}
				if _, known := places[m]; !known {
					order = append(order, m)
				}

				places[m] = append(places[m], &changes[j])
			}
		}
	}

	r.each(ctx, len(order), func(i int) {
		refused, doubts := r.refusals(ctx, order[i], places[order[i]])
		r.findOwners(ctx, order[i], places[order[i]], refused)

		r.mu.Lock()
		defer r.mu.Unlock()

		maps.Copy(r.refused, refused)
		maps.Copy(r.doubts, doubts)
	})
}

// isInDoubt says whether it has to be asked what an identity may do.
func (a *Applier) isInDoubt(id Identity) bool {
	return id.User() != "" || id.IsOwn() && a.ReviewOwn
}

// doubt is about a change that a review does not cover, and of which a dry run did not tell whether it is refused.
type doubt struct {
	review  *review
	missing error
}

// refusals returns the changes in a member that the API server refuses, with what is missing for each, and those of which that is
// not known.
func (r *run) refusals(
	ctx context.Context, m plan.Member, changes []*plan.Change,
) (refused map[*plan.Change]error, doubts map[*plan.Change]doubt) {
	id := r.identities[m.Scope]
	refused, doubts = map[*plan.Change]error{}, map[*plan.Change]doubt{}

	known, err := r.review(ctx, id, m.Namespace)
	if err != nil {
		return notAsked(changes, err), nil
	}

	missingAt, refusedRoles := map[*plan.Change]*MissingError{}, map[string]struct{}{}

	var all []rbacv1.PolicyRule

	for _, kind := range granting() {
		for _, c := range changes {
			missing := r.lacks(known, m.Scope, c)
			if c.Key.Kind != kind || len(missing) == 0 {
				continue
			}

			is, sure := r.isRefused(ctx, id, known, c, refusedRoles)
			if sure && !is {
				continue
			}

			missingAt[c] = &MissingError{Identity: id, Namespace: m.Namespace, Rules: missing, Granted: r.isInDoubt(id)}
			all = append(all, missing...)

			if !sure {
				doubts[c] = doubt{known, missingAt[c]}
			} else if !c.Key.Kind.IsBinding() {
				refusedRoles[c.Key.Name] = struct{}{}
			}
		}
	}

	if len(missingAt) > 0 {
		all = r.merged(known, m, missingAt, all)
	}

	for c, e := range missingAt {
		e.All = all

		if _, unsure := doubts[c]; !unsure {
			refused[c] = e
		}
	}

	return refused, doubts
}

// notAsked are the changes that are not made in a member because the API server did not say what their identity may do: all,
// where nobody may act as that; otherwise those that make something. A scope may ask for a thousand roles in each of a hundred
// namespaces that grant none. What takes something away is tried.
func notAsked(changes []*plan.Change, err error) map[*plan.Change]error {
	out := map[*plan.Change]error{}
	nobody, no := errors.AsType[*IdentityError](err)

	for _, c := range changes {
		if no {
			out[c] = nobody
		} else if c.Action == plan.Create {
			out[c] = err
		}
	}

	return out
}

// merged is everything that is missing in a member, and is worked out once for all members that miss the same. A scope may ask
// for hundreds of roles in hundreds of namespaces that grant nothing.
func (r *run) merged(
	known *review, m plan.Member, missingAt map[*plan.Change]*MissingError, all []rbacv1.PolicyRule,
) []rbacv1.PolicyRule {
	merge := func() []rbacv1.PolicyRule {
		return authority.Merge(append(all, authority.Missing(known.held, r.writing(m))...))
	}

	if len(known.held) == 0 || r.plan.Scopes[m.Scope].Scope.Installed() {
		return r.alone(merge)
	}

	key := sum{scope: m.Scope, held: &known.held[0]}
	for c := range missingAt {
		key.of += maphash.Comparable(r.seed, questionOf(known, c))
	}

	return once(r, r.sums, key, merge)
}

// alone compares rules while nobody else does.
func (r *run) alone(compare func() []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	r.comparing.Lock()
	defer r.comparing.Unlock()

	return compare()
}

// once compares rules for all that ask the same.
func once[K comparable](r *run, known map[K][]rbacv1.PolicyRule, key K, compare func() []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	look := func() ([]rbacv1.PolicyRule, bool) {
		r.mu.Lock()
		defer r.mu.Unlock()

		found, is := known[key]

		return found, is
	}

	if found, is := look(); is {
		return found
	}

	return r.alone(func() []rbacv1.PolicyRule {
		found, is := look()
		if is {
			return found
		}

		found = compare()

		r.mu.Lock()
		defer r.mu.Unlock()

		known[key] = found

		return found
	})
}

// sum stands for all that is missing in a member.
type sum struct {
	scope int
	held  *rbacv1.PolicyRule
	of    uint64
}

// writing are the rights on the objects themselves that a scope needs in a member.
func (r *run) writing(m plan.Member) []rbacv1.PolicyRule {
	if r.plan.Scopes[m.Scope].Scope.Installed() {
		return authority.Installing(m.Namespace)
	}

	return authority.Writing()
}

// refersTo says whether a change binds a role, written in the same place, that may not be written.
func refersTo(c *plan.Change, roles map[string]struct{}) bool {
	if c.Copy == nil || !c.Key.Kind.IsBinding() ||
		projected.Kind(c.RoleRef.Kind).IsClusterScoped() != c.Key.Kind.IsClusterScoped() {
		return false
	}

	_, found := roles[c.RoleRef.Name]

	return found
}

// lacks is authority.OfChange, worked out once for a set of rules and a copy.
func (r *run) lacks(known *review, index int, c *plan.Change) []rbacv1.PolicyRule {
	compare := func() []rbacv1.PolicyRule { return authority.OfChange(known.held, c, r.plan.Scopes[index].Copies) }

	if len(known.held) == 0 {
		return r.alone(compare)
	}

	return once(r, r.answers, questionOf(known, c), compare)
}

// question is what is asked about many members with the same answer.
type question struct {
	held   *rbacv1.PolicyRule
	copied *plan.Copy
	rules  *rbacv1.PolicyRule
	action plan.Action
	key    facts.ProjectedKey
}

func questionOf(known *review, c *plan.Change) question {
	q := question{held: &known.held[0], copied: c.Copy, action: c.Action, key: c.Key}
	if len(c.Rules) > 0 {
		q.rules = &c.Rules[0]
	}

	if c.Action == plan.Create {
		q.key.Name = "" // Every member has another, and the answer does not depend on it.
	}

	return q
}

// isRefused tries a change by a dry run, and says whether that told. The binding of a Role that is yet to be written cannot be
// tried: it is refused with the Role, or written after it, and refused or not.
func (r *run) isRefused(
	ctx context.Context, id Identity, known *review, c *plan.Change, refusedRoles map[string]struct{},
) (is, sure bool) {
	if refersTo(c, refusedRoles) {
		return true, true
	}

	writer, err := r.as(id)
	if err != nil {
		return false, true
	}

	return known.isRefused(what(c), func() error {
		return r.breaker.dryRun(c.Namespace, func() error { return dryRun(ctx, writer, c) })
	})
}

func what(c *plan.Change) string {
	if c.Copy == nil {
		return fmt.Sprint(c.Action, c.Key)
	}

	o := c.Object()
	if c.Action == plan.Create {
		o.Name = o.Slot // A new one comes with every plan.
	}

	return fmt.Sprint(c.Action, o.Kind, o.Name, o.Digest(scope.ManagedBy))
}

// dryRun tries a change for no longer than others can wait; what hangs is not known to be refused.
func dryRun(ctx context.Context, writer client.Client, c *plan.Change) error {
	ctx, cancel := context.WithTimeout(ctx, memberWait)
	defer cancel()

	obj := c.Key.Kind.Empty(c.Namespace, c.Key.Name)

	switch c.Action {
	case plan.Create:
		o := c.Object()

		//nolint:wrapcheck // Only its class matters.
		return writer.Create(ctx, o.In(c.Namespace), fieldOwner, client.DryRunAll)
	case plan.Update:
		//nolint:wrapcheck // Only its class matters.
		return writer.Patch(ctx, obj, patchOf(c, formatVersion(c.Version)), fieldOwner, client.DryRunAll)
	case plan.Delete, plan.Empty, plan.Hold:
	}

	return writer.Delete(ctx, obj, client.DryRunAll) //nolint:wrapcheck // Only its class matters.
}

// explain says what an identity lacks for a write in a member that was unexpectedly refused.
func (r *run) explain(ctx context.Context, id Identity, j job, err error) error {
	known, reviewErr := r.review(ctx, id, j.change.Namespace)
	if reviewErr != nil {
		return err
	}

	copies := r.plan.Scopes[j.scope].Copies

	missing := r.lacks(known, j.scope, j.change)
	if len(missing) == 0 {
		return err // It was something else, such as an admission policy.
	}

	of := sum{scope: j.scope}
	if len(known.held) > 0 {
		of.held = &known.held[0]
	}

	return &MissingError{
		Identity: id, Namespace: j.change.Namespace, Rules: missing, Granted: r.isInDoubt(id),
		All: once(r, r.sums, of, func() []rbacv1.PolicyRule { return authority.OfMember(known.held, copies) }),
	}
}

// explainOperatorNamespace says which of the rights that a write in the operator namespace needs are missing, if it was
// refused.
func (r *run) explainOperatorNamespace(ctx context.Context, id Identity, needs []rbacv1.PolicyRule, err error) error {
	if !lacksRights(err) {
		return err
	}

	known, reviewErr := r.review(ctx, id, r.plan.Key.Namespace)
	if nobody, no := errors.AsType[*IdentityError](reviewErr); no {
		return nobody
	}

	if reviewErr != nil {
		return err
	}

	missing := authority.Missing(known.held, needs)
	if len(missing) == 0 {
		return err
	}

	return &MissingError{
		Identity: id, Namespace: r.plan.Key.Namespace, Rules: missing, All: missing, Granted: r.isInDoubt(id),
	}
}
