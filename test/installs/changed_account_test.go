package installs_test

import (
	"fmt"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestAccountThatTakesOver: a group names another account, which may not delete what the former one gave. The version says so,
// the command that it names prints what grants that, and Ambit deletes it once it is granted.
func TestAccountThatTakesOver(t *testing.T) {
	beds.Together(t)

	permissions := func(w *world, op *olm.ClusterServiceVersion, rules ...string) {
		w.Change(op, func() {
			all := &op.Spec.InstallStrategy.StrategySpec.Permissions
			if (*all)[0].Rules = nil; len(rules) == 0 {
				*all = nil
			}

			for _, rule := range rules {
				(*all)[0].Rules = append((*all)[0].Rules, testbed.Rule(rule))
			}
		})
	}

	for name, tc := range map[string]struct {
		then func(w *world, g *operatorsv1.OperatorGroup, op *olm.ClusterServiceVersion)
		may  string
	}{
		"a target leaves": {func(w *world, g *operatorsv1.OperatorGroup, _ *olm.ClusterServiceVersion) {
			w.Change(g, func() { g.Spec.TargetNamespaces = []string{g.Namespace} })
		}, ""},
		"the permissions of the version go": {func(w *world, _ *operatorsv1.OperatorGroup, op *olm.ClusterServiceVersion) {
			permissions(w, op)
		}, ""},
		"the permissions of the version grow": {func(w *world, _ *operatorsv1.OperatorGroup, op *olm.ClusterServiceVersion) {
			permissions(w, op, "get,list secrets", "get,list services")
		}, "get secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, "delegated")
			own, a := w.Namespace("own"), w.Namespace("a")
			g := w.scoped(own, own, a)
			w.Make(testbed.Account(own, "other"))

			for _, namespace := range []string{own, a} {
				w.grant(own, namespace, "scoped", inTarget()...)

				mayNotDelete := testbed.Role(namespace, "other")
				mayNotDelete.Rules = append([]rbacv1.PolicyRule{testbed.Rule("get,list secrets"), testbed.Rule("get,list services")},
					fineGrained...)
				w.Make(mayNotDelete, testbed.Bind(namespace, "Role", "other", own, "other"))
			}

			op := csv(own, "op.v1")
			w.Make(op)
			w.succeeds(op)
			w.May(own, "op", a, "get secrets")

			w.Change(g, func() { g.Spec.ServiceAccountName = "other" })
			// What goes before Ambit has heard of that is deleted as the account that was named until then.
			w.Eventually("Ambit has heard of the other account", func() error {
				err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(g), g)
				if ref := g.Status.ServiceAccountRef; err == nil && (ref == nil || ref.Name != "other") {
					return fmt.Errorf("the account is %+v", ref)
				}

				return err
			})
			tc.then(w, g, op)
			w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "error deleting ",
				"service account "+own+"/other may not delete", "ambit preflight csv/op.v1 -n "+own)
			w.preflightNames(op, "delete roles named op.v1-op-")
			w.succeeds(op)

			if tc.may == "" {
				w.MayNot(own, "op", a, "get secrets")
			} else {
				w.May(own, "op", a, tc.may)
			}
		})
	}
}

// TestAnotherAccountLearnsAllThatItLacks: of an operator that runs, little is written anew, and the first refusal is that of one
// small read. The version says all that the account lacks all the same.
func TestAnotherAccountLearnsAllThatItLacks(t *testing.T) {
	w := begin(t, "cluster")
	own, a := w.Namespace("own"), w.Namespace("a")
	g := w.scoped(own, a)
	op := csv(own, "op.v1", asking("v.example.com"))

	for i, place := range install.Needs(op, own, []string{a}) {
		w.give(own, fmt.Sprintf("asked-%d-%s", i, own), place)
	}

	w.Make(op, testbed.Account(own, "other"))
	w.succeeds(op)
	w.Change(g, func() { g.Spec.ServiceAccountName = "other" })
	w.becomes(op, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "validatingwebhookconfigurations", "in the cluster",
		"in namespace "+a, "ambit preflight csv/op.v1 -n "+own)
}
