package install

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
)

// TestWhatMultipliesIsBounded: each Deployment of a CSV gets all of its annotations, and each container what a Subscription says.
// Who writes thousands of each, which fit into an object, has none of them made.
func TestWhatMultipliesIsBounded(t *testing.T) {
	t.Parallel()

	deployments := func(n int) func(csv *olm.ClusterServiceVersion) {
		return func(csv *olm.ClusterServiceVersion) {
			specs := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
			for i := range n {
				d := *(*specs)[0].DeepCopy()
				d.Name = fmt.Sprintf("d%d", i)
				*specs = append(*specs, d)
			}
		}
	}
	annotations := func(n int) func(csv *olm.ClusterServiceVersion) {
		return func(csv *olm.ClusterServiceVersion) {
			csv.Annotations = map[string]string{}
			for i := range n {
				csv.Annotations[fmt.Sprintf("a%d", i)] = ""
			}
		}
	}
	sources := func(n int) func(csv *olm.ClusterServiceVersion) {
		return func(csv *olm.ClusterServiceVersion) {
			pod := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec
			pod.Containers[0].EnvFrom = make([]corev1.EnvFromSource, n)
		}
	}
	config := func(n int, item string) string {
		return "config: {" + item + ": [" + strings.TrimSuffix(strings.Repeat("{},", n), ",") + "]}"
	}

	type edits []func(csv *olm.ClusterServiceVersion)

	for reason, tc := range map[string]struct {
		of     edits
		config string
		is     bool
	}{
		"as operators are":           {edits{deployments(40), annotations(100)}, config(100, "tolerations"), false},
		"many deployments alone":     {edits{deployments(2_000)}, "", false},
		"many annotations alone":     {edits{annotations(10_000)}, "", false},
		"what a Subscription says":   {nil, config(20_000, "tolerations"), false},
		"annotations in each":        {edits{deployments(2_000), annotations(4_000)}, "", true},
		"tolerations in each":        {edits{deployments(2_000)}, config(4_000, "tolerations"), true},
		"many compared with as many": {edits{sources(20_000)}, config(20_000, "envFrom"), true},
	} {
		w := snapshotOf([]string{"a"}, member("op.v1", tc.of...))
		if _, says := ReadConfig(subscription(t, tc.config)); says != nil {
			w.Configs = map[string]*Config{"op.v1": says}
		}

		v := w.Decide(w.CSVs[0])
		if is := v.Reason == ReasonLimit; is != tc.is || is && (v.Phase != olm.CSVPhaseFailed || v.ApplyObjects) {
			t.Errorf("%s: it is %s, %s: %s", reason, v.Phase, v.Reason, v.Message)
		}
	}
}

// TestLastOfManyVariables: however many there are, each is looked at once.
func TestLastOfManyVariables(t *testing.T) {
	t.Parallel()

	const names = 200_000

	env := make([]corev1.EnvVar, 0, 2*names)
	for i := range 2 * names {
		env = append(env, corev1.EnvVar{Name: strconv.Itoa(i % names), Value: strconv.Itoa(i)})
	}

	if last := lastOf(env); len(last) != names || last[0].Value != strconv.Itoa(names) {
		t.Errorf("there are %d, of which the first is %v", len(last), last[0])
	}
}

// TestManyItemsCountForMore: three bytes of JSON may be hundreds in Go's types.
func TestManyItemsCountForMore(t *testing.T) {
	t.Parallel()

	of := func(n int) Size {
		csv := &olm.ClusterServiceVersion{}
		csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = make([]olm.StrategyDeploymentSpec, 1)
		csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Tolerations = make([]corev1.Toleration, n)

		obj, err := Untyped(csv)
		if err != nil {
			t.Fatal(err)
		}

		return Trim(obj)
	}

	if few := of(fewItems); few.Bytes > 2<<20 || few.Over() != "" {
		t.Errorf("%d items count for %d bytes: %s", fewItems, few.Bytes, few.Over())
	}

	if many := of(100_000); many.Over() == "" {
		t.Errorf("100,000 items count for %d bytes", many.Bytes)
	}
}
