package plan

import (
	"time"

	"github.com/ambit-k8s/ambit/internal/facts"
)

const (
	// DefaultRestartInterval is the least time between two restarts of one workload, unless a flag says otherwise. Most operators
	// become leader 15 s after their predecessor ended, when its lease has expired.
	DefaultRestartInterval = 30 * time.Second
	// maxRestartInterval is how far apart restarts come at most while their list keeps changing.
	maxRestartInterval = 5 * time.Minute
	// quietIntervals is for how many intervals nothing may change before a change counts as a single one again.
	quietIntervals = 2
	// firstPods is for how long a new workload makes its first pods.
	firstPods = 5 * time.Second
)

// pace says when a reader restarts for a list that changed, so that it gets to work in between although the list keeps
// changing: each restart puts the next twice as far away, until the list was quiet for a while. All of it is known from the
// cluster, so that a manager that restarts continues at the same pace.
type pace struct {
	// interval is the least time between two restarts, last the last one, and wait the least time after that.
	interval, wait time.Duration
	last           time.Time
	// changed is when the list last changed, and before when it changed before that.
	changed, before time.Time
}

func paceOf(f *facts.Facts, reader *facts.Workload, pods []*facts.Pod, w written) *pace {
	p := &pace{
		interval: f.RestartInterval, wait: reader.RestartWait, last: believed(f, reader.Restarted), changed: w.at, before: w.before,
	}

	if reader.Kind.Restarts() == facts.ByEviction {
		p.last = youngestPod(reader, pods)
	}

	return p
}

// believed is a time of the past, as far as clocks agree about that. What says a time further ahead than restarts can be apart
// counts as saying none: whoever may edit a workload can write any into it.
func believed(f *facts.Facts, at time.Time) time.Time {
	if at.After(f.Now.Add(max(f.RestartInterval, maxRestartInterval))) {
		return time.Time{}
	}

	return at
}

// youngestPod is when the youngest pod of a workload was made; zero where that is one of its first. On a workload whose pods are
// evicted nothing is written, so that only this tells when it last restarted.
func youngestPod(w *facts.Workload, pods []*facts.Pod) time.Time {
	var youngest time.Time

	for _, pod := range pods {
		if pod.Created.After(youngest) {
			youngest = pod.Created
		}
	}

	if !youngest.After(w.Created.Add(firstPods)) {
		return time.Time{}
	}

	return youngest
}

// next is when the restart is due, the zero time when at once, and what its successor has to wait after it.
func (p *pace) next() (due time.Time, wait time.Duration) {
	if p.last.IsZero() {
		return time.Time{}, p.interval
	}

	quietSince := p.last
	if p.before.After(quietSince) {
		quietSince = p.before
	}

	if p.changed.Sub(quietSince) >= quietIntervals*p.interval {
		return time.Time{}, p.interval
	}

	longest := max(p.interval, maxRestartInterval)
	wait = min(max(p.interval, p.wait), longest)

	return p.last.Add(wait), min(2*wait, longest)
}
