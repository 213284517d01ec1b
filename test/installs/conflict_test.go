package installs_test

import (
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
	"github.com/ambit-k8s/ambit/test/younger"
)

// TestScopedConflict: an operator that runs goes on when its group comes to a namespace that another one serves, and gets nothing
// there; also where an account installs, which may do it.
func TestScopedConflict(t *testing.T) {
	w := begin(t, "delegated")
	crd := w.definition("rivals", "Rival")
	one, two, common, apart := w.Namespace("one"), w.Namespace("two"), w.Namespace("common"), w.Namespace("apart")
	a := w.served(one, crd, "Rival", common)
	b := w.served(two, crd, "Rival", apart)
	w.grant(two, common, "target-"+two, inTarget()...)

	d := &appsv1.Deployment{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: two, Name: "op"}, d); err != nil {
		t.Fatal(err)
	}

	second := w.groupIn(two)
	w.Change(second, func() { second.Spec.TargetNamespaces = []string{apart, common} })
	w.becomes(b, olm.CSVPhaseFailed, olm.CSVReasonInterOperatorGroupOwnerConflict, one+"/group")
	w.runsStill(d)
	w.May(two, "op", apart, "get secrets")

	if w.Allowed(two, "op", common, "get secrets") {
		t.Error("the second operator got permissions where the first one serves")
	}

	w.Remove(a)
	w.succeeds(b)
	w.May(two, "op", common, "get secrets")
	w.runsStill(d)
}

// served makes an operator that an account installs, which may, and waits until it serves a target.
func (w *world) served(own, crd, kind, target string) *olm.ClusterServiceVersion {
	w.Helper()
	w.scoped(own, target)
	w.makesGroupRoles(own)
	w.grant(own, own, "own", inTarget()...)
	w.grant(own, target, "target-"+own, inTarget()...)

	op := csv(own, "op.v1", owning(crd, kind))
	w.Make(op)
	w.succeeds(op)
	w.May(own, "op", target, "get secrets")

	return op
}

// runsStill holds that a Deployment is the one that it was.
func (w *world) runsStill(was *appsv1.Deployment) {
	w.Helper()

	now := &appsv1.Deployment{}
	if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(was), now); err != nil || now.UID != was.UID ||
		now.DeletionTimestamp != nil {
		w.Errorf("Deployment %s is gone, or another one: %v", was.Name, err)
	}
}

// TestAPIClaimedInAStrangersNamespace: who is for a namespace of somebody else's by name, and says that they bring the API there,
// neither takes down the operator that brings it nor keeps one out: not by a list in an older group, nor by a
// ClusterServiceVersion that cannot be installed, nor by an operator that runs in their own namespace and was let into no other,
// whatever else it holds in the cluster.
func TestAPIClaimedInAStrangersNamespace(t *testing.T) {
	w := begin(t, "delegated")
	crd := w.definition("prizes", "Prize")
	_, group, _ := strings.Cut(crd, ".")
	victim, later := w.Namespace("victim"), w.Namespace("later")

	claim := func(of string, edit func(*operatorsv1.OperatorGroup)) *operatorsv1.OperatorGroup {
		own := w.Namespace(of)
		w.Make(testbed.Account(own, "scoped"))
		w.makesGroupRoles(own)

		g := &operatorsv1.OperatorGroup{Spec: operatorsv1.OperatorGroupSpec{
			ServiceAccountName: "scoped", TargetNamespaces: []string{victim, later},
		}}
		g.Namespace, g.Name = own, "group"
		edit(g)
		w.Make(g)

		return g
	}
	annotated := func(g *operatorsv1.OperatorGroup) {
		g.Annotations = map[string]string{"olm.providedAPIs": "Prize.v1." + group}
	}

	old := claim("old", func(*operatorsv1.OperatorGroup) {})
	w.reaches(old, victim, later)
	younger.Than(w.World, old)

	op := w.served(victim, crd, "Prize", victim)

	d := &appsv1.Deployment{}
	if err := w.Client.Get(t.Context(), client.ObjectKey{Namespace: victim, Name: "op"}, d); err != nil {
		t.Fatal(err)
	}

	w.Change(old, func() { old.Spec.StaticProvidedAPIs = true; annotated(old) })
	static := claim("static", func(g *operatorsv1.OperatorGroup) { annotated(g); g.Spec.StaticProvidedAPIs = true })
	everywhere := claim("everywhere", func(g *operatorsv1.OperatorGroup) {
		annotated(g)
		g.Spec.StaticProvidedAPIs, g.Spec.TargetNamespaces = true, nil
	})
	w.reaches(static, victim, later)
	w.reaches(everywhere, "")

	// One that asks and is refused, and one that needs nothing in the namespaces of others.
	annotatedLater := func(g *operatorsv1.OperatorGroup) { annotated(g); g.Spec.TargetNamespaces = []string{later} }
	refused := csv(claim("refused", annotatedLater).Namespace, "op.v1", owning(crd, "Prize"))
	w.Make(refused)
	w.becomes(refused, olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "may not")

	empty := func(of string, edits ...func(*olm.ClusterServiceVersion)) {
		c := csv(claim(of, annotatedLater).Namespace, "op.v1", append(edits, owning(crd, "Prize"), func(c *olm.ClusterServiceVersion) {
			c.Spec.InstallStrategy.StrategySpec.Permissions = nil
			c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName = "default"
		})...)
		w.grant(c.Namespace, c.Namespace, "own", fineGrained...)
		w.give(c.Namespace, "cluster-"+c.Namespace, authority.Place{
			Rules: authority.Installing(""), Handed: []rbacv1.PolicyRule{testbed.Rule("get nodes")},
		})
		w.Make(c)
		w.Eventually("the stranger's operator runs", func() error {
			return w.Client.Get(t.Context(), client.ObjectKey{Namespace: c.Namespace, Name: "op"}, &appsv1.Deployment{})
		})
	}
	empty("empty")
	empty("nodes", clusterPermissions("get nodes"))

	// Whatever the claims do to an operator, they do when it is looked at.
	w.Change(op, func() { op.Spec.Description = "looked at"; op.Labels = map[string]string{"looked": "at"} })
	w.served(later, crd, "Prize", later)
	w.succeeds(op)
	w.May(victim, "op", victim, "get secrets")
	w.runsStill(d)
}
