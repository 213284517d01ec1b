package plan

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/facts"
)

// readers are what may restart in an operator namespace. Whoever administers that may have thousands of workloads there,
// thousands of pods, and lists: to look at all of one for each of another would take minutes.
type readers struct {
	// lists are sorted by name.
	lists     []liveList
	workloads []facts.Workload
	// reads are the hashes of the lists that each workload reads, once somebody asked.
	reads []map[string]string
	// pods are by what controls them, hashed by their hash as well, where they have one.
	pods   map[facts.WorkloadRef][]*facts.Pod
	hashed map[hashed][]*facts.Pod
	// injectors are those of the living scopes that inject into workloads, by their index.
	injectors map[int]injector
}

type hashed struct {
	facts.WorkloadRef

	hash string
}

func newReaders(f *facts.Facts, lists []liveList) *readers {
	all := &readers{
		lists: lists, workloads: f.OperatorNamespace.Workloads, reads: make([]map[string]string, len(f.OperatorNamespace.Workloads)),
		pods: map[facts.WorkloadRef][]*facts.Pod{}, hashed: map[hashed][]*facts.Pod{},
	}

	for i := range f.OperatorNamespace.Pods {
		pod := &f.OperatorNamespace.Pods[i]
		all.pods[pod.Controller] = append(all.pods[pod.Controller], pod)

		if hash := pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey]; hash != "" {
			of := hashed{pod.Controller, hash}
			all.hashed[of] = append(all.hashed[of], pod)
		}
	}

	return all
}

// podsOf are the pods of a workload. A ReplicaSet that its Deployment left behind bears the hash by which its pods are still
// known as the Deployment's.
func (all *readers) podsOf(w *facts.Workload) []*facts.Pod {
	pods := all.pods[facts.WorkloadRef{Kind: w.Kind, Name: w.Name}]

	hash := w.Template.Labels[appsv1.DefaultDeploymentUniqueLabelKey]
	if w.Kind != facts.ReplicaSet || hash == "" {
		return pods
	}

	name, cut := strings.CutSuffix(w.Name, "-"+hash)
	if !cut {
		return pods
	}

	left := all.hashed[hashed{facts.WorkloadRef{Kind: facts.Deployment, Name: name}, hash}]
	if len(pods) == 0 {
		return left
	}

	return slices.Concat(left, slices.DeleteFunc(slices.Clone(pods), func(p *facts.Pod) bool {
		return p.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == hash
	}))
}

// refsOf name pods, sorted.
func refsOf(pods []*facts.Pod) []facts.PodRef {
	refs := collect.Map(pods, func(pod *facts.Pod) facts.PodRef { return pod.PodRef })
	slices.SortFunc(refs, byName)

	return refs
}
