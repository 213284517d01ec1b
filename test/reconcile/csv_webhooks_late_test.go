package reconcile_test

import (
	"net/http"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestWebhooksStayWhileTheAPIServerIsSlow: what an operator checks in a target goes on being checked while a permission there is
// late. It ends where the permission is refused, and does not begin in a new target before its permissions are there.
func TestWebhooksStayWhileTheAPIServerIsSlow(t *testing.T) {
	t.Parallel()

	const inThree = `{"targetNamespaces":["a>","b>","ops>"]}`

	kept := []string{validating}
	moreRules := func(w *world) {
		w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) {
			p := &c.Spec.InstallStrategy.StrategySpec.Permissions[0]
			p.Rules = append(p.Rules, testbed.Rule("get configmaps"))
		})
	}
	unbound := func(w *world) {
		if err := w.client.DeleteAllOf(w.Context(), &rbacv1.RoleBinding{},
			client.InNamespace(w.ns("a")), client.HasLabels{scope.LabelScope}); err != nil {
			w.Fatal(err)
		}
	}

	for name, tc := range map[string]struct {
		change        func(w *world)
		late          string
		status        int
		during, after []string
	}{
		"more rules": {moreRules, "create roles a", http.StatusInternalServerError, kept, kept},
		"a permission that somebody deleted": {
			unbound, "create rolebindings a", http.StatusInternalServerError, kept, kept,
		},
		"one that is refused": {
			unbound, "create rolebindings a", http.StatusForbidden, []string{strings.Replace(validating, "(a,ops)", "(ops)", 1)}, kept,
		},
		"a target that came": {
			func(w *world) { w.regroup(inThree) }, "create rolebindings b", http.StatusInternalServerError, kept,
			[]string{strings.Replace(validating, "(a,ops)", "(a,b,ops)", 1)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := consulting(t)

			refused, refusal := 0, refusingAll(tc.late, tc.status)
			w.refuses = func(what string) int {
				status := refusal(what)
				if status != 0 {
					refused++
				}

				return status
			}

			tc.change(w)

			for range 4 {
				w.groupOnce()
			}

			is(w, "what is asked meanwhile", w.consulted(), tc.during)
			is(w, "something is late", refused > 0, true)

			w.refuses = nil
			w.reconcileGroup()
			is(w, "what is asked after", w.consulted(), tc.after)
		})
	}
}

// TestWhatFailsBesideWebhooksIsTriedAgain: that Secrets are to be looked at in minutes does not put off another try of a write
// that was refused, or that somebody else was before.
func TestWhatFailsBesideWebhooksIsTriedAgain(t *testing.T) {
	t.Parallel()

	for name, status := range map[string]int{"refused": http.StatusForbidden, "overtaken": http.StatusConflict} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := consulting(t)
			w.refuses = refusing("patch deployments ops/op", status)
			w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) {
				c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = "registry.example.com/op:2"
			})

			var last call
			for range 4 {
				last = w.groupOnce()
			}

			//nolint:staticcheck // That is what asks for the back-off.
			if last.err != nil || !last.Requeue || last.RequeueAfter > 0 {
				t.Errorf("it is not tried again with the back-off: %+v", last)
			}

			w.refuses = nil
			w.reconcileGroup()
			is(w, "image", w.live("op").Spec.Template.Spec.Containers[0].Image, "registry.example.com/op:2")
		})
	}
}
