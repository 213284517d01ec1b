package install

import (
	"maps"
	"slices"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"pgregory.net/rapid"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
)

func listing(value string) *olm.ClusterServiceVersion {
	return member("op.v1", func(c *olm.ClusterServiceVersion) {
		c.Annotations = map[string]string{operatorsv1.TargetsAnnotation: value, "theirs": "x"}
	})
}

func every(string) Readiness { return Ready }

func TestMembership(t *testing.T) {
	t.Parallel()

	_, targeted := one("a", "b", "c")
	_, everywhere := one("")
	_, nowhere := one()
	with := func(known map[string]Readiness) func(string) Readiness {
		return func(name string) Readiness { return known[name] }
	}
	only := func(names ...string) func(string) Readiness {
		return func(name string) Readiness {
			if slices.Contains(names, name) {
				return Ready
			}

			return Refused
		}
	}

	for name, tc := range map[string]struct {
		reason    string
		csv       *olm.ClusterServiceVersion
		targeted  *TargetedGroup
		ready     func(string) Readiness
		want      string
		annotated bool
	}{
		"All":   {"all are ready", member("op.v1"), targeted, only("a", "b", "c"), "a,b,c", true},
		"Some":  {"those without permissions are not told yet", member("op.v1"), targeted, only("b"), "b", true},
		"None":  {"an empty list would mean all namespaces", member("op.v1"), targeted, only(), "a,b,c", true},
		"Stays": {"what it watches already stays", listing("a"), targeted, only("b"), "a,b", true},
		"Goes":  {"what is no target any more goes", listing("a,z"), targeted, only("a"), "a", true},
		"GoesUnready": {"nothing of the new is ready, and nothing of the old is a target", listing("z"), targeted, only(), "a,b,c",
			true},
		"Narrowed":   {"what was all namespaces is no target any more", listing(""), targeted, only(), "a,b,c", true},
		"NoTargets":  {"a group without targets tells nothing", listing("a"), nowhere, only("a"), "", false},
		"Everywhere": {"all namespaces are the empty name, on purpose", member("op.v1"), everywhere, only(""), "", true},
		"NotReady":   {"its ClusterRoles are not there yet", listing("a"), everywhere, only(), "", false},
		"Late": {"what may pass by itself is better than what was refused", member("op.v1"), targeted,
			with(map[string]Readiness{"a": Refused, "b": Late, "c": Missing}), "b", true},
		"Missing": {"nobody watches what does not exist", member("op.v1"), targeted,
			with(map[string]Readiness{"a": Refused, "b": Refused, "c": Missing}), "a,b", true},
		"Gone": {"what was deleted is watched no longer", listing("a,b"), targeted,
			with(map[string]Readiness{"a": Refused, "b": Missing, "c": Missing}), "a", true},
		"Comes": {"what was named for want of others goes with the first of them", listing("a,b,c"), targeted,
			with(map[string]Readiness{"a": Missing, "b": Missing}), "c", true},
		"AllGone": {"no pod begins anew for nothing", listing("a"), targeted,
			with(map[string]Readiness{"a": Missing, "b": Missing, "c": Missing}), "a", true},
		"NoneExists": {"an empty list would mean all namespaces", member("op.v1"), targeted,
			with(map[string]Readiness{"a": Missing, "b": Missing, "c": Missing}), "a,b,c", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := Membership(tc.csv, tc.targeted, tc.ready)
			value, told := got[operatorsv1.TargetsAnnotation]

			if value != tc.want || told != tc.annotated {
				t.Errorf("%s: told %q (%t), want %q (%t)", tc.reason, value, told, tc.want, tc.annotated)
			}

			if got[operatorsv1.GroupAnnotation] != "group" || got[operatorsv1.GroupNamespaceAnnotation] != ownNamespace {
				t.Errorf("%s: the group is told as %v", tc.reason, got)
			}
		})
	}
}

// TestListIsNeverEmptyByAccident holds that no sequence of targets and permissions makes a list empty, which would mean all
// namespaces, unless the targets are all namespaces; and that nobody is told of a namespace before it is ready.
func TestListIsNeverEmptyByAccident(t *testing.T) {
	t.Parallel()

	some := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c"}), 0, 3, rapid.ID[string])

	rapid.Check(t, func(t *rapid.T) {
		csv := member("op.v1")
		seen := map[string]bool{}

		for range rapid.IntRange(1, 6).Draw(t, "passes") {
			targets := some.Draw(t, "targets")
			if rapid.IntRange(0, 5).Draw(t, "all") == 0 {
				targets = []string{""}
			}

			slices.Sort(targets)

			ready := some.Draw(t, "ready")
			if rapid.Bool().Draw(t, "cluster") {
				ready = append(ready, "")
			}

			for _, name := range ready {
				seen[name] = true
			}

			_, targeted := one(targets...)
			before := Listed(csv)
			want := Membership(csv, targeted, func(name string) Readiness {
				if slices.Contains(ready, name) {
					return Ready
				}

				return Late
			})
			missing := Differing(csv.Annotations, want)

			everywhere := slices.Equal(targets, []string{""})

			if value, told := missing[operatorsv1.TargetsAnnotation]; told && value == "" && !everywhere {
				t.Fatalf("targets %q, ready %q: told to watch everything", targets, ready)
			}

			csv.Annotations = maps.Clone(csv.Annotations)
			if csv.Annotations == nil {
				csv.Annotations = map[string]string{}
			}

			maps.Copy(csv.Annotations, missing)

			known := func(name string) bool { return slices.Contains(ready, name) || slices.Contains(before, name) }
			if !everywhere && !slices.ContainsFunc(targets, known) {
				for _, name := range targets {
					seen[name] = true // There is nothing better to tell.
				}
			}

			if now := Listed(csv); len(targets) > 0 && !everywhere && len(now) == 0 {
				t.Fatalf("targets %q, ready %q: told nothing", targets, ready)
			}

			for _, name := range Listed(csv) {
				if !seen[name] {
					t.Fatalf("told of %q, which never was ready", name)
				}

				if !slices.Contains(targets, name) && (!slices.Equal(Listed(csv), before) || len(targets) > 0 && !everywhere) {
					t.Fatalf("told of %q, which is no target of %q", name, targets)
				}
			}

			if left := Differing(csv.Annotations, want); len(left) > 0 {
				t.Fatalf("written, and still different: %v", left)
			}
		}
	})
}

func TestListed(t *testing.T) {
	t.Parallel()

	if got := Listed(member("op.v1")); got != nil {
		t.Errorf("a CSV that nobody told anything lists %q", got)
	}

	if got := Listed(listing("")); !slices.Equal(got, []string{""}) {
		t.Errorf("all namespaces are listed as %q", got)
	}

	if got := strings.Join(Listed(listing("a,b")), " "); got != "a b" {
		t.Errorf("listed are %q", got)
	}
}
