package read

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// deploymentOf is a Deployment that says that Ambit wrote it, and takes about so many bytes.
func deploymentOf(name, version string, bytes int) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ops", Name: name, ResourceVersion: version, Annotations: map[string]string{"note": strings.Repeat("n", bytes)},
		ManagedFields: []metav1.ManagedFieldsEntry{{
			Manager: scope.FieldManager, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:selector":{}}}`),
		}},
	}}
}

// installing is a store in which something is installed in a namespace, and the sink of its Deployments. asked counts how
// often the sink said that it leaves out more or less.
func installing(limit int) (s *Store, k *sink[*appsv1.Deployment], asked *int) {
	s, asked = NewStore(&ear{}), new(int)
	in := newInstalls(func() {})
	s.installs["ops"] = in

	of := tableSink(&in.deployments, convertDeployment)
	of.allowance, of.bounded = in.allowances.add(&appsv1.DeploymentList{}, limit), func() { *asked++ }
	of.weigh = func(d *appsv1.Deployment) int { return Weight(d) }
	of.lock, of.done = &s.mu, func() {}

	return s, &of, asked
}

func (s *Store) installedIn(namespace string) (names map[string]*appsv1.Deployment, leftOut string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	f := s.installs[namespace].facts()

	return f.Deployments, f.LeftOut.Words
}

// TestForgedDeploymentsAreLeftOut: of Deployments that say that Ambit wrote them the largest are left out, and named; one that is
// told of as gone in a list makes room, and that is told.
func TestForgedDeploymentsAreLeftOut(t *testing.T) {
	t.Parallel()

	const large = 10_000

	s, k, asked := installing(5 * large)
	objs := []any{deploymentOf("small", "1", 10)}

	for i := range 20 {
		objs = append(objs, deploymentOf(fmt.Sprintf("large-%02d", i), "2", large+i))
	}

	must(t, k.Replace(objs, "9"))

	names, leftOut := s.installedIn("ops")
	if names["small"] == nil || names["large-00"] == nil || names["large-19"] != nil || leftOut != "16 Deployments" {
		t.Fatalf("%d are kept, and left out are %s", len(names), leftOut)
	}

	l := s.installs["ops"].facts().LeftOut
	if !l.MayHave("large-19") || l.MayHave("small") || l.MayHave("other") {
		t.Errorf("left out are %+v", l)
	}

	*asked = 0

	must(t, k.Replace(objs[:1], "10"))

	if names, leftOut = s.installedIn("ops"); len(names) != 1 || leftOut != "" || *asked == 0 {
		t.Errorf("%d are kept, left out are %q, and that was told %d times", len(names), leftOut, *asked)
	}
}

// TestWhatAmbitWroteIsBounded: others may have made large what Ambit writes on, and the answer to a write is the whole of it.
// What has room is remembered at once, and what has none when the watch has told of it.
func TestWhatAmbitWroteIsBounded(t *testing.T) {
	t.Parallel()

	const large = 100_000

	s, k, _ := installing(5 * large)

	for i := range 20 {
		s.Wrote(deploymentOf(fmt.Sprintf("large-%02d", i), "2", large))
	}

	if names, leftOut := s.installedIn("ops"); len(names) != 4 || leftOut != "" {
		t.Fatalf("%d are kept, and left out are %q", len(names), leftOut)
	}

	// The watch tells of all, of one that is small, too: those that leave for it leave the store.
	for i := range 20 {
		must(t, k.Add(deploymentOf(fmt.Sprintf("large-%02d", i), "2", large)))
	}

	for i := range 20 {
		must(t, k.Add(deploymentOf(fmt.Sprintf("small-%02d", i), "3", 10)))
	}

	names, leftOut := s.installedIn("ops")
	if names["small-00"] == nil || len(names) != 24 || leftOut != "16 Deployments" {
		t.Errorf("%d are kept, and left out are %s", len(names), leftOut)
	}
}

// TestLeavingAndWritingAtOnce: a watch that leaves something out and a write that is taken in wait for each other in no circle.
func TestLeavingAndWritingAtOnce(t *testing.T) {
	t.Parallel()

	s, k, _ := installing(50_000)

	var both sync.WaitGroup

	both.Go(func() {
		for i := range 2_000 {
			_ = k.Add(deploymentOf(fmt.Sprintf("d-%d", i%40), strconv.Itoa(2*i+1), 100*(i%70)))
		}
	})
	both.Go(func() {
		for i := range 2_000 {
			s.Wrote(deploymentOf(fmt.Sprintf("d-%d", i%40), strconv.Itoa(2*i+2), 100*(i%50)))
		}
	})

	done := make(chan struct{})

	go func() {
		both.Wait()
		close(done)
	}()

	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("they wait for each other")
	}
}
