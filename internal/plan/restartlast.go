package plan

import (
	"slices"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// restartLast makes a reader begin again whose last list is gone, and takes the marks of restarts off it: what makes it begin
// again is that the template loses its mark. One whose template has none has its pods evicted, so that none comes to stay. Once
// nothing is to begin again, what is left of marks goes where that restarts nobody.
func (p *Plan) restartLast(f *facts.Facts, reader *facts.Workload, r Restart, stale []*facts.Pod, some bool) {
	if reader.ListHash == "" {
		// Pods with a mark that their template no longer has are being replaced.
		stale = slices.DeleteFunc(stale, func(p *facts.Pod) bool { return p.ListHash != "" })
	}

	if len(stale) == 0 {
		r.Quiet, r.TemplateStays = true, some || reader.ListHash == ""
		// A mark that stays is no reason to write: it would be one forever.
		if !r.TemplateStays || !reader.Restarted.IsZero() || reader.RestartWait != 0 {
			p.Restarts = append(p.Restarts, r)
		}

		return
	}

	last := believed(f, reader.Restarted)
	if due := last.Add(f.RestartInterval); !last.IsZero() && f.Now.Before(due) {
		p.wake(due, r.Scopes...)

		return
	}

	if reader.ListHash == "" || evicts(reader, stale) {
		r.Evict, r.TemplateStays = refsOf(stale), true
	}

	p.Restarts = append(p.Restarts, r)
}
