package plan_test

import (
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestPodsOfReaders: a reader restarts for its own pods and for no others, also one that its Deployment left behind.
func TestPodsOfReaders(t *testing.T) {
	t.Parallel()

	const hash = "5d8f"

	deployment := facts.WorkloadRef{Kind: facts.Deployment, Name: "w"}
	left := facts.WorkloadRef{Kind: facts.ReplicaSet, Name: "w-" + hash}

	for name, tc := range map[string]struct {
		reader facts.WorkloadRef
		of     facts.WorkloadRef
		// reads is the hash of the reader's template, pods that of its pods.
		reads, pods string
		want        bool
	}{
		"its own":                             {left, left, "", "", true},
		"of another name":                     {left, facts.WorkloadRef{Kind: facts.ReplicaSet, Name: "v"}, "", "", false},
		"left behind":                         {left, deployment, hash, hash, true},
		"left behind, of another ReplicaSet":  {left, deployment, hash, "77aa", false},
		"left behind, known by its own name":  {left, left, hash, "", true},
		"known by two names":                  {left, left, hash, hash, false},
		"a ReplicaSet that has no such name":  {left, deployment, "77aa", "77aa", false},
		"another kind of the name":            {deployment, facts.WorkloadRef{Kind: facts.StatefulSet, Name: "w"}, "", "", false},
		"a Deployment's, whatever their hash": {deployment, deployment, "", hash, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := listed()
			w, pod := reader(f)
			w.Kind, w.Name, w.KeepsPods = tc.reader.Kind, tc.reader.Name, true
			pod.Controller = tc.of
			bear(&w.Template, tc.reads)
			bear(&pod.Template, tc.pods)

			p := plan.New([]scope.Scope{newScope("s")}, f)
			if is := len(p.Restarts) == 1 && len(p.Restarts[0].Evict) == 1; is != tc.want {
				t.Errorf("restarts %v", p.Restarts)
			}
		})
	}
}

// listed is a cluster with a list that was written just now.
func listed() *facts.Facts {
	f := cluster()
	f.OperatorNamespace.ConfigMaps["namespace-scope"] = facts.ConfigMap{
		HasList: true, List: "ops", ListHash: scope.ListHash("ops", 0), Applied: now, ListVersion: listVersion,
	}

	return f
}

func bear(t *facts.Template, hash string) {
	t.Labels = labels.Set{"intent": "projected"}
	if hash != "" {
		t.Labels[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	}
}

// TestManyReaders: whoever administers an operator namespace may have as many workloads, pods and lists there as Ambit remembers.
// A plan for them takes about a second of a processor's time, and minutes if it looks at all pods for each workload.
func TestManyReaders(t *testing.T) {
	t.Parallel()

	const many, lists, limit = 5000, 80, 30 * time.Second

	f := listed()
	w, pod := reader(f)
	w.KeepsPods = true

	var scopes []scope.Scope

	for i := range lists {
		s, name := newScope("s"), fmt.Sprint("list-", 100+i)
		s.Owner.Name, s.WatchList = name, name
		scopes = append(scopes, s)
		f.OperatorNamespace.ConfigMaps[name] = f.OperatorNamespace.ConfigMaps["namespace-scope"]
		w.Template.Reads = append(w.Template.Reads, name)
	}

	workloads, pods := make([]facts.Workload, many), make([]facts.Pod, many)
	for i := range many {
		workloads[i], pods[i] = *w, *pod
		workloads[i].Name, pods[i].Name = fmt.Sprint("w", i), fmt.Sprint("p", i)
		pods[i].Controller.Name = fmt.Sprint("w", many-i)
	}

	f.OperatorNamespace.Workloads, f.OperatorNamespace.Pods = workloads, pods

	began := time.Now()
	plan.New(scopes, f)

	if took := time.Since(began); took > limit {
		t.Errorf("a plan took %s", took)
	}
}
