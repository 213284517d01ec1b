package catalog_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/catalog"
)

func TestChoose(t *testing.T) {
	t.Parallel()

	manual := parse(`
- packageName: two
  channels:
  - {name: a, currentCSV: two.v1}
  - {name: b, currentCSV: two.v1}
- packageName: listed
  channels:
  - name: a
    currentCSV: two.v3
    entries:
    - {name: two.v3, replaces: two.v2, skipRange: ">=0.5.0 <1.5.0"}
    - {name: two.v2, replaces: two.v1, skips: [two.v0]}
    - {name: two.v1b}
- packageName: circle
  channels: [{name: a, currentCSV: c.v1}]
- packageName: broken
  channels: [{name: a, currentCSV: gone}]
`, csv("two.v1", "1.0.0", "")+csv("two.v1b", "1.1.0", "")+csv("two.v2", "2.0.0", "nothing")+csv("two.v3", "3.0.0", "")+
		csv("c.v1", "1.0.0", "c.v2")+csv("c.v2", "2.0.0", "c.v1"), "")

	for name, tc := range map[string]struct {
		reason  string
		catalog *catalog.Catalog
		request catalog.Request
		next    string
		err     string
	}{
		"the head of the default channel": {
			reason: "a first install takes the newest", catalog: etcd(),
			request: catalog.Request{Package: "etcd"}, next: "etcd.v3",
		},
		"a channel": {
			reason: "the channel that is named", catalog: etcd(),
			request: catalog.Request{Package: "etcd", Channel: "beta"}, next: "etcd.v4",
		},
		"a starting version": {
			reason: "startingCSV is installed first, however old", catalog: etcd(),
			request: catalog.Request{Package: "etcd", StartingCSV: "etcd.v1"}, next: "etcd.v1",
		},
		"the next version": {
			reason: "an upgrade goes step by step along replaces", catalog: etcd(),
			request: catalog.Request{Package: "etcd", StartingCSV: "etcd.v1", Installed: "etcd.v1"}, next: "etcd.v2",
		},
		"the newest is there": {
			reason: "there is nothing to do", catalog: etcd(), request: catalog.Request{Package: "etcd", Installed: "etcd.v3"},
		},
		"skipped": {
			reason: "a version that skips the installed one comes next", catalog: etcd(),
			request: catalog.Request{Package: "etcd", Channel: "beta", Installed: "etcd.v2"}, next: "etcd.v4",
		},
		"another channel": {
			reason: "who changes the channel goes on from what is installed", catalog: etcd(),
			request: catalog.Request{Package: "etcd", Channel: "beta", Installed: "etcd.v3"}, next: "etcd.v4",
		},
		"a channel that is behind": {
			reason: "nothing goes back", catalog: etcd(), request: catalog.Request{Package: "etcd", Installed: "etcd.v4"},
			err: "nothing in channel alpha of package etcd replaces etcd.v4, which is installed",
		},
		"a range of the channel": {
			reason: "skipRange covers the installed version", catalog: manual,
			request: catalog.Request{Package: "listed", Installed: "two.v1", InstalledNumber: "1.0.0"}, next: "two.v3",
		},
		"out of the range": {
			reason: "the channel's own entries say what replaces what, and skip", catalog: manual,
			request: catalog.Request{Package: "listed", Installed: "two.v0", InstalledNumber: "0.1.0"}, next: "two.v2",
		},
		"an unknown number": {
			reason: "without a number, no range covers it", catalog: manual,
			request: catalog.Request{Package: "listed", Installed: "other", InstalledNumber: "??"},
			err:     "nothing in channel a of package listed replaces other",
		},
		"beside the line": {
			reason: "a version that the channel only lists can be installed first", catalog: manual,
			request: catalog.Request{Package: "listed", StartingCSV: "two.v1b"}, next: "two.v1b",
		},
		"no package": {
			reason: "OLM's words, and what there is", catalog: etcd(), request: catalog.Request{Package: "etc"},
			err: "constraints not satisfiable: no operators found in package etc in the catalog referenced by subscription sub; " +
				"it has the package etcd",
		},
		"no channel": {
			reason: "OLM's words, and what there is", catalog: etcd(), request: catalog.Request{Package: "etcd", Channel: "gamma"},
			err: "no operators found in channel gamma of package etcd in the catalog referenced by subscription sub; " +
				"it has the channels alpha, beta",
		},
		"no default channel": {
			reason: "of two channels, none is guessed", catalog: manual, request: catalog.Request{Package: "two"},
			err: "it has no default channel, and spec.channel is empty; it has the channels a, b",
		},
		"the starting version is elsewhere": {
			reason: "startingCSV has to be in the channel", catalog: etcd(),
			request: catalog.Request{Package: "etcd", StartingCSV: "etcd.v4"},
			err:     "no operators found with name etcd.v4 in channel alpha of package etcd in the catalog referenced by subscription sub",
		},
		"a circle": {
			reason: "an upgrade would never end", catalog: manual, request: catalog.Request{Package: "circle"},
			err: "channel a of package circle: it goes round in a circle: c.v1 is replaced by a version that it replaces itself",
		},
		"a head that is not there": {
			reason: "what is missing is named", catalog: manual, request: catalog.Request{Package: "broken"},
			err: "the catalog holds no ClusterServiceVersion gone",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			tc.request.Subscription = "sub"
			choice, err := tc.catalog.Choose(&tc.request)

			if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
				t.Fatalf("%s: the error is %v, not %q", tc.reason, err, tc.err)
			}

			if err != nil {
				if !errors.Is(err, catalog.ErrUnsatisfiable) {
					t.Errorf("%s: the error is of another kind: %v", tc.reason, err)
				}

				return
			}

			got := ""
			if choice.Next != nil {
				got = choice.Next.Name
			}

			if got != tc.next {
				t.Errorf("%s: %q comes next, not %q", tc.reason, got, tc.next)
			}
		})
	}
}

