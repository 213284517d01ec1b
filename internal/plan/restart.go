package plan

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/facts"
)

const (
	// clockSkew is how far a node's clock may be from the API server's before a container that began after the list was
	// written is taken for one that began before it, and restarted once more than needed.
	clockSkew = 2 * time.Second
	// podDelay is how long a new workload may take to show its first pod.
	podDelay = time.Second
	// doubt is for how long a reader counts as older than its list if both came within one second and Ambit did not see which was
	// first. A restart that is due happens at once, or as soon as Ambit is back; later than this, a manager that restarts and saw
	// no birth must not restart what it finds settled.
	doubt = 2 * time.Minute
)

// Restart makes one workload, or one bare pod, begin again with the present list.
type Restart struct {
	// List names the ConfigMap.
	List string
	// Reads are the hashes of all the lists that the reader will begin with, by the names of their ConfigMaps.
	Reads map[string]string
	// Workload is the controller; its Kind is empty when a bare pod is meant.
	Workload facts.WorkloadRef
	// Evict are the pods to evict, sorted. Empty means that the pod template is annotated.
	Evict []facts.PodRef
	// At is the time recorded on the workload, and Wait how long the next restart waits after it.
	At   time.Time
	Wait time.Duration
	// Scopes are the indexes of the scopes whose operands it belongs to.
	Scopes []int
	// Last says that its lists are gone: the marks of restarts are taken off. Quiet says that nothing begins again by that, and
	// TemplateStays that those of the template are left where they are.
	Last, Quiet, TemplateStays bool
}

// written is when a list got its present value.
type written struct {
	at      time.Time
	version uint64
	// repaired says that the list was written again since, unchanged, so that the version says nothing.
	repaired bool
	// takenIn is what a reader that follows says of it.
	takenIn string
	// gone says that the list went with its last scope.
	gone bool
	// ago is how long that was before the facts were taken.
	ago time.Duration
	// before is the time of the change before the latest one.
	before time.Time
}

// planRestarts finds the readers that began before their list was written. It looks at the lists as they are in the
// cluster, not at what this plan will write: a list that changes leads to another plan.
func (p *Plan) planRestarts(f *facts.Facts, all *readers) {
	if f.OperatorNamespace.Terminating {
		return
	}

	for i := range all.lists {
		if all.lists[i].settled {
			p.restartReaders(f, all, &all.lists[i])
		}
	}

	slices.SortFunc(p.Restarts, func(a, b Restart) int {
		return cmp.Or(cmp.Compare(a.Workload.Kind, b.Workload.Kind), cmp.Compare(a.Workload.Name, b.Workload.Name),
			slices.CompareFunc(a.Evict, b.Evict, byName), cmp.Compare(a.List, b.List))
	})

	p.mergeRestarts()
}

func byName(a, b facts.PodRef) int { return cmp.Compare(a.Name, b.Name) }

func (p *Plan) restartReaders(f *facts.Facts, all *readers, list *liveList) {
	w := list.written
	w.ago = f.Now.Sub(w.at)

	for i := range f.OperatorNamespace.Workloads {
		reader := &f.OperatorNamespace.Workloads[i]
		if reader.Kind.Restarts() == facts.NoRestart || reader.RestartDisabled || !contains(reader.Template.Reads, list.name) {
			continue
		}

		if belongs := p.operandOf(list.scopes, reader.Template.Labels); len(belongs) > 0 {
			r := Restart{
				List: list.name, Reads: p.readBy(all, i), At: f.Now, Scopes: belongs,
				Workload: facts.WorkloadRef{Kind: reader.Kind, Name: reader.Name},
			}
			r.Last = !slices.ContainsFunc(all.lists, func(l liveList) bool { return !l.gone && r.Reads[l.name] != "" })
			p.restartWorkload(f, reader, all.podsOf(reader), r, w)
		}
	}

	for i := range f.OperatorNamespace.Pods {
		pod := &f.OperatorNamespace.Pods[i]
		if pod.Controller.Kind != "" || pod.RestartDisabled || !contains(pod.Reads, list.name) || !podBeganBefore(pod, w) ||
			p.keepsUp(f, pod, p.operandOf(list.scopes, pod.Labels), list.name, w) {
			continue
		}

		if belongs := p.operandOf(list.scopes, pod.Labels); len(belongs) > 0 {
			p.Restarts = append(p.Restarts, Restart{
				List: list.name, Reads: map[string]string{list.name: list.hash}, At: f.Now, Scopes: belongs,
				Evict: []facts.PodRef{pod.PodRef},
			})
		}
	}
}

// sharing adds the scopes that are being deleted to those that share a list: their operands restart as well.
func (p *Plan) sharing(list string, scopes []int) []int {
	out := slices.Clone(scopes)

	for i := range p.Scopes {
		if p.Scopes[i].Scope.Deleting() && p.Scopes[i].Scope.WatchList == list && !slices.Contains(out, i) {
			out = append(out, i)
		}
	}

	slices.Sort(out)

	return out
}

