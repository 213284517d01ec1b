package installs_test

import (
	"fmt"
	"slices"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestUpgrade: the newer version takes over, and the older one goes once that runs; the operator is without permissions at no
// moment.
func TestUpgrade(t *testing.T) {
	w := begin(t, "cluster")
	crd := w.definition("olds", "Old")
	own, target := w.Namespace("own"), w.Namespace("target")
	w.group(own, targets(target))

	old := csv(own, "op.v1", owning(crd, "Old"), clusterPermissions("get nodes"))
	w.Make(old)
	w.succeeds(old)

	w.awaitCollector(own)

	gaps := w.Gaps(own, "op", "get secrets", target)
	newer := csv(own, "op.v2", owning(crd, "Old"), func(c *olm.ClusterServiceVersion) {
		c.Spec.Replaces = "op.v1"
		c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = "example.com/operator:2"
	})
	w.Make(newer)
	w.gone(old)
	w.succeeds(newer)
	w.MayNot(own, "op", "", "get nodes")

	if n, asked := gaps(); n > 0 || asked == 0 {
		t.Errorf("without permission %d of %d times", n, asked)
	}

	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "op"}}
	if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil ||
		d.Spec.Template.Spec.Containers[0].Image != "example.com/operator:2" || d.Labels["olm.owner"] != "op.v2" {
		t.Errorf("the Deployment is %+v (%v)", d, err)
	}
}

// TestUpgradeWaitsForTheRollout: a newer version that takes over the Deployment has not replaced the older one before its own
// pods run, and until then the older pods keep what they may.
func TestUpgradeWaitsForTheRollout(t *testing.T) {
	w := begin(t, "cluster")
	own := w.Namespace("own")
	w.group(own, targets(own))

	old := csv(own, "op.v1", clusterPermissions("get nodes"))
	w.Make(old)
	w.succeeds(old)
	w.May(own, "op", "", "get nodes")

	newer := csv(own, "op.v2", func(c *olm.ClusterServiceVersion) {
		c.Spec.Replaces = old.Name
		c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.NodeSelector = map[string]string{"no": "node"}
	})
	w.Make(newer)
	w.becomes(newer, olm.CSVPhaseInstalling, olm.CSVReasonWaiting, "waiting for deployment op to become ready", "replicas of before")
	w.becomes(old, olm.CSVPhaseReplacing, olm.CSVReasonBeingReplaced)

	if !w.Allowed(own, "op", "", "get nodes") {
		t.Error("the older version lost its permissions while its pods run")
	}

	w.Change(newer, func() {
		newer.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.NodeSelector = nil
	})
	w.succeeds(newer)
	w.gone(old)
	w.MayNot(own, "op", "", "get nodes")
}

// TestDeletionLeavesNothing looks for everything that an install made, in every namespace and in the cluster.
func TestDeletionLeavesNothing(t *testing.T) {
	w := begin(t, "cluster")
	own, a, b := w.Namespace("own"), w.Namespace("a"), w.Namespace("b")
	w.group(own, targets(a, b))

	op := csv(own, "op.v1", clusterPermissions("get nodes"))
	w.Make(op)
	w.succeeds(op)

	if n := len(w.made(op, own, a, b)); n < 10 {
		t.Errorf("looked for %d objects", n)
	}

	w.awaitCollector(own)

	w.Remove(op)
	w.Eventually("nothing is left", func() error {
		if left := w.made(op, own, a, b); len(left) > 0 {
			return fmt.Errorf("left are %q", left)
		}

		return nil
	})
}

// made lists what was made for a CSV.
func (w *world) made(c *olm.ClusterServiceVersion, namespaces ...string) []string {
	w.Helper()

	var out []string

	owner := "ClusterServiceVersion/" + c.Namespace + "/" + c.Name
	add := func(list client.ObjectList, options ...client.ListOption) {
		if err := w.Client.List(w.Context(), list, options...); err != nil {
			w.Fatal(err)
		}

		each(list, func(obj client.Object) {
			owned := slices.ContainsFunc(obj.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == c.UID })
			if owned || obj.GetAnnotations()["ambit.dev/owner"] == owner {
				out = append(out, fmt.Sprintf("%T %s/%s", obj, obj.GetNamespace(), obj.GetName()))
			}
		})
	}

	add(&rbacv1.ClusterRoleList{})
	add(&rbacv1.ClusterRoleBindingList{})

	for _, namespace := range namespaces {
		in := client.InNamespace(namespace)
		add(&rbacv1.RoleList{}, in)
		add(&rbacv1.RoleBindingList{}, in)
		add(&corev1.ServiceAccountList{}, in)
		add(&appsv1.DeploymentList{}, in)
	}

	return out
}
