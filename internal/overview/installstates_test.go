package overview_test

import (
	"slices"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/overview"
)

func ruleOn(resource string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{resource}}}
}

// twoAccounts is a ClusterServiceVersion that runs with two accounts, of which only the second holds something in the whole
// cluster.
func twoAccounts(told string) *olm.ClusterServiceVersion {
	csv := installed(told)
	strategy := &csv.Spec.InstallStrategy.StrategySpec
	strategy.Permissions = []olm.StrategyDeploymentPermissions{
		{ServiceAccountName: "backup", Rules: ruleOn("secrets")}, {ServiceAccountName: "etcd", Rules: ruleOn("pods")},
	}
	strategy.ClusterPermissions = []olm.StrategyDeploymentPermissions{{ServiceAccountName: "etcd", Rules: ruleOn("nodes")}}

	return csv
}

// held says of a service which permissions give which resources, and whether they are missing. No Role is named: what Ambit
// writes has another name in each namespace.
func held(s *overview.Service) string {
	out := []string{string(s.State)}

	for _, r := range s.Roles {
		name := r.Name
		if r.Missing {
			name = "missing " + name
		}

		out = append(out, name+" "+strings.Join(r.Rules[0].Resources, ","))
	}

	return strings.Join(out, ": ")
}

// TestEachAccountHasItsOwnRoles: an account is shown with its own permissions, where it has them, and with no other's.
func TestEachAccountHasItsOwnRoles(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		targets []string
		told    string
		phase   olm.ClusterServiceVersionPhase
		want    map[string]string
	}{
		"it runs": {[]string{"a", "b"}, "a,b", olm.CSVPhaseSucceeded, map[string]string{
			"backup in ops": "own: permissions secrets", "etcd in ops": "own: permissions pods",
			"backup in a": "served: permissions secrets", "etcd in a": "served: permissions pods",
			"backup in b": "served: permissions secrets", "etcd in b": "served: permissions pods",
			"backup in ": "idle", "etcd in ": "served: cluster-wide permissions nodes",
		}},
		"it is not told of a target": {[]string{"a", "b"}, "a", olm.CSVPhaseSucceeded, map[string]string{
			"backup in ops": "own: permissions secrets", "etcd in ops": "own: permissions pods",
			"backup in a": "served: permissions secrets", "etcd in a": "served: permissions pods",
			"backup in b": "failed: missing permissions secrets", "etcd in b": "failed: missing permissions pods",
			"backup in ": "idle", "etcd in ": "served: cluster-wide permissions nodes",
		}},
		"its own namespace is its target": {[]string{"ops"}, "ops", olm.CSVPhaseSucceeded, map[string]string{
			"backup in ops": "served: permissions secrets", "etcd in ops": "served: permissions pods",
			"backup in ": "idle", "etcd in ": "served: cluster-wide permissions nodes",
		}},
		"it does not run": {[]string{"a"}, "a", olm.CSVPhaseInstalling, map[string]string{
			"backup in ops": "own: permissions secrets", "etcd in ops": "own: permissions pods",
			"backup in a": "failed: permissions secrets", "etcd in a": "failed: permissions pods",
			"backup in ": "failed", "etcd in ": "failed: cluster-wide permissions nodes",
		}},
		"all namespaces are its targets": {[]string{""}, "", olm.CSVPhaseSucceeded, map[string]string{
			"backup in ops": "own", "etcd in ops": "own",
			"backup in ": "served: cluster-wide permissions secrets",
			"etcd in ":   "served: cluster-wide permissions pods: cluster-wide permissions nodes",
		}},
	} {
		csv := twoAccounts(tc.told)
		csv.Status.Phase = tc.phase
		_, services := overview.OfInstall(csv, tc.targets, facts.ClusterBindings{}, lacksNothing)

		for i := range services {
			s := &services[i]

			key := s.Operator.Name + " in " + s.Namespace
			if want, known := tc.want[key]; !known || held(s) != want {
				t.Errorf("%s: %s is %q, want %q", name, key, held(s), want)
			}

			if s.Scope != "ClusterServiceVersion ops/etcd.v1" || s.Operator.Kind != rbacv1.ServiceAccountKind {
				t.Errorf("%s: %s is from %q, for a %s", name, key, s.Scope, s.Operator.Kind)
			}
		}

		if len(services) != len(tc.want) {
			t.Errorf("%s: %d services, want %d: %+v", name, len(services), len(tc.want), services)
		}
	}
}

