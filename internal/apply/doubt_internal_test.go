package apply

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// refusing is an API server that refuses every write, after a time, and says so when it is asked; unless it fails, or refuses
// that as well.
type refusing struct {
	client.Client

	forbids string
	// quota says that it is an exhausted quota that refuses a write.
	quota bool

	after  time.Duration
	fails  atomic.Bool
	writes atomic.Int64
}

func (s *refusing) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if review, is := obj.(*authorizationv1.SelfSubjectRulesReview); is {
		if s.fails.Load() {
			return apierrors.NewInternalError(errors.ErrUnsupported)
		}

		if s.forbids != "" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "selfsubjectrulesreviews"}, "", errors.New(s.forbids))
		}

		review.Status.ResourceRules = []authorizationv1.ResourceRule{{Verbs: []string{"get"}, APIGroups: []string{""}}}

		return nil
	}

	options := client.CreateOptions{}
	if options.ApplyOptions(opts); len(options.DryRun) == 0 {
		s.writes.Add(1)
	}

	select {
	case <-time.After(s.after):
		if s.quota {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, obj.GetName(),
				errors.New("exceeded quota: few, requested: count/roles.rbac.authorization.k8s.io=1"))
		}

		return apierrors.NewForbidden(schema.GroupResource{Resource: "roles"}, obj.GetName(), errors.ErrUnsupported)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// manyRoles is a plan to make Roles in members.
func manyRoles(members, roles int) *plan.Plan {
	s := plan.ScopePlan{Scope: &scope.Scope{}}

	for i := range roles {
		name := fmt.Sprint("r", i)
		s.Copies = append(s.Copies, plan.Copy{SourceRole: name, Object: projected.Object{
			Kind: projected.Role, Name: name, Slot: name, ScopeHash: "test", Owner: "test", Source: "test",
			Rules: []rbacv1.PolicyRule{{APIGroups: []string{name}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}}},
		}})
	}

	for m := range members {
		for i := range s.Copies {
			c := &s.Copies[i]
			s.Grant = append(s.Grant, plan.Change{
				Action: plan.Create, Namespace: fmt.Sprint("m", m), Copy: c,
				Key: facts.ProjectedKey{Kind: c.Kind, Name: fmt.Sprint(c.Name, "-", m)},
			})
		}
	}

	return &plan.Plan{Key: scope.NamespaceScopes.In("ops"), Scopes: []plan.ScopePlan{s}}
}

// outcome are the failures of a plan by what they say.
func (s *refusing) outcome(ctx context.Context, a *Applier, p *plan.Plan) (missing, unanswered, other int) {
	delegate := writer.ServiceAccount("ops", "delegate")

	for _, f := range a.ApplyWith(ctx, p, []Identity{delegate}, delegate).Scopes[0].Failures {
		lacks, is := errors.AsType[*MissingError](f.Err)

		switch {
		case is && len(lacks.All) > 0:
			missing++
		case errors.Is(f.Err, ErrUnanswered):
			unanswered++
		default:
			other++
		}
	}

	return missing, unanswered, other
}

// TestRefusalsThatComeLateAreLearned: where an API server takes longer to answer than anything waits, what it refuses tells of
// the rest all the same. Otherwise each plan would make all refused writes again, and nobody would be told what is missing.
func TestRefusalsThatComeLateAreLearned(t *testing.T) {
	t.Parallel()

	const members, roles = 5, 100

	synctest.Test(t, func(t *testing.T) {
		server := &refusing{after: memberWait + memberWait/3}
		a := newApplier(func(Identity) (client.Client, error) { return server, nil }, quiet{}, 16)
		a.Late = func(scope.Key) {}

		var missing, unanswered, other int

		for range 3 {
			missing, unanswered, other = server.outcome(t.Context(), a, manyRoles(members, roles))

			time.Sleep(2 * server.after)
		}

		if missing != members*roles {
			t.Errorf("missing is told of %d, no answer of %d, something else of %d; want all %d missing",
				missing, unanswered, other, members*roles)
		}

		if n := server.writes.Load(); n > members*maxTries {
			t.Errorf("the API server refused %d writes", n)
		}
	})
}

