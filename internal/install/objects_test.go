package install

import (
	"errors"
	"slices"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/ambit-k8s/ambit/internal/facts"
)

func TestAccountsToWrite(t *testing.T) {
	t.Parallel()

	one, two := member("op.v1"), member("op.v2")
	running := func(account string) func(*olm.ClusterServiceVersion) {
		return func(c *olm.ClusterServiceVersion) {
			strategy := &c.Spec.InstallStrategy.StrategySpec
			strategy.Permissions[0].ServiceAccountName = account
			strategy.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName = account
		}
	}

	for name, tc := range map[string]struct {
		reason string
		csvs   []*olm.ClusterServiceVersion
		live   map[string]facts.Account
		want   string
	}{
		"New": {"it is made", []*olm.ClusterServiceVersion{one}, nil, "op owned by uid-op.v1"},
		"Made": {
			"it is there", []*olm.ClusterServiceVersion{one},
			map[string]facts.Account{"op": {UID: "u", Made: true, Labelled: true, Owners: "uid-op.v1"}}, "",
		},
		"Theirs": {
			"somebody else's is used as it is", []*olm.ClusterServiceVersion{one}, map[string]facts.Account{"op": {UID: "u"}}, "",
		},
		"Shared": {
			"it goes with the last of its owners", []*olm.ClusterServiceVersion{two, one}, nil, "op owned by uid-op.v1, uid-op.v2",
		},
		"OneMore": {
			"a newer version owns it, too", []*olm.ClusterServiceVersion{one, two},
			map[string]facts.Account{"op": {UID: "u", Made: true, Owners: "uid-op.v1"}}, "u: op owned by uid-op.v1, uid-op.v2",
		},
		"OneLess": {
			"an owner that is gone does no harm", []*olm.ClusterServiceVersion{two},
			map[string]facts.Account{"op": {UID: "u", Made: true, Labelled: true, Owners: "uid-op.v1,uid-op.v2"}}, "",
		},
		"Default": {
			"that of every namespace is nobody's to make", []*olm.ClusterServiceVersion{member("op.v1", running("default"))}, nil, "",
		},
		"Unnamed": {"so is the one that is not named", []*olm.ClusterServiceVersion{member("op.v1", running(""))}, nil, ""},
		"Disowned": {
			"its owner was taken away", []*olm.ClusterServiceVersion{one},
			map[string]facts.Account{"op": {UID: "u", Made: true, Labelled: true}}, "u: op owned by uid-op.v1",
		},
		"Unlabelled": {
			"its label was taken away", []*olm.ClusterServiceVersion{one},
			map[string]facts.Account{"op": {UID: "u", Made: true, Owners: "uid-op.v1"}}, "u: op owned by uid-op.v1",
		},
		"Prefix": {
			"a UID that begins alike is another", []*olm.ClusterServiceVersion{one},
			map[string]facts.Account{"op": {UID: "u", Made: true, Owners: "uid-op.v1x"}}, "u: op owned by uid-op.v1",
		},
		"Installed": {"nothing is installed", nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := snapshotOf([]string{"a"}, tc.csvs...)
			w.Accounts = tc.live

			if got := inWords(w.AccountsToWrite(tc.csvs)); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

func inWords(accounts []*unstructured.Unstructured) string {
	var out []string

	for _, a := range accounts {
		owners := make([]string, 0, len(a.GetOwnerReferences()))
		for _, r := range a.GetOwnerReferences() {
			owners = append(owners, string(r.UID))
		}

		words := a.GetName() + " owned by " + strings.Join(owners, ", ")
		if a.GetUID() != "" {
			words = string(a.GetUID()) + ": " + words
		}

		out = append(out, words)
	}

	return strings.Join(out, "; ")
}

func TestUsesAccount(t *testing.T) {
	t.Parallel()

	csv := member("op.v1", func(c *olm.ClusterServiceVersion) {
		strategy := &c.Spec.InstallStrategy.StrategySpec
		strategy.Permissions = append(strategy.Permissions, olm.StrategyDeploymentPermissions{ServiceAccountName: "reader"})
		strategy.ClusterPermissions = []olm.StrategyDeploymentPermissions{{ServiceAccountName: "wide"}, {ServiceAccountName: "op"}}
	})

	if got := accounts(csv); !slices.Equal(got, []string{"op", "reader", "wide"}) {
		t.Errorf("accounts are %q", got)
	}

	if !UsesAccount(csv, "wide") || UsesAccount(csv, "other") || UsesAccount(csv, "") {
		t.Error("it uses what it names, and nothing else")
	}
}

func TestDeploymentsToWrite(t *testing.T) {
	t.Parallel()

	csv := member("op.v1")
	w := snapshotOf([]string{"a"}, csv)

	objects, err := w.DeploymentsToWrite(csv, nil)
	if err != nil || len(objects) != 1 || objects[0].GetUID() != "" {
		t.Fatalf("a new one: %v (%v)", objects, err)
	}

	for _, field := range [][]string{
		{"status"}, {"metadata", "creationTimestamp"}, {"spec", "template", "metadata", "creationTimestamp"},
	} {
		if _, found, _ := unstructured.NestedFieldNoCopy(objects[0].Object, field...); found {
			t.Errorf("%s would be applied", strings.Join(field, "."))
		}
	}

	live := w.running(csv, 1)
	if objects, err = w.DeploymentsToWrite(csv, nil); err != nil || len(objects) > 0 {
		t.Errorf("one that is as it should be: %v (%v)", objects, err)
	}

	live.ResourceVersion = "7"
	live.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "ambit", Operation: metav1.ManagedFieldsOperationUpdate}}
	objects, err = w.DeploymentsToWrite(csv, map[string]string{"new": "x"})

	if err != nil || len(objects) != 1 || objects[0].GetUID() != live.UID || objects[0].GetResourceVersion() != "7" ||
		len(objects[0].GetManagedFields()) != 1 {
		t.Errorf("one that changes: %v (%v)", objects, err)
	}

	w.Deployments["op"] = nil

	var clash *ClashError
	if _, err = w.DeploymentsToWrite(csv, nil); !errors.As(err, &clash) || clash.Name != "op" {
		t.Errorf("one of somebody else: %v", err)
	}
}

// TestOwnership: a label that anybody can write makes a Deployment nobody's.
func TestOwnership(t *testing.T) {
	t.Parallel()

	csv := member("op.v1")
	w := snapshotOf([]string{"a"}, csv)

	if w.IsInstalled(csv) {
		t.Error("installed before anything was written")
	}

	d := w.running(csv, 1)
	if !w.IsInstalled(csv) || len(w.DeploymentsOf(csv)) != 1 {
		t.Error("its Deployment is not known as its own")
	}

	d.OwnerReferences = nil
	if w.IsInstalled(csv) || len(w.DeploymentsOf(csv)) != 0 {
		t.Error("a label alone makes it its own")
	}

	none := member("none.v1", func(c *olm.ClusterServiceVersion) { c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = nil })
	if w.IsInstalled(none) {
		t.Error("one without Deployments is installed before it succeeded")
	}

	none.Status.Phase = olm.CSVPhaseSucceeded
	if !w.IsInstalled(none) {
		t.Error("one without Deployments is installed when it has succeeded")
	}

	copied := member("op.v1", func(c *olm.ClusterServiceVersion) { c.Labels = map[string]string{olm.CopiedLabelKey: "x"} })
	if !IsCopy(copied) || IsCopy(csv) {
		t.Error("copies are told apart by their label")
	}
}
