package compile_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbac "k8s.io/component-helpers/auth/rbac/validation"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// anyPermissions are those of a few accounts, each of which may have several.
func anyPermissions() *rapid.Generator[[]olm.StrategyDeploymentPermissions] {
	some := func(values ...string) *rapid.Generator[[]string] {
		return rapid.SliceOfN(rapid.SampledFrom(values), 1, 3)
	}
	rule := rapid.Custom(func(t *rapid.T) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			Verbs: some("get", "list", "watch", "*").Draw(t, "verbs"), APIGroups: some("", "apps", "*").Draw(t, "groups"),
			Resources:     some("secrets", "namespaces", "*").Draw(t, "resources"),
			ResourceNames: rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 0, 2).Draw(t, "names"),
		}
	})

	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) olm.StrategyDeploymentPermissions {
		return olm.StrategyDeploymentPermissions{
			ServiceAccountName: rapid.SampledFrom([]string{"", "default", "op", "op-a", "op-b"}).Draw(t, "account"),
			Rules:              rapid.SliceOfN(rule, 0, 3).Draw(t, "rules"),
		}
	}), 0, 4)
}

func anyCSV() *rapid.Generator[*olm.ClusterServiceVersion] {
	return rapid.Custom(func(t *rapid.T) *olm.ClusterServiceVersion {
		csv := &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{
			Namespace: "ops", Name: rapid.StringMatching(`[a-z]([-.a-z0-9]{0,251}[a-z0-9])?`).Draw(t, "name"), UID: "uid",
		}}
		csv.Spec.InstallStrategy.StrategySpec.Permissions = anyPermissions().Draw(t, "permissions")
		csv.Spec.InstallStrategy.StrategySpec.ClusterPermissions = anyPermissions().Draw(t, "clusterPermissions")

		return csv
	})
}

func anyInstall() *rapid.Generator[compile.Install] {
	return rapid.Custom(func(t *rapid.T) compile.Install {
		if rapid.Bool().Draw(t, "everywhere") {
			return compile.Install{Targets: []string{""}}
		}

		return compile.Install{
			Targets: rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ops"}), 1, 3).Draw(t, "targets"), Account: "scoped",
		}
	})
}

// of unites the rules of one account.
func of(account string, permissions []olm.StrategyDeploymentPermissions) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule

	for _, p := range permissions {
		if p.ServiceAccountName == account || p.ServiceAccountName == "" && account == "default" {
			rules = append(rules, p.Rules...)
		}
	}

	return rules
}

// bound unites the rules that a scope binds to an account in each member, or everywhere.
func bound(t *rapid.T, s *scope.Scope, account string, everywhere bool) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule

	for _, b := range s.Binds {
		if b.Everywhere == b.Local {
			t.Fatalf("%s is bound everywhere and in each member, or in neither", b.Role)
		}

		if len(b.Subjects) != 1 || b.Subjects[0].Kind != rbacv1.ServiceAccountKind || b.Subjects[0].Namespace != "ops" {
			t.Fatalf("%s is bound to %v", b.Role, b.Subjects)
		}

		if b.Subjects[0].Name == account && b.Everywhere == everywhere {
			rules = append(rules, b.Rules...)
		}
	}

	return rules
}

func same(t *rapid.T, what string, got, want []rbacv1.PolicyRule) {
	if ok, more := rbac.Covers(want, got); !ok {
		t.Fatalf("%s: more than the CSV says: %v", what, more)
	}

	if ok, less := rbac.Covers(got, want); !ok {
		t.Fatalf("%s: less than the CSV says: %v", what, less)
	}
}

// TestCSVBindsWhatItSays holds that each account gets exactly what the CSV says, in the members what is said for those, and in
// the cluster what is said for it; an operator for all namespaces gets both there, and may see namespaces besides.
func TestCSVBindsWhatItSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		csv, in := anyCSV().Draw(t, "csv"), anyInstall().Draw(t, "install")
		strategy := &csv.Spec.InstallStrategy.StrategySpec
		s := compile.ClusterServiceVersion(csv, in)

		for _, account := range []string{"default", "op", "op-a", "op-b"} {
			members, cluster := of(account, strategy.Permissions), of(account, strategy.ClusterPermissions)

			if compile.IsEverywhere(in.Targets) {
				named := slices.ContainsFunc(strategy.Permissions, func(p olm.StrategyDeploymentPermissions) bool {
					return p.ServiceAccountName == account || p.ServiceAccountName == "" && account == "default"
				})
				if named {
					members = append(members, rbacv1.PolicyRule{
						APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get", "list", "watch"},
					})
				}

				members, cluster = nil, append(cluster, members...)
			}

			same(t, account+" in members", bound(t, &s, account, false), members)
			same(t, account+" in the cluster", bound(t, &s, account, true), cluster)
		}
	})
}