// TestQuotaIsNoLackOfRights: an authorizer lets an account do what no review shows, and a quota is exhausted. What is told is
// the quota, and nothing keeps the account from trying again once that has room.
func TestQuotaIsNoLackOfRights(t *testing.T) {
	t.Parallel()

	server := &refusing{quota: true}
	a, p := newApplier(func(Identity) (client.Client, error) { return server, nil }, quiet{}, 16), manyRoles(2, 20)

	for range 2 {
		before := server.writes.Load()

		missing, unanswered, other := server.outcome(t.Context(), a, p)
		if n := server.writes.Load() - before; missing+unanswered > 0 || other != 40 || n != 40 {
			t.Errorf("missing is told of %d, no answer of %d, the quota of %d, after %d writes; want the quota of all 40",
				missing, unanswered, other, n)
		}
	}
}

// TestNothingIsMadeUnasked: where the API server does not say what an account may do, nothing is made as that account, until it
// does.
func TestNothingIsMadeUnasked(t *testing.T) {
	t.Parallel()

	const members, roles = 20, 100

	server := &refusing{}
	a := newApplier(func(Identity) (client.Client, error) { return server, nil }, quiet{}, 16)

	server.fails.Store(true)

	if _, _, other := server.outcome(t.Context(), a, manyRoles(members, roles)); other != members*roles || server.writes.Load() > 0 {
		t.Errorf("of %d Roles, %d fail since nobody answers; %d writes", members*roles, other, server.writes.Load())
	}

	server.fails.Store(false)

	missing, _, _ := server.outcome(t.Context(), a, manyRoles(members, roles))
	if missing != members*roles || server.writes.Load() > 0 {
		t.Errorf("of %d Roles, %d miss something; %d writes", members*roles, missing, server.writes.Load())
	}
}

// TestWhoMayNotAsk: an account that may not ask what it may do is somebody all the same, and needs another remedy than an Ambit
// that may not act as the account.
func TestWhoMayNotAsk(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		forbids, says string
		nobody        bool
	}{
		"may not ask": {
			`User "system:serviceaccount:ops:delegate" cannot create resource "selfsubjectrulesreviews" in API group ` +
				`"authorization.k8s.io" at the cluster scope`,
			"bind ClusterRole system:basic-user", false,
		},
		"may not ask, whatever it is called": {
			`User "system:serviceaccount:ops:impersonator" cannot create resource "selfsubjectrulesreviews" in API group ` +
				`"authorization.k8s.io" at the cluster scope`,
			"bind ClusterRole system:basic-user", false,
		},
		"a webhook refuses": {"admission webhook x denied the request", "admission webhook x denied", false},
		"may not act": {
			`User "system:serviceaccount:ambit-system:ambit" cannot impersonate resource "serviceaccounts" in API group ""`,
			"an administrator names one that installs, or an operator's, in Role ambit-namespaced-installs", true,
		},
		"may not act and ask": {
			`User "system:serviceaccount:ambit-system:ambit" cannot impersonate-on:serviceaccount:create resource ` +
				`"selfsubjectrulesreviews" in API group "authorization.k8s.io"`,
			"it lacks the right to impersonate it", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			server := &refusing{forbids: tc.forbids}
			a := newApplier(func(Identity) (client.Client, error) { return server, nil }, quiet{}, 1)

			_, err := a.review(t.Context(), writer.ServiceAccount("ops", "delegate"), "m")
			if is := errors.Is(err, ErrNoIdentity); is != tc.nobody || !strings.Contains(Message(err), tc.says) {
				t.Errorf("nobody is %t: %s", is, Message(err))
			}
		})
	}
}
