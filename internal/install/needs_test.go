package install

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
)

func anyRule() *rapid.Generator[rbacv1.PolicyRule] {
	some := func(values ...string) *rapid.Generator[[]string] {
		return rapid.SliceOfN(rapid.SampledFrom(values), 1, 3)
	}

	return rapid.Custom(func(t *rapid.T) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			Verbs:     some("get", "create", "patch", "escalate", "bind", "*").Draw(t, "verbs"),
			APIGroups: some("", "apps", rbacv1.GroupName, olm.GroupName, "*").Draw(t, "groups"),
			Resources: some("secrets", "serviceaccounts", "deployments", "roles", "rolebindings", "clusterroles", "clusterserviceversions",
				"*").Draw(t, "resources"),
			ResourceNames: rapid.SliceOfN(rapid.SampledFrom([]string{"op", "op.v1", "x"}), 0, 2).Draw(t, "names"),
		}
	})
}

func anyPermissions() *rapid.Generator[[]olm.StrategyDeploymentPermissions] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) olm.StrategyDeploymentPermissions {
		return olm.StrategyDeploymentPermissions{
			ServiceAccountName: rapid.SampledFrom([]string{"", "default", "op", "other"}).Draw(t, "account"),
			Rules:              rapid.SliceOfN(anyRule(), 0, 2).Draw(t, "rules"),
		}
	}), 0, 3)
}

func anyTargets() *rapid.Generator[[]string] {
	return rapid.OneOf(rapid.Just([]string{""}),
		rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", ownNamespace}), 1, 4, rapid.ID[string]))
}

func anyMember() *rapid.Generator[*olm.ClusterServiceVersion] {
	return rapid.Custom(func(t *rapid.T) *olm.ClusterServiceVersion {
		csv := member("op.v1")
		strategy := &csv.Spec.InstallStrategy.StrategySpec
		strategy.Permissions = anyPermissions().Draw(t, "permissions")
		strategy.ClusterPermissions = anyPermissions().Draw(t, "clusterPermissions")
		one := strategy.DeploymentSpecs[0]
		strategy.DeploymentSpecs = nil

		for i := range rapid.IntRange(0, 3).Draw(t, "deployments") {
			d := *one.DeepCopy()
			d.Name = fmt.Sprintf("op-%d", i)
			d.Spec.Template.Spec.ServiceAccountName = rapid.SampledFrom([]string{"", "default", "op", "runner"}).Draw(t, "account")
			strategy.DeploymentSpecs = append(strategy.DeploymentSpecs, d)
		}

		return csv
	})
}

// TestWhatIsMissingIsEnoughAndNoMore holds, for whatever an account holds already, that granting it what is said to be missing
// for an install leaves nothing missing, and that nothing is said to be missing which the install does not need.
func TestWhatIsMissingIsEnoughAndNoMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		csv, targets := anyMember().Draw(t, "csv"), anyTargets().Draw(t, "targets")

		for _, place := range Needs(csv, ownNamespace, targets) {
			held := rapid.SliceOfN(anyRule(), 0, 4).Draw(t, "held")
			missing := authority.MissingAt(held, place)

			if left := authority.MissingAt(slices.Concat(held, missing), place); left != nil {
				t.Fatalf("granted in %q, and still missing: %v", place.Namespace, left)
			}

			if ok, more := validation.Covers(slices.Concat(place.Rules, place.Handed), missing); !ok {
				t.Fatalf("missing in %q, and not needed: %v", place.Namespace, more)
			}
		}
	})
}

