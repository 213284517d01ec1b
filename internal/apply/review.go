package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/scope"
)

const (
	// settled is how long after a change of permissions the API server's own authorizer may still go by the old ones. A
	// review from before that is made again when it is needed again.
	settled = 5 * time.Second
	// reviewLife is how long a review is good for although nothing changed that Ambit sees: an authorizer other than RBAC
	// may have.
	reviewLife = 10 * time.Minute
	// clusterReviewLife is the same for what is held in the cluster as a whole where nobody tells Ambit of changes there.
	clusterReviewLife = 5 * time.Second
	// maxReviews bounds what is remembered, and maxRuleBytes the different sets of rules in it, written as JSON: owners of
	// namespaces decide how many rules they grant, and authors of scopes how many accounts hold them.
	maxReviews   = 50_000
	maxRuleBytes = 4 << 20
	// maxTries bounds the dry runs in one namespace. A review that was right that often is believed: a scope that asks for five
	// hundred roles in a namespace that grants none must not cause five hundred requests.
	maxTries = 8
)

// reviews remembers what identities hold in namespaces. Losing it costs requests and nothing else.
type reviews struct {
	mu    sync.Mutex
	known map[reviewed]*review
	// rules are shared: an account mostly holds the same in all namespaces.
	rules map[[sha256.Size]byte][]rbacv1.PolicyRule
	// bytes is how large all rules are, written as JSON.
	bytes int
}

type reviewed struct {
	Identity

	namespace string
}

// review is what an identity holds in a namespace, and what the API server said to dry runs there.
type review struct {
	held  []rbacv1.PolicyRule
	taken time.Time
	// lacked says that somebody was found to lack something by it.
	lacked atomic.Bool

	mu       sync.Mutex
	verdicts map[string]bool
	// underWay are the writes from which it is to be learned.
	underWay int
	// wrong says that the API server accepted what the review does not cover, as an authorizer does that cannot say what it allows.
	// Then everything is tried, and refused or not when it is written.
	wrong bool
}

// review asks the API server what an identity may do in a namespace, or remembers what it said. It is the identity's own
// question: no right is needed to ask it.
func (a *Applier) review(ctx context.Context, id Identity, namespace string) (*review, error) {
	question := authority.Review(namespace)
	key, now := reviewed{id, question.Spec.Namespace}, a.Now()

	if r := a.remembered(key, now); r != nil {
		return r, nil
	}

	asking, err := a.as(id)
	if err != nil {
		return nil, err
	}

	err = a.askBounded(ctx, key, func(ctx context.Context) error { return asking.Create(ctx, question) })
	// What they wanted to do as somebody else is refused by the same kind of error (impersonation/mode.go in k8s.io/apiserver).
	mayNotAct := apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot impersonate")

	if mayNotAct && id.IsGranted() {
		return nil, &IdentityError{Why: "Ambit may not act as " + id.String() + ", to which the owners of members grant: " +
			"grant Ambit's account, in the namespace of that account, all that Role ambit-namespaced of config/rbac/namespaced has"}
	}

	if mayNotAct && id.User() != "" {
		return nil, &IdentityError{Why: "Ambit may not act as " + id.String() + ": it lacks the right to impersonate it. " +
			"In the profile namespaced, leave spec.serviceAccountName out of a NamespaceScope; an administrator names one that " +
			"installs, or an operator's, in Role ambit-namespaced-installs"}
	}

	// Whoever may do that much counts as one of whom nothing is known: each write is tried.
	if isTooLarge(err) {
		return a.reviews.keep(key, &review{taken: now}), nil
	}

	if err != nil {
		return nil, fmt.Errorf("asking what %s may do in namespace %s: %w", id, key.namespace, err)
	}

	return a.reviews.keep(key, &review{held: authority.Held(&question.Status), taken: now}), nil
}

// keep remembers a review, unless its rules are more than all that may be remembered.
func (r *reviews) keep(key reviewed, taken *review) *review {
	text, err := json.Marshal(taken.held)
	if err != nil || len(text) > maxRuleBytes {
		return taken
	}

	sum := sha256.Sum256(text)

	r.mu.Lock()
	defer r.mu.Unlock()

	same, found := r.rules[sum]

	// Everything is forgotten at once, and with it what is no longer in use.
	if !found && r.bytes+len(text) > maxRuleBytes || len(r.known) >= maxReviews {
		clear(r.rules)
		clear(r.known)

		r.bytes, found = 0, false
	}

	if found {
		taken.held = same
	} else {
		r.rules[sum] = taken.held
		r.bytes += len(text)
	}

	r.known[key] = taken

	return taken
}

func (a *Applier) remembered(key reviewed, now time.Time) *review {
	accountsOf, _, _ := scope.AccountOfUser(key.User())
	changed := a.store.PermissionsChangedAt(key.namespace, accountsOf)

	a.reviews.mu.Lock()
	defer a.reviews.mu.Unlock()

	r := a.reviews.known[key]
	life := reviewLife
	if a.ReviewOwn && key.namespace == scope.Cluster {
		life = clusterReviewLife
	}

	if r == nil || r.taken.Before(changed.Add(settled)) || now.After(r.taken.Add(life)) {
		return nil
	}

	// What Ambit itself wrote may be what the account lacked: the copies of another scope. Its own writes are many, so that a review
	// is made again only where something was lacking, and once, when the authorizer knows of them.
	if r.lacked.Load() {
		if learned := a.learnedAt(key.namespace); r.taken.Before(learned) && !now.Before(learned) {
			return nil
		}
	}

	return r
}

// isRefused says whether the API server refuses a write that the review does not cover, and whether it is sure of that. It asks
// by a dry run, and once only. As long as each that was tried was refused, it asks a few times and no more.
func (r *review) isRefused(what string, dryRun func() error) (is, sure bool) {
	r.lacked.Store(true)

	r.mu.Lock()
	defer r.mu.Unlock()

	if is, sure = r.judge(what); sure {
		return is, true
	}

	return r.note(what, dryRun())
}

// refuses says whether it was found out that the API server refuses a write that the review does not cover, or many others.
func (r *review) refuses(what string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	is, _ := r.judge(what)

	return is
}

// begin says whether such a write is made, from which learn hears. As long as none was allowed, few are under way at a time.
func (r *review) begin() bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	if r.underWay >= maxTries && !r.wrong {
		return false
	}

	r.underWay++

	return true
}

// learn takes what the API server answered to such a write for an answer to a dry run.
func (r *review) learn(what string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.underWay--
	r.note(what, err)
}

// judge is called with the lock held, and so is note.
func (r *review) judge(what string) (is, sure bool) {
	if is, sure = r.verdicts[what]; sure {
		return is, true
	}

	enough := len(r.verdicts) >= maxTries

	return enough && !r.wrong, enough
}

func (r *review) note(what string, err error) (is, sure bool) {
	is = lacksRights(err)
	if err != nil && !is && !isOfQuota(err) {
		return false, false
	}

	if r.verdicts == nil {
		r.verdicts = map[string]bool{}
	}

	r.verdicts[what] = is
	r.wrong = r.wrong || !is

	return is, true
}