// TestCSVRolesAreBoundAsMade holds that what is bound is what is made, under names that every API server takes, each for one.
func TestCSVRolesAreBoundAsMade(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		csv, in := anyCSV().Draw(t, "csv"), anyInstall().Draw(t, "install")
		s := compile.ClusterServiceVersion(csv, in)
		made := map[string][]rbacv1.PolicyRule{}

		for _, r := range s.Roles {
			if len(r.Name) > 63 || len(content.IsPathSegmentName(r.Name)) > 0 || made[r.Name] != nil {
				t.Fatalf("Role %q", r.Name)
			}

			made[r.Name] = append(r.Rules, rbacv1.PolicyRule{})
		}

		for _, r := range s.Defines {
			if len(content.IsPathSegmentName(r.Name)) > 0 || made[r.Name] != nil {
				t.Fatalf("ClusterRole %q", r.Name)
			}

			made[r.Name] = append(r.Rules, rbacv1.PolicyRule{})
		}

		for _, b := range s.Binds {
			if !reflect.DeepEqual(append(b.Rules, rbacv1.PolicyRule{}), made[b.Role]) {
				t.Fatalf("%s is bound for %v and made as %v", b.Role, b.Rules, made[b.Role])
			}

			delete(made, b.Role)
		}

		if len(made) > 0 {
			t.Fatalf("made and bound to nobody: %v", made)
		}

		if s.Members.Everywhere != compile.IsEverywhere(in.Targets) ||
			s.Members.Everywhere && (len(s.Roles) > 0 || s.Members.Named != nil) {
			t.Fatalf("targets %q, members %+v, %d Roles", in.Targets, s.Members, len(s.Roles))
		}

		if !s.Members.Everywhere && (s.Members.Cluster != (len(s.Defines) > 0) || !slices.Contains(s.Members.Named, "ops")) {
			t.Fatalf("members %+v with %d ClusterRoles", s.Members, len(s.Defines))
		}
	})
}

// TestCSVOrderDoesNotMatter holds that permissions in another order mean the same, and that compiling changes nothing.
func TestCSVOrderDoesNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		csv, in := anyCSV().Draw(t, "csv"), anyInstall().Draw(t, "install")
		before := csv.DeepCopy()
		s := compile.ClusterServiceVersion(csv, in)

		if again := compile.ClusterServiceVersion(csv, in); !reflect.DeepEqual(s, again) || !reflect.DeepEqual(csv, before) {
			t.Fatalf("the second time:\n%+v\n%+v", s, again)
		}

		shuffled := csv.DeepCopy()
		strategy := &shuffled.Spec.InstallStrategy.StrategySpec
		strategy.Permissions = rapid.Permutation(strategy.Permissions).Draw(t, "order")
		strategy.ClusterPermissions = rapid.Permutation(strategy.ClusterPermissions).Draw(t, "cluster order")
		in.Targets = rapid.Permutation(in.Targets).Draw(t, "target order")
		other := compile.ClusterServiceVersion(shuffled, in)

		if !reflect.DeepEqual(s.Members, other.Members) || len(s.Binds) != len(other.Binds) {
			t.Fatalf("in another order:\n%+v\n%+v", s, other)
		}

		for i := range s.Binds {
			if s.Binds[i].Role != other.Binds[i].Role || !reflect.DeepEqual(s.Binds[i].Subjects, other.Binds[i].Subjects) {
				t.Fatalf("in another order:\n%+v\n%+v", s.Binds[i], other.Binds[i])
			}

			same(t, s.Binds[i].Role, other.Binds[i].Rules, s.Binds[i].Rules)
		}
	})
}

func TestCSVNamesDoNotCollide(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("x", 62)
	names := map[string]string{}

	for _, csv := range []string{long + "a", long + "b", "op", "op-x"} {
		for _, account := range []string{"x-y", "y", long + "c", long + "d", "x-y-cluster"} {
			for _, targets := range [][]string{{"a"}, {""}} {
				of := []olm.StrategyDeploymentPermissions{{ServiceAccountName: account}}
				c := &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: csv}}
				c.Spec.InstallStrategy.StrategySpec.Permissions = of
				c.Spec.InstallStrategy.StrategySpec.ClusterPermissions = of

				for i, b := range compile.ClusterServiceVersion(c, compile.Install{Targets: targets}).Binds {
					// The second is for the clusterPermissions, wherever the operator serves.
					of := []string{"permissions of " + targets[0], "clusterPermissions"}[i]
					what := strings.Join([]string{csv, account, of}, ", ")

					if other, taken := names[b.Role]; taken && other != what {
						t.Errorf("%s for %s and for %s", b.Role, other, what)
					}

					names[b.Role] = what
				}
			}
		}
	}
}

func TestCSVIsOfItsInstall(t *testing.T) {
	t.Parallel()

	csv := &olm.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "op.v1", UID: "uid"}}
	in := compile.Install{Targets: []string{"b", "a", "b"}, Account: "scoped", Listed: []string{"z"}}
	s := compile.ClusterServiceVersion(csv, in)

	if !s.Installed() || !s.Explicit() || s.Delegate != "scoped" || s.OwnerUID != "uid" || !slices.Equal(s.Listed, []string{"z"}) ||
		!slices.Equal(s.Members.Named, []string{"a", "b", "ops"}) || s.Owner.String() != "ClusterServiceVersion/ops/op.v1" {
		t.Errorf("%+v", s)
	}
}