// TestNeedsFollowTheCSV holds that the list has every place in which something is written, and hands out there what the compiled
// scope binds, and nothing else.
func TestNeedsFollowTheCSV(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		csv, targets := anyMember().Draw(t, "csv"), anyTargets().Draw(t, "targets")
		before := csv.DeepCopy()
		s := compile.ClusterServiceVersion(csv, compile.Install{Targets: targets})
		needs := Needs(csv, ownNamespace, targets)
		places := map[string]authority.Place{}

		for _, p := range needs {
			places[p.Namespace] = p
		}

		var local, cluster []rbacv1.PolicyRule

		for _, b := range s.Binds {
			if b.Local {
				local = append(local, b.Rules...)
			} else {
				cluster = append(cluster, b.Rules...)
			}
		}

		want := map[string][]rbacv1.PolicyRule{ownNamespace: nil}
		if len(s.Defines) > 0 {
			want[""] = cluster
		}

		if len(s.Roles) > 0 {
			for _, name := range s.Members.Named {
				want[name] = local
			}
		}

		if len(places) != len(want) || len(places) != len(needs) {
			t.Fatalf("places are %v, want %v", places, want)
		}

		for name, rules := range want {
			got := places[name].Handed
			if ok, less := validation.Covers(got, rules); !ok {
				t.Fatalf("%q: handed out, and not asked for: %v", name, less)
			}

			if ok, more := validation.Covers(rules, got); !ok {
				t.Fatalf("%q: asked for, and not handed out: %v", name, more)
			}
		}

		csv.Namespace = before.Namespace
		if fmt.Sprint(csv) != fmt.Sprint(before) {
			t.Fatal("the CSV itself was changed")
		}
	})
}

// TestNeedsAreNarrow: whatever is known by its name is asked for by its name.
func TestNeedsAreNarrow(t *testing.T) {
	t.Parallel()

	needs := Needs(member("op.v1"), ownNamespace, []string{"a"})
	if len(needs) < 2 {
		t.Fatalf("an install in a target of its own needs something in both namespaces, not %+v", needs)
	}

	for _, place := range needs {
		for _, r := range place.Rules {
			if slices.Contains(r.APIGroups, rbacv1.GroupName) {
				continue // Names of roles are not for people to predict.
			}

			if len(r.ResourceNames) == 0 && !slices.Equal(r.Verbs, []string{"create"}) {
				t.Errorf("%q: %v is for any name", place.Namespace, r)
			}

			if slices.Contains(r.Verbs, "delete") || slices.Contains(r.Verbs, "*") || slices.Contains(r.Resources, "*") {
				t.Errorf("%q: %v is more than writing needs", place.Namespace, r)
			}
		}
	}
}

// TestNothingIsAskedForWebhooksThatCannotBe: where Ambit sets up no webhooks, the account needs no rights for them.
func TestNothingIsAskedForWebhooksThatCannotBe(t *testing.T) {
	t.Parallel()

	without := member("op.v1")
	with := without.DeepCopy()
	with.Spec.WebhookDefinitions = []olm.WebhookDescription{{Type: olm.ValidatingAdmissionWebhook, DeploymentName: "op"}}

	want := NeedsConfined(without, ownNamespace, []string{"a"})
	if got := NeedsConfined(with, ownNamespace, []string{"a"}); !reflect.DeepEqual(got, want) {
		t.Errorf("needed are %+v, want %+v", got, want)
	}
}

func TestPresent(t *testing.T) {
	t.Parallel()

	there := map[string]facts.Namespace{"a": {}, "b": {}, "going": {Terminating: true}}

	for reason, tc := range map[string]struct{ targets, want []string }{
		"all are there":                       {[]string{"a", "b"}, []string{"a", "b"}},
		"one does not exist":                  {[]string{"a", "typo"}, []string{"a"}},
		"one is on its way out":               {[]string{"b", "going"}, []string{"b"}},
		"none is there":                       {[]string{"typo"}, nil},
		"all namespaces are always there":     {[]string{""}, []string{""}},
		"what is there and no target is none": {nil, nil},
	} {
		before := slices.Clone(tc.targets)
		if got := Present(tc.targets, there); !slices.Equal(got, tc.want) || !slices.Equal(tc.targets, before) {
			t.Errorf("%s: of %q present are %q, want %q", reason, before, got, tc.want)
		}
	}
}
