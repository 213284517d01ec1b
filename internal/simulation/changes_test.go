package simulation_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/ambit-k8s/ambit/internal/simulation"
)

const kettles = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: kettles.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Kettle, listKind: KettleList, plural: kettles, singular: kettle}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]`

// brings is the operator of csv, which brings kettles.
const brings = csv + "\n  customresourcedefinitions:\n    owned: [{name: kettles.example.com, version: v1, kind: Kettle}]"

// TestRulesOfAggregatedRolesAreNoChange holds that a ClusterRole of a group, whose selectors go and come again, is not said to
// change: its rules, which go with them in memory, are filled in by the cluster.
func TestRulesOfAggregatedRolesAreNoChange(t *testing.T) {
	t.Parallel()

	c := beginning(t, namespaces("ops", "a"), group, kettles, brings)
	run(t, simulation.New(c), "ops")
	fillIn(t, c)
	c.Begin()

	operator := objects(t, brings)[0]
	if err := c.Delete(operator); err != nil {
		t.Fatal(err)
	}

	run(t, simulation.New(c), "ops")

	if got := changed(t, c); !slices.ContainsFunc(got, isOfGroup) {
		t.Fatalf("nothing would come again: %q", got)
	}

	if err := c.Propose(objects(t, brings)[0]); err != nil {
		t.Fatal(err)
	}

	run(t, simulation.New(c), "ops")

	if got := changed(t, c); slices.ContainsFunc(got, isOfGroup) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// TestEmptyRulesAreNoChange holds that a ClusterRole which has no rules any more is as one that never had any.
func TestEmptyRulesAreNoChange(t *testing.T) {
	t.Parallel()

	c := beginning(t, namespaces("ops", "a"), group, kettles)
	run(t, simulation.New(c), "ops")
	c.Begin()

	if err := c.Propose(objects(t, brings)[0]); err != nil {
		t.Fatal(err)
	}

	run(t, simulation.New(c), "ops")

	if err := c.Delete(objects(t, brings)[0]); err != nil {
		t.Fatal(err)
	}

	run(t, simulation.New(c), "ops")

	if got := changed(t, c); slices.ContainsFunc(got, isOfGroup) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// TestReplacedVersionAgain holds that a version which was replaced, and is applied again, goes again and changes nothing: its
// group provides what it brings at no time.
func TestReplacedVersionAgain(t *testing.T) {
	t.Parallel()

	newer := strings.NewReplacer("op.v1", "op.v2", "1.0.0", "2.0.0\n  replaces: op.v1").Replace(csv)

	c := beginning(t, namespaces("ops", "a"), group, kettles, newer)
	run(t, simulation.New(c), "ops")
	c.Begin()

	if err := c.Propose(objects(t, brings)[0]); err != nil {
		t.Fatal(err)
	}

	run(t, simulation.New(c), "ops")

	if got := changed(t, c); !slices.Equal(got, []string{"delete ClusterServiceVersion ops/op.v1"}) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func isOfGroup(change string) bool {
	return strings.HasPrefix(change, "update ClusterRole /olm.og.og.")
}

// fillIn gives rules to the ClusterRoles that take them from others, as the cluster does.
func fillIn(t *testing.T, c *simulation.Cluster) {
	t.Helper()

	changes, err := c.Changes()
	if err != nil {
		t.Fatal(err)
	}

	for _, change := range changes {
		if change.Key.Kind.Kind != "ClusterRole" || change.After.Object["aggregationRule"] == nil {
			continue
		}

		role := &rbacv1.ClusterRole{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(change.After.Object, role); err != nil {
			t.Fatal(err)
		}

		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"example.com"}, Resources: []string{"kettles"}, Verbs: []string{"get"}}}
		c.Add(role)
	}
}
