package installs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestRequirements: an operator waits for the definitions that it needs, and says which.
func TestRequirements(t *testing.T) {
	w := begin(t, "cluster")
	own := w.Namespace("own")
	missing := "absents.g" + strings.ReplaceAll(own, "-", "") + ".example.com"
	there := w.definition("presents", "Present")
	// A group that does not have its namespaces yet would be one more thing for the operator to wait for.
	w.reaches(w.group(own, targets(own)), own)

	op := csv(own, "op.v1", owning(there, "Present"), owning(missing, "Absent"), func(c *olm.ClusterServiceVersion) {
		c.Spec.MinKubeVersion = "99.0.0"
	})
	w.Make(op)
	w.becomes(op, olm.CSVPhasePending, olm.CSVReasonRequirementsNotMet, missing, "minKubeVersion is 99.0.0")

	// A definition just made is served a moment later, and the first report may come before that.
	w.Eventually("the requirements are told one by one", func() error {
		if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(op), op); err != nil {
			return err
		}

		told := map[string]olm.StatusReason{}
		for _, s := range op.Status.RequirementStatus {
			told[s.Name] = s.Status
		}
		if told[there] != olm.RequirementStatusReasonPresent || told[missing] != olm.RequirementStatusReasonNotPresent ||
			told[op.Name] != olm.RequirementStatusReasonPresentNotSatisfied {
			return fmt.Errorf("requirements are %+v", op.Status.RequirementStatus)
		}

		return nil
	})

	if w.Allowed(own, "op", own, "get secrets") {
		t.Error("permissions came before the requirements were met")
	}

	w.Change(op, func() {
		op.Spec.MinKubeVersion = "1.20.0"
		op.Spec.CustomResourceDefinitions.Owned = nil
		op.Spec.CustomResourceDefinitions.Required = []olm.CRDDescription{{Name: there, Version: "v2", Kind: "Present"}}
	})
	w.becomes(op, olm.CSVPhasePending, olm.CSVReasonRequirementsNotMet, there+" (v2)")
	w.Change(op, func() { op.Spec.CustomResourceDefinitions.Required = nil })
	w.succeeds(op)

	phases := make([]string, 0, len(op.Status.Conditions))
	for _, c := range op.Status.Conditions {
		phases = append(phases, string(c.Phase))
	}

	if got := strings.Join(slices.Compact(phases), " "); got != "Pending InstallReady Installing Succeeded" {
		t.Errorf("it went through %s", got)
	}
}

// TestNotSupported: what a CSV defines and Ambit does not set up is waited for, and said.
func TestNotSupported(t *testing.T) {
	w := begin(t, "cluster")
	own := w.Namespace("own")
	w.group(own, targets(own))

	op := csv(own, "op.v1")
	w.Make(op)
	w.succeeds(op)

	w.Change(op, func() {
		op.Spec.APIServiceDefinitions.Owned = []olm.APIServiceDescription{{
			Name: "x", Group: "api.example.com", Version: "v1", Kind: "X", DeploymentName: "op",
		}}
	})
	w.becomes(op, olm.CSVPhasePending, olm.CSVReasonRequirementsNotMet, "v1.api.example.com", "sets up no apiservices")
}

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

	gaps := w.gaps(own, "op", target, "get secrets")
	newer := csv(own, "op.v2", owning(crd, "Old"), func(c *olm.ClusterServiceVersion) {
		c.Spec.Replaces = "op.v1"
		c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = "example.com/operator:2"
	})
	w.Make(newer)
	w.gone(old)
	w.succeeds(newer)
	w.MayNot(own, "op", "", "get nodes")

	if n := gaps(); n > 0 {
		t.Errorf("without permission %d times", n)
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

// gaps keeps asking whether an account may do something; the function that it returns ends that and says how often not.
func (w *world) gaps(ops, account, namespace, words string) func() int {
	stop, out := make(chan struct{}), make(chan int)

	go func() {
		defer close(out)

		n := 0

		for {
			select {
			case <-w.Context().Done():
				return
			case <-stop:
				out <- n

				return
			case <-time.After(5 * time.Millisecond):
			}

			if allowed, err := w.Review(ops, account, namespace, words); err == nil && !allowed {
				n++
			}
		}
	}()

	return func() int {
		close(stop)

		return <-out
	}
}

// TestReplacementThatFails: the older version goes on as long as the newer one does not run.
func TestReplacementThatFails(t *testing.T) {
	w := begin(t, "cluster")
	own := w.Namespace("own")
	w.group(own, targets(own))

	old := csv(own, "op.v1")
	w.Make(old)
	w.succeeds(old)

	newer := csv(own, "op.v2", owning("absents.example.com", "Absent"))
	newer.Spec.Replaces = "op.v1"
	w.Make(newer)
	w.becomes(old, olm.CSVPhaseReplacing, olm.CSVReasonBeingReplaced, "being replaced by csv: op.v2")
	w.becomes(newer, olm.CSVPhasePending, olm.CSVReasonRequirementsNotMet)
	w.May(own, "op", own, "get secrets")

	w.Remove(newer)
	w.succeeds(old)
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

// TestDrift: what somebody changes of an operator's Deployment is put back, and an unchanged world costs no write.
func TestDrift(t *testing.T) {
	w := begin(t, "cluster")
	own := w.Namespace("own")
	w.group(own, targets(own))

	op := csv(own, "op.v1")
	w.Make(op)
	w.succeeds(op)

	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "op"}}
	w.Change(d, func() { d.Spec.Template.Spec.ServiceAccountName = "default" })
	w.Eventually("the Deployment is as it was", func() error {
		if err := w.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}

		if got := d.Spec.Template.Spec.ServiceAccountName; got != "op" {
			return fmt.Errorf("it runs as %s", got)
		}

		return nil
	})

	w.Remove(d)
	w.Eventually("the Deployment is back", func() error { return w.Client.Get(t.Context(), client.ObjectKeyFromObject(d), d) })
	w.succeeds(op)
}
