package apply

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// trying is an API server that holds nothing for anybody, and answers to the dry run of a list with an error, after a time.
type trying struct {
	refusing

	answer error
}

func (s *trying) Patch(ctx context.Context, _ client.Object, _ client.Patch, _ ...client.PatchOption) error {
	select {
	case <-time.After(s.after):
		return s.answer
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TestNobodyEntersASharedListUnasked: of scopes that share a list and have different writers, one whose writer may not write it
// is barred, and so is one of which the API server does not say that in time. Whoever may write it by another authorizer than
// RBAC is not, also where what is written is refused for another reason.
func TestNobodyEntersASharedListUnasked(t *testing.T) {
	t.Parallel()

	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "l", errors.ErrUnsupported)

	for name, tc := range map[string]struct {
		after  time.Duration
		answer error
		barred bool
		class  Class
	}{
		"it may not":                  {answer: forbidden, barred: true, class: Refused},
		"the answer is late":          {after: 2 * longTime, barred: true, class: Transient},
		"the API server fails":        {answer: apierrors.NewInternalError(errors.ErrUnsupported), barred: true, class: Transient},
		"it may":                      {},
		"it may, and it is not valid": {answer: apierrors.NewBadRequest("no")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			synctest.Test(t, func(t *testing.T) {
				server := &trying{refusing: refusing{after: tc.after}, answer: tc.answer}
				a := newApplier(func(Identity) (client.Client, error) { return server, nil }, quiet{}, 1)
				scopes := []scope.Scope{{Owner: scope.Owner{Name: "one"}, WatchList: "l"}, {Owner: scope.Owner{Name: "two"}, WatchList: "l"}}

				barred := a.Bar(t.Context(), "ops", scopes, func(s *scope.Scope) Identity {
					return writer.ServiceAccount("ops", s.Owner.Name)
				})

				for i := range scopes {
					why := barred[scopes[i].Owner]
					if scopes[i].Barred != tc.barred || (why != nil) != tc.barred || why != nil && Classify(why) != tc.class {
						t.Errorf("%s is barred %t: %v", scopes[i].Owner.Name, scopes[i].Barred, why)
					}
				}
			})
		})
	}
}