// TestUpgradesEnd holds that, whatever a catalog says, upgrading comes to an end, and to the head if nothing is missing.
func TestUpgradesEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const most = 6

		name := func(i int) string { return fmt.Sprintf("p.v%d", i) }
		n := rapid.IntRange(1, most).Draw(t, "versions")

		var versions strings.Builder

		for i := range n {
			replaces := ""
			if to := rapid.IntRange(-1, most).Draw(t, "replaces"); to >= 0 {
				replaces = name(to)
			}

			versions.WriteString(csv(name(i), fmt.Sprintf("%d.0.0", i), replaces,
				"skips: ["+name(rapid.IntRange(0, most).Draw(t, "skips"))+"]"))
		}

		c := parse("- packageName: p\n  channels: [{name: c, currentCSV: "+name(n-1)+"}]\n", versions.String(), "")
		r := &catalog.Request{Package: "p", Installed: name(rapid.IntRange(0, most).Draw(t, "installed"))}

		for range most + 1 {
			choice, err := c.Choose(r)
			if err != nil || choice.Next == nil {
				return
			}

			r.Installed, r.InstalledNumber = choice.Next.Name, choice.Next.Number.String()
		}

		t.Fatalf("it never ends; it is at %s", r.Installed)
	})
}

func TestBelongs(t *testing.T) {
	t.Parallel()

	c := etcd()
	for name, want := range map[string]bool{"etcd.v1": true, "etcd.v4": true, "etcd.v5": false, "": false} {
		if got := c.Belongs(name, "etcd"); got != want {
			t.Errorf("%q belongs to etcd: %v", name, got)
		}
	}

	if c.Belongs("etcd.v1", "other") {
		t.Error("a version belongs to a package that is not there")
	}
}

func TestWhere(t *testing.T) {
	t.Parallel()

	const global = "ambit-system"

	for name, tc := range map[string]struct {
		reason string
		spec   olmv1alpha1.SubscriptionSpec
		want   string
		err    string
	}{
		"own namespace first": {
			reason: "without sourceNamespace, the nearest one counts",
			spec:   olmv1alpha1.SubscriptionSpec{CatalogSource: "c", Package: "p"}, want: "[mine/c ambit-system/c]",
		},
		"named": {
			reason: "what is named is not looked for elsewhere",
			spec:   olmv1alpha1.SubscriptionSpec{CatalogSource: "c", Package: "p", CatalogSourceNamespace: global},
			want:   "[ambit-system/c]",
		},
		"somebody else's": {
			reason: "an InstallPlan would show what it holds",
			spec:   olmv1alpha1.SubscriptionSpec{CatalogSource: "c", Package: "p", CatalogSourceNamespace: "theirs"},
			want:   "[]",
			err:    "spec.sourceNamespace is theirs; a CatalogSource has to be in the Subscription's own namespace, or in " + global,
		},
		"no source": {
			reason: "nothing is guessed", spec: olmv1alpha1.SubscriptionSpec{Package: "p"}, want: "[]", err: "spec.source",
		},
		"no package": {
			reason: "nothing is guessed", spec: olmv1alpha1.SubscriptionSpec{CatalogSource: "c"}, want: "[]", err: "spec.name",
		},
	} {
		got, err := catalog.Where("mine", global, &tc.spec)
		if fmt.Sprint(got) != tc.want || (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %s: %v, %v", name, tc.reason, got, err)
		}
	}
}
