package installs_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/install"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

var (
	collecting sync.Once
	hash       = regexp.MustCompile(`-[0-9a-f]{10}$`)
)

// alone is a world in which no other test runs, so that Ambit may be stopped, and its requests counted.
func alone(t *testing.T) *world {
	t.Helper()

	w := &world{beds.Alone(t, "cluster")}
	collecting.Do(func() { w.awaitCollector(w.Namespace("collector")) })

	return w
}

// killed ends Ambit in the middle of whatever it does, and starts it again.
func (w *world) killed(after time.Duration) {
	w.Helper()
	time.Sleep(after)
	w.Reborn("operatorgroup")
}

// TestKilledInTheMiddle: Ambit dies again and again while operators come, change and go, and what is there in the end is what
// is there after a calm day.
func TestKilledInTheMiddle(t *testing.T) {
	w := alone(t)
	r := rand.New(rand.NewPCG(1, 2))
	moment := func() time.Duration { return time.Duration(r.IntN(400)) * time.Millisecond }

	calm, stormy := w.lives(func() {}), w.lives(func() { w.killed(moment()) })

	// How names end is another matter each time.
	for _, all := range [][]string{calm, stormy} {
		for i := range all {
			all[i] = regexp.MustCompile(`-[0-9a-f]{16}$`).ReplaceAllString(all[i], "")
		}

		slices.Sort(all)
	}

	if !slices.Equal(calm, stormy) {
		t.Errorf("on a calm day:\n%s\nafter deaths:\n%s", strings.Join(calm, "\n"), strings.Join(stormy, "\n"))
	}
}

// lives lets two operators come, one be replaced and one go, has something happen after each step, and lists what is there then.
func (w *world) lives(happens func()) []string {
	w.Helper()

	own := w.Namespace("own")
	in := []string{w.Namespace("a"), w.Namespace("b"), w.Namespace("c")}
	g := w.group(own, targets(in[:2]...))

	elsewhere := func(c *olm.ClusterServiceVersion) {
		strategy := &c.Spec.InstallStrategy.StrategySpec
		strategy.Permissions[0].ServiceAccountName = "other"
		strategy.DeploymentSpecs[0] = olm.StrategyDeploymentSpec{Name: "other", Spec: deployment("other")}
	}
	first, other := csv(own, "op.v1", clusterPermissions("get nodes")), csv(own, "other.v1", elsewhere)
	w.Make(first, other)
	happens()
	w.succeeds(first)
	happens()
	w.succeeds(other)

	w.Change(g, func() { g.Spec.TargetNamespaces = in })
	happens()

	second := csv(own, "op.v2", clusterPermissions("list nodes"))
	second.Spec.Replaces = first.Name
	w.Make(second)
	happens()
	w.gone(first)
	w.Change(g, func() { g.Spec.TargetNamespaces = in[1:] })
	happens()
	w.Remove(other)
	happens()
	w.succeeds(second)
	w.reaches(g, in[1:]...)
	w.told(second, g)

	all := append([]string{own}, in...)

	w.Eventually("what is left of what is gone is gone, too", func() error {
		gone := append(w.made(first, all...), w.made(other, all...)...)
		// What was granted in a target that was left is taken back once the operator is told of the others alone.
		for _, object := range w.made(second, in[0]) {
			if strings.Contains(object, " "+in[0]+"/") {
				gone = append(gone, object)
			}
		}

		if len(gone) > 0 {
			return fmt.Errorf("left are %q", gone)
		}

		if w.Allowed(own, "op", in[0], "get secrets") || w.Allowed(own, "op", "", "get nodes") {
			return fmt.Errorf("op may still do what %s let it", first.Name)
		}

		return nil
	})

	for _, namespace := range append(slices.Clone(in[1:]), own) {
		w.May(own, "op", namespace, "get secrets")
	}

	w.May(own, "op", "", "list nodes")
	w.Rest(time.Now())

	left := w.made(second, all...)

	// Names that are made up, and hashes of them, differ from one life to the other.
	for i := range left {
		for j, namespace := range all {
			left[i] = strings.ReplaceAll(left[i], namespace, fmt.Sprintf("namespace-%d", j))
		}

		left[i] = hash.ReplaceAllString(left[i], "-HASH")
	}

	slices.Sort(left)

	return left
}

// TestNothingForNothing: in a world that does not change, nothing is asked for and nothing is written, for an operator that is
// installed by Ambit and for one that is installed by an account; and a new Ambit only looks.
func TestNothingForNothing(t *testing.T) {
	w := alone(t)
	own, scoped, target := w.Namespace("own"), w.Namespace("scoped"), w.Namespace("target")
	crd := w.definition("nothings", "Nothing")
	direct, g := csv(own, "op.v1", clusterPermissions("get nodes"), owning(crd, "Nothing")), w.group(own, targets(target))
	delegated := csv(scoped, "op.v1")
	w.scoped(scoped, scoped)

	for i, place := range install.Needs(delegated, scoped, []string{scoped}) {
		w.give(scoped, fmt.Sprintf("nothing-%d-%s", i, scoped), place)
	}

	w.makesGroupRoles(scoped)

	w.Make(direct, delegated)
	w.succeeds(direct)
	w.succeeds(delegated)
	w.told(direct, g)
	w.Rest(time.Now(), "")

	began := time.Now()

	for _, obj := range []client.Object{direct, delegated, g} {
		w.Change(obj, func() {
			labels := maps.Clone(obj.GetLabels())
			if labels == nil {
				labels = map[string]string{}
			}

			labels["touched"] = "yes"
			obj.SetLabels(labels)
		})
	}

	if got := w.Rest(began, ""); len(got) > 0 {
		t.Errorf("changes that change nothing: %v", got)
	}

	began = time.Now()
	w.killed(0)
	w.Eventually("the new Ambit asks who it is", func() error {
		if asked := w.Count(began, func(*testbed.Request) bool { return true }); asked["create selfsubjectreviews"] == 0 {
			return fmt.Errorf("it asked for %v", asked)
		}

		return nil
	})

	asked := w.Rest(began, "")
	for what := range asked {
		if verb, resource, _ := strings.Cut(what, " "); verb != "list" && verb != "get" && resource != "selfsubjectrulesreviews" {
			t.Errorf("after a restart: %s", what)
		}
	}

	before := direct.Status.DeepCopy()
	w.succeeds(direct)

	if before.LastUpdateTime == nil || !before.LastUpdateTime.Equal(direct.Status.LastUpdateTime) {
		t.Errorf("the status was written again: %v, %v", before.LastUpdateTime, direct.Status.LastUpdateTime)
	}
}
