package imports

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/snapshot"
	"github.com/ambit-k8s/ambit/internal/terminal"
)

func TestWhatATakeOverCannotSee(t *testing.T) {
	t.Parallel()

	namespaces := map[string]facts.Namespace{"open": {}, "shut": {Closed: "you may not read it"}, "going": {Terminating: true}}
	list := func(resource, namespace string) snapshot.Denied {
		return snapshot.Denied{Verb: "list", Resource: resource, Namespace: namespace}
	}

	for name, tc := range map[string]struct {
		reason string
		denied snapshot.Denied
		hides  bool
	}{
		"roles":          {"copies may be there", list("roles", "shut"), true},
		"bindings":       {"they are copies, too", list("rolebindings", "shut"), true},
		"pods":           {"nobody projects them", list("pods", "shut"), false},
		"going":          {"nothing is left there in a moment", list("roles", "going"), false},
		"not there":      {"nothing can be left there", list("roles", "none"), false},
		"in the cluster": {"IBM's operator projects into namespaces", list("clusterroles", ""), false},
	} {
		if got := unread(namespaces, []snapshot.Denied{tc.denied}); slices.Contains(got, tc.denied) != tc.hides {
			t.Errorf("%s: %s: got %v", name, tc.reason, got)
		}
	}
}

// TestPlacesOfTwoScopesAreNamedOnce: changes are sorted by scope first, so two scopes that share members name each of these
// twice, and not one after the other.
func TestPlacesOfTwoScopesAreNamedOnce(t *testing.T) {
	t.Parallel()

	var changes []predict.Change
	for _, namespace := range []string{"a", "a", "c", "a", "b", "c"} {
		changes = append(changes, predict.Change{Change: plan.Change{Namespace: namespace}})
	}

	if got, want := placesOf(changes), []string{"a", "b", "c"}; !slices.Equal(got, want) {
		t.Errorf("the places are %v, want %v", got, want)
	}
}

// TestWhatATakeOverMayNotDo: what would be refused is no step of a take-over, and is told with the reason.
func TestWhatATakeOverMayNotDo(t *testing.T) {
	t.Parallel()

	no := &predict.Refusal{Reason: "AuthorizationRequired", Message: "it may not"}
	restart := func(name string, refusal *predict.Refusal) predict.Restart {
		return predict.Restart{
			Restart: plan.Restart{Workload: facts.WorkloadRef{Kind: facts.Deployment, Name: name}}, Refusal: refusal,
		}
	}
	granted := func(namespace string, refusal *predict.Refusal) predict.Change {
		return predict.Change{
			Change: plan.Change{Namespace: namespace, Action: plan.Create}, Purpose: predict.Granted, Refusal: refusal,
		}
	}

	var out bytes.Buffer

	o := &Options{}
	o.Namespace, o.Out = "ops", terminal.NewWriter(&out)

	if err := o.showTakeOver(&predict.Prediction{
		Changes:  []predict.Change{granted("a", no), granted("b", nil)},
		Lists:    []predict.List{{Name: "one", Refusal: no}, {Name: "two", After: "b,ops"}},
		Restarts: []predict.Restart{restart("x", no), restart("y", nil)},
	}, nil); err != nil {
		t.Fatal(err)
	}

	_, steps, _ := strings.Cut(out.String(), "stop it first.\n")
	want := `1. Ambit creates 1 Roles and RoleBindings, beside those of IBM's operator: in b.
   Not written: ConfigMap one: AuthorizationRequired: it may not
2. Ambit creates the watch list ConfigMap two: b,ops.
   Not restarted: Deployment x: AuthorizationRequired: it may not
3. Deployment y restarts: `

	if !strings.HasPrefix(steps, want) {
		t.Errorf("%s\nwant\n%s", steps, want)
	}
}

// TestWhoRestartsForTheSameList: who began before IBM's operator wrote the list restarts, although it names the same namespaces.
func TestWhoRestartsForTheSameList(t *testing.T) {
	t.Parallel()

	list := &predict.List{Name: "one", Before: "b,a", After: "a,b", Existed: true, Exists: true}
	late := predict.Restart{Restart: plan.Restart{List: "one"}}

	if got := listing(list, []predict.Restart{late}); !strings.HasSuffix(got, "namespaces, and who began without it restarts.") {
		t.Error(got)
	}

	if got := listing(list, nil); !strings.HasSuffix(got, "the same namespaces, so nobody restarts for it.") {
		t.Error(got)
	}
}

// TestALateAnswerEndsNoTakeOver: what the API server does not answer within a request's timeout is asked again, for as long as
// somebody wants to wait. Before, that was told as if Ambit had not done anything in all the time.
func TestALateAnswerEndsNoTakeOver(t *testing.T) {
	t.Parallel()

	var out, errOut bytes.Buffer

	asked := 0
	server := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
			if asked++; asked == 1 {
				return fmt.Errorf("asking: %w", context.DeadlineExceeded)
			}

			return c.Get(ctx, key, obj, o...)
		},
	}).Build()

	o := Options{Timeout: time.Minute}
	o.Out, o.ErrOut = terminal.NewWriter(&out), terminal.NewWriter(&errOut)
	gone := predict.Change{Purpose: predict.Legacy, Change: plan.Change{
		Namespace: "member", Key: facts.ProjectedKey{Kind: projected.Role, Name: "gone"},
	}}

	err := o.awaitTakeOver(t.Context(), &reading.Cluster{Reader: snapshot.New(server)},
		&predict.Prediction{Changes: []predict.Change{gone}})
	if err != nil || asked != 2 || !strings.Contains(out.String(), "Done: nothing is left") {
		t.Errorf("asked %d times, it says %q, %v", asked, out.String(), err)
	}
}

// TestATakeOverOfManyIsSeen holds that the command sees when Ambit is done with thousands of members: it asks about many objects
// at once, and about none twice that is gone. One after the other, a look took longer than users wait, and what was gone long ago
// was told to be there.
func TestATakeOverOfManyIsSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const all, latency = 2000, 20 * time.Millisecond

		var out, errOut bytes.Buffer

		var asked atomic.Int64

		server := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
				asked.Add(1)

				select {
				case <-time.After(latency):
					return c.Get(ctx, key, obj, o...)
				case <-ctx.Done():
					return ctx.Err()
				}
			},
		}).Build()

		o := Options{Timeout: 10 * time.Second}
		o.Out, o.ErrOut = terminal.NewWriter(&out), terminal.NewWriter(&errOut)

		f := &predict.Prediction{}
		for i := range all {
			f.Changes = append(f.Changes, predict.Change{Purpose: predict.Legacy, Change: plan.Change{
				Namespace: "member-" + strconv.Itoa(i), Key: facts.ProjectedKey{Kind: projected.Role, Name: "gone"},
			}})
		}

		err := o.awaitTakeOver(t.Context(), &reading.Cluster{Reader: snapshot.New(server)}, f)
		if err != nil || asked.Load() != all || !strings.Contains(out.String(), "Done: nothing is left") {
			t.Errorf("asked %d times, it says %q, %v", asked.Load(), out.String(), err)
		}
	})
}