func (p *Plan) operandOf(scopes []int, l labels.Set) []int {
	return slices.DeleteFunc(slices.Clone(scopes), func(i int) bool { return !p.Scopes[i].Scope.Operands.Matches(l) })
}

func (p *Plan) restartWorkload(f *facts.Facts, reader *facts.Workload, pods []*facts.Pod, r Restart, w written) {
	if isAnnotated(reader, &r) || aboutToRoll(f, reader, r.List) {
		return
	}

	stale := p.stalePods(f, pods, &r, w)
	if r.Last {
		p.restartLast(f, reader, r, stale, len(pods) > 0)

		return
	}

	if !p.mayRestart(f, reader, &r, stale, len(pods) > 0, w) {
		return
	}

	due, wait := paceOf(f, reader, pods, w).next()
	if r.Wait = wait; f.Now.Before(due) {
		p.wake(due, r.Scopes...)

		return
	}

	if evicts(reader, stale) {
		if len(stale) == 0 {
			return
		}

		r.Evict = refsOf(stale)
	}

	p.Restarts = append(p.Restarts, r)
}

// isAnnotated says whether the pods of a reader begin again because its template says so, or began already: for a restart, or
// because something was injected.
func isAnnotated(reader *facts.Workload, r *Restart) bool {
	if reader.KeepsPods {
		return false
	}

	hash := ResolveHash(r.Reads, nil)

	return reader.ListHash == hash || reader.InjectedWith == hash
}

// evicts says whether a reader restarts only by the eviction of its pods: a change of its template would be undone, or would
// replace none of them, or not all.
func evicts(reader *facts.Workload, stale []*facts.Pod) bool {
	return reader.Kind.Restarts() == facts.ByEviction || reader.OwnedByOLM || reader.KeepsPods ||
		slices.ContainsFunc(stale, func(p *facts.Pod) bool { return p.OwnedByOLM }) // The pods themselves may have OLM's mark.
}

// mayRestart says whether a reader has pods to restart, or may be annotated before it has any.
func (p *Plan) mayRestart(f *facts.Facts, reader *facts.Workload, r *Restart, stale []*facts.Pod, some bool, w written) bool {
	if some || reader.Idle || !beganBefore(reader.Birth, w) {
		return len(stale) > 0
	}

	// No pod yet, or none that Ambit sees. A workload that is new gets a moment to show one; one that is not may be annotated,
	// since no pod restarts by that.
	shows := reader.Created.Add(podDelay)
	if f.Now.Before(shows) {
		p.wake(shows, r.Scopes...)

		return false
	}

	return true
}

// stalePods are those of a workload's pods that began before the list was written and do not follow it.
func (p *Plan) stalePods(f *facts.Facts, pods []*facts.Pod, r *Restart, w written) []*facts.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod *facts.Pod) bool {
		return !contains(pod.Reads, r.List) || !podBeganBefore(pod, w) || p.keepsUp(f, pod, r.Scopes, r.List, w)
	})
}

// podBeganBefore says whether a pod may have read the list that was replaced. In doubt it says yes: a restart too many is
// a nuisance, one too few leaves an operator blind to a namespace.
func podBeganBefore(p *facts.Pod, w written) bool {
	switch {
	case p.Ending:
		return false
	case !beganBefore(p.Birth, w):
		return false
	case p.Began.IsZero():
		// It waits, perhaps for the ConfigMap itself, and will read the new list.
		return false
	default:
		return !p.Began.After(w.at.Add(clockSkew))
	}
}

func beganBefore(b facts.Birth, w written) bool {
	switch {
	case b.BornAt != 0 && w.version != 0 && b.BornAt > w.version:
		return false
	case !b.Created.Equal(w.at):
		return b.Created.Before(w.at)
	case w.repaired:
		// Within the second of the list the order is unknown once it had to be repaired. Readers that began before it were
		// restarted when it was written; its repair restarts none that may have begun with it.
		return false
	default:
		return b.BornAt != 0 || w.ago < doubt
	}
}

// Sooner is the earlier of two times. The zero time is never.
func Sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}

	return a
}

// wake has a plan made at a time, for some of the scopes in particular.
func (p *Plan) wake(at time.Time, scopes ...int) {
	p.Again = Sooner(p.Again, at)

	for _, i := range scopes {
		p.Scopes[i].Waits = true
	}
}

// Reader names what restarts, for users.
func (r *Restart) Reader() string {
	if r.Workload.Kind == "" {
		return "Pod " + r.Evict[0].Name
	}

	return string(r.Workload.Kind) + " " + r.Workload.Name
}