// TestWithoutAnAnnotationNothingIsServed: an operator whose annotation is missing has been told of nothing, which differs from an
// empty one, which stands for all namespaces.
func TestWithoutAnAnnotationNothingIsServed(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		annotations map[string]string
		want        overview.State
	}{
		"it is missing":              {nil, overview.Failed},
		"it is empty":                {map[string]string{operatorsv1.TargetsAnnotation: ""}, overview.Served},
		"it names the target":        {map[string]string{operatorsv1.TargetsAnnotation: "a,tenant,z"}, overview.Served},
		"it names a part of its own": {map[string]string{operatorsv1.TargetsAnnotation: "tenant-2"}, overview.Failed},
	} {
		csv := installed("")
		csv.Annotations = tc.annotations
		_, services := overview.OfInstall(csv, []string{"tenant"}, facts.ClusterBindings{}, lacksNothing)

		i := slices.IndexFunc(services, func(s overview.Service) bool { return s.Namespace == "tenant" })
		if i < 0 || services[i].State != tc.want {
			t.Errorf("%s: the target is %+v, want it %s", reason, services, tc.want)
		}
	}
}

// TestWhatAnInstallSays: the tree shows of a ClusterServiceVersion whether it runs, and in its own words why not.
func TestWhatAnInstallSays(t *testing.T) {
	t.Parallel()

	for phase, ready := range map[olm.ClusterServiceVersionPhase]string{
		olm.CSVPhaseSucceeded: "True", olm.CSVPhasePending: "False", olm.CSVPhaseFailed: "False", olm.CSVPhaseNone: "False",
	} {
		csv := installed("tenant")
		csv.Status.Phase, csv.Status.Reason = phase, "RequirementsNotMet"
		csv.Status.Message = "one or more requirements couldn't be found"

		got, _ := overview.OfInstall(csv, []string{"tenant"}, facts.ClusterBindings{}, lacksNothing)
		if got.Name != "ClusterServiceVersion ops/etcd.v1" || got.Group != "operators.coreos.com" || got.Ready != ready ||
			got.Reason != string(csv.Status.Reason) || got.Message != csv.Status.Message {
			t.Errorf("in phase %q it says %+v", phase, got)
		}
	}
}

// TestWhatAnInstallHoldsEverywhere: a binding by which an account of an operator holds something in all namespaces is shown, with
// the account that holds it and the way out, unless the operator is for all namespaces anyway.
func TestWhatAnInstallHoldsEverywhere(t *testing.T) {
	t.Parallel()

	account := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "ops", Name: name}
	}
	bindings := facts.ClusterBindings{Giving: []facts.ClusterBinding{
		{
			Name: "all-secrets", Role: "reader", Subjects: []rbacv1.Subject{account("backup"), account("etcd"), account("other")},
			Rights: []facts.ClusterRight{{Verbs: []string{"get"}, Resource: "secrets", Sensitive: true}},
		},
		{
			Name: "by-group", Role: "viewer", Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:ops"}},
			Rights: []facts.ClusterRight{{Verbs: []string{"list"}, Resource: "pods"}},
		},
	}}

	declared, services := overview.OfInstall(twoAccounts("tenant"), []string{"tenant"}, bindings, lacksNothing)
	if len(declared.Remarks) != 1 || !strings.Contains(declared.Remarks[0], "all-secrets") {
		t.Errorf("it remarks %q", declared.Remarks)
	}

	got := overview.New([]overview.Scope{declared}, services, nil).ClusterWide()
	want := []struct{ account, binding, role, through, gives string }{
		{"backup", "all-secrets", "reader", "", "get secrets"},
		{"backup", "by-group", "viewer", "system:serviceaccounts:ops", "list pods"},
		{"etcd", "all-secrets", "reader", "", "get secrets"},
		{"etcd", "by-group", "viewer", "system:serviceaccounts:ops", "list pods"},
	}

	if len(got) != len(want) {
		t.Fatalf("it holds %+v", got)
	}

	for i, w := range want {
		c := &got[i]
		if c.Operator.String() != "ops/"+w.account || c.Binding != w.binding || c.Role != w.role || c.Through != w.through ||
			c.Gives != w.gives || c.Sensitive != (w.binding == "all-secrets") || c.WayOut != "ambit narrow --from ops/"+w.account {
			t.Errorf("%d: got %+v, want %+v", i, c, w)
		}

		// Each is about its own account, and says the way out.
		says := c.String()
		if !strings.Contains(says, "ops/"+w.account) || !strings.Contains(says, c.Gives) || !strings.HasSuffix(says, c.WayOut) {
			t.Errorf("%d: it says %q", i, says)
		}

		if other := want[(i+2)%4].account; strings.Contains(says, "ops/"+other) {
			t.Errorf("%d: what is about %s names %s: %q", i, w.account, other, says)
		}
	}

	declared, _ = overview.OfInstall(twoAccounts(""), []string{""}, bindings, lacksNothing)
	if len(declared.ClusterWide) > 0 || len(declared.Remarks) > 0 {
		t.Errorf("an operator for all namespaces is told that it holds something there: %+v", declared)
	}
}
