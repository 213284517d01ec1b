package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// Authorizer knows what each writer holds in each namespace of the plans. The API server was asked as each writer, which takes
// the right to impersonate them. Where the caller lacks it, nothing is said to be refused, and the reader remembers that.
type Authorizer struct {
	manager predict.Manager
	writers map[scope.Owner]writer.Identity
	// ask asks what a writer holds in a place that no plan named beforehand.
	ask func(place) (held []rbacv1.PolicyRule, known bool, err error)

	mu   sync.Mutex
	held map[place]answer
}

// answer is what somebody holds, where that is known.
type answer struct {
	rules []rbacv1.PolicyRule
	known bool
}

// place is a user in a namespace.
type place struct{ user, namespace string }

// Authorizer asks what the writers of plans hold.
func (r *Reader) Authorizer(
	ctx context.Context, config *rest.Config, m predict.Manager, plans []plan.Plan, operatorNamespaces []*facts.Facts,
) (*Authorizer, error) {
	j := &Authorizer{manager: m, writers: map[scope.Owner]writer.Identity{}, held: map[place]answer{}}

	var places []place

	for i := range plans {
		for k := range plans[i].Scopes {
			sp := &plans[i].Scopes[k]
			in := &operatorNamespaces[i].OperatorNamespace
			j.writers[sp.Scope.Owner] = m.Writers().Of(sp.Scope, in)

			if user := j.userOf(sp.Scope); user != "" {
				places = append(places, place{user, sp.Scope.Key.Namespace})

				// Webhooks are in no namespace.
				if sp.Scope.TouchesCSVs() {
					places = append(places, place{user, ""})
				}
			}

			if user := j.userInMembers(sp.Scope); user != "" {
				for _, ns := range namespacesOf(sp) {
					places = append(places, place{user, ns})
				}
			}
		}
	}

	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.user, b.user), cmp.Compare(a.namespace, b.namespace))
	})
	places = slices.Compact(places)

	return j, r.askAll(ctx, config, j, places)
}

func namespacesOf(s *plan.ScopePlan) []string {
	out := slices.Clone(s.Members)

	for _, changes := range [][]plan.Change{s.Revoke, s.Prune, s.Retire, s.Legacy} {
		for i := range changes {
			out = append(out, changes[i].Namespace)
		}
	}

	return out
}

func (r *Reader) askAll(ctx context.Context, config *rest.Config, j *Authorizer, places []place) error {
	clients := map[string]client.Client{} // Nil for users as whom the caller may not act.

	var mu sync.Mutex

	as := func(user string) (client.Client, error) {
		mu.Lock()
		defer mu.Unlock()

		if c, known := clients[user]; c != nil {
			return c, nil
		} else if known {
			return nil, ErrMayNotAsk
		}

		c, err := r.As(ctx, config, user)
		if err == nil || errors.Is(err, ErrMayNotAsk) {
			clients[user] = c
		}

		return c, err
	}

	j.ask = func(p place) ([]rbacv1.PolicyRule, bool, error) {
		var held []rbacv1.PolicyRule

		c, err := as(p.user)
		if err == nil {
			held, err = HeldIn(ctx, c, p.namespace)
		}

		if errors.Is(err, ErrMayNotAsk) {
			// Whether Ambit may act as others, an owner of one namespace need neither ask nor decide.
			if p.user != j.manager.Writers().User || j.manager.Self() != "" {
				r.Deny(Denied{Verb: "impersonate", Resource: "user " + p.user + ", so what it may do was not asked,"})
			}

			return nil, false, nil
		}

		return held, err == nil, err
	}

	return r.Each(ctx, "asking what may be written", len(places), func(i int) error {
		held, known, err := j.ask(places[i])

		mu.Lock()
		defer mu.Unlock()

		j.held[places[i]] = answer{held, known}

		return err
	})
}

// As returns a client that acts as somebody else, or ErrMayNotAsk where the caller is known to lack the right to.
func (r *Reader) As(ctx context.Context, config *rest.Config, user string, groups ...string) (client.Client, error) {
	if may, err := r.mayActAs(ctx, config, user, groups); err != nil {
		return nil, err
	} else if !may {
		return nil, ErrMayNotAsk
	}

	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}

	c, err := client.New(as, client.Options{Scheme: r.Scheme(), Mapper: r.RESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("reaching the cluster as %s: %w", user, err)
	}

	return c, nil
}

// mayActAs says whether the caller may act as somebody, as far as that is not found out by trying. A caller who acts as somebody
// already, by --as, cannot try: a request is made as one user, so it would be allowed by the rights of whoever is behind that.
func (r *Reader) mayActAs(ctx context.Context, config *rest.Config, user string, groups []string) (bool, error) {
	switch {
	case r.MayActAs != nil:
		return r.MayActAs(ctx, user)
	case config.Impersonate.UserName == "":
		return true, nil
	}

	resource, namespace, name := scope.Impersonated(user)
	asked := []authorizationv1.ResourceAttributes{{Resource: resource, Namespace: namespace, Name: name}}

	for _, group := range groups {
		asked = append(asked, authorizationv1.ResourceAttributes{Resource: "groups", Name: group})
	}

	for i := range asked {
		asked[i].Verb = "impersonate"
		review := &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &asked[i]},
		}

		if err := r.Create(ctx, review); err != nil {
			return false, fmt.Errorf("asking whether you may act as %s: %w", user, err)
		}

		if !review.Status.Allowed {
			return false, nil
		}
	}

	return true, nil
}

// ErrMayNotAsk is returned when the caller may not act as somebody else.
var ErrMayNotAsk = errors.New("you may not impersonate them")

// HeldIn returns the rules that the client's user holds in a namespace.
func HeldIn(ctx context.Context, c client.Client, namespace string) ([]rbacv1.PolicyRule, error) {
	review := authority.Review(namespace)

	err := c.Create(ctx, review)
	if apierrors.IsForbidden(err) {
		return nil, ErrMayNotAsk
	}

	if err != nil {
		return nil, fmt.Errorf("asking what may be done in namespace %s: %w", review.Spec.Namespace, err)
	}

	return authority.Held(&review.Status), nil
}

// userInMembers is userOf in members.
func (j *Authorizer) userInMembers(s *scope.Scope) string {
	return j.nameOf(j.writers[s.Owner].InMembers())
}

// userOf is the user that writes for a scope in the operator namespace, if the API server has to be asked what that user may do;
// otherwise empty.
func (j *Authorizer) userOf(s *scope.Scope) string { return j.nameOf(j.writers[s.Owner]) }

func (j *Authorizer) nameOf(id writer.Identity) string {
	if id.IsOwn() {
		return j.manager.Self()
	}

	return id.User()
}

// Nobody says why nobody writes for a scope; empty when somebody does.
func (j *Authorizer) Nobody(owner scope.Owner) string { return j.writers[owner].Why() }

// Holds is what a user holds in a namespace, where that is known.
func (j *Authorizer) Holds(user, namespace string) (held []rbacv1.PolicyRule, known bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()

	at := place{user, namespace}
	if was, asked := j.held[at]; asked || j.ask == nil {
		return was.rules, was.known, nil
	}

	if held, known, err = j.ask(at); err == nil {
		j.held[at] = answer{held, known}
	}

	return held, known, err
}
