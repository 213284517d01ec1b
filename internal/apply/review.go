package apply

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/ambit-k8s/ambit/internal/authority"
)

const (
	// settled is how long after a change of permissions the API server's own authorizer may still go by the old ones. A
	// review from before that is made again when it is needed again.
	settled = 5 * time.Second
	// reviewLife is how long a review is good for although nothing changed that Ambit sees: an authorizer other than RBAC
	// may have.
	reviewLife = 10 * time.Minute
	// maxRules bounds the different sets of rules that are remembered.
	maxRules = 1000
)

// reviews remembers what identities hold in namespaces. Losing it costs requests and nothing else.
type reviews struct {
	mu    sync.Mutex
	known map[reviewed]*review
	// rules are shared: an account mostly holds the same in all namespaces.
	rules map[[sha256.Size]byte][]rbacv1.PolicyRule
}

type reviewed struct {
	Identity

	namespace string
}

// review is what an identity holds in a namespace, and what the API server said to dry runs there.
type review struct {
	held  []rbacv1.PolicyRule
	taken time.Time

	mu       sync.Mutex
	verdicts map[string]error
}

// review asks the API server what an identity may do in a namespace, or remembers what it said. It is the identity's own
// question: no right is needed to ask it.
func (a *Applier) review(ctx context.Context, id Identity, namespace string) (*review, error) {
	key, now := reviewed{id, namespace}, time.Now()
	if r := a.remembered(key, now); r != nil {
		return r, nil
	}

	asking, err := a.as(id)
	if err != nil {
		return nil, err
	}

	question := &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}
	err = asking.Create(ctx, question)
	if apierrors.IsForbidden(err) && id.user != "" {
		// Everybody may ask about themselves, so what is forbidden is to be somebody else.
		return nil, &IdentityError{Why: "Ambit may not act as " + id.String() + ": it lacks the right to impersonate it. " +
			"In the profile namespaced, leave spec.serviceAccountName out: Ambit has no rights there but those granted to it"}
	}

	if err != nil {
		return nil, fmt.Errorf("asking what %s may do in namespace %s: %w", id, namespace, err)
	}

	r := &review{held: a.reviews.shared(authority.Held(&question.Status)), taken: now, verdicts: map[string]error{}}

	a.reviews.mu.Lock()
	defer a.reviews.mu.Unlock()

	a.reviews.known[key] = r

	return r, nil
}

func (a *Applier) remembered(key reviewed, now time.Time) *review {
	changed := a.store.PermissionsChangedAt(key.namespace)

	a.reviews.mu.Lock()
	defer a.reviews.mu.Unlock()

	r := a.reviews.known[key]
	if r == nil || r.taken.Before(changed.Add(settled)) || now.After(r.taken.Add(reviewLife)) {
		return nil
	}

	return r
}

func (r *reviews) shared(rules []rbacv1.PolicyRule) []rbacv1.PolicyRule {
	text, err := json.Marshal(rules)
	if err != nil {
		return rules
	}

	key := sha256.Sum256(text)

	r.mu.Lock()
	defer r.mu.Unlock()

	// What is no longer in use is let go with the whole, before it could become much.
	if len(r.rules) >= maxRules {
		clear(r.rules)
		clear(r.known)
	}

	if same, found := r.rules[key]; found {
		return same
	}

	r.rules[key] = rules

	return rules
}

// try asks the API server, by a dry run and once only, whether it would accept a write.
func (r *review) try(what string, dryRun func() error) error {
	r.mu.Lock()
	defer r.mu.Unlock()

	verdict, tried := r.verdicts[what]
	if !tried {
		verdict = dryRun()
		if verdict == nil || apierrors.IsForbidden(verdict) {
			r.verdicts[what] = verdict
		}
	}

	return verdict
}
