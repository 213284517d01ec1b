package page

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/ambit-k8s/ambit/internal/overview"
	"github.com/ambit-k8s/ambit/internal/printable"
)

// The marks of a plan on a link: what would become of an operator in a namespace.
const (
	unmarked = iota
	created
	changed
	deleted
	refused
)

// planShare is how many times the duration of a plan passes before the next one, so that planning takes a fifth of the time at
// most: a plan asks the API server about each file, and about each namespace in which an account writes.
const planShare = 4

// planned is the last plan, with its text.
type planned struct {
	edition

	// objects are the single writes, by namespace.
	objects map[string][]PlannedObject
	// due has a value when there is something to plan for. noFiles says that there never is.
	due     chan struct{}
	noFiles bool
}

// ShownPlan is what a page shows of the plan.
type ShownPlan struct {
	// Version grows with every change of the plan.
	Version int       `json:"version"`
	Taken   time.Time `json:"taken"`
	// Problem says why it is not newer.
	Problem string `json:"problem,omitempty"`
	// NoFiles says that the page was started without files. Plan is a DrawnPlan; null before the first.
	NoFiles bool            `json:"noFiles,omitempty"`
	Plan    json.RawMessage `json:"plan"`
}

// DrawnPlan is a plan on the map.
type DrawnPlan struct {
	// Chart is everything that is there or would be, with marks on what would change.
	Chart *Chart `json:"chart"`
	// Objects are how many would be written, by what would be done to them.
	Objects map[string]int `json:"objects"`
	// Data is what ambit plan prints for programs, without the objects.
	Data any `json:"data"`
}

// runPlan keeps the plan up to date until the context ends, or until it is known that there are no files. While no tab is open,
// it plans only once.
func (l *live) runPlan(ctx context.Context, source Source) {
	for {
		select {
		case <-l.plan.due:
		case <-ctx.Done():
			return
		}

		l.mu.Lock()
		snapshot := l.snapshot
		l.mu.Unlock()

		began := time.Now()
		plan, err := source.Plan(ctx)

		switch {
		case ctx.Err() != nil:
			return
		case err == nil && plan == nil:
			l.mu.Lock()
			l.plan.noFiles = true
			l.wakeAll()
			l.mu.Unlock()

			return
		case err == nil:
			err = l.acceptPlan(snapshot, plan, time.Now())
		}

		if err != nil {
			l.fail(&l.plan.edition, err)
		}

		select {
		case <-time.After(max(settle, planShare*time.Since(began))):
		case <-ctx.Done():
		}
	}
}

// replan has a new plan made if a tab is open, or if there was none yet.
func (l *live) replan() {
	if l.tabs == 0 && l.plan.version > 0 {
		return
	}

	select {
	case l.plan.due <- struct{}{}:
	default:
	}
}

func (l *live) acceptPlan(snapshot *Snapshot, p *Plan, now time.Time) error {
	drawn := &DrawnPlan{Chart: p.chart(snapshot), Objects: map[string]int{}, Data: p.Data}
	objects := map[string][]PlannedObject{}

	for i := range p.Objects {
		o := &p.Objects[i]
		objects[o.Namespace] = append(objects[o.Namespace], *o)

		if o.Refused != "" {
			drawn.Objects["refused"]++
		} else {
			drawn.Objects[o.Action]++
		}
	}

	text, err := printable.CompactJSON(drawn)
	if err != nil {
		return err
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	l.plan.objects = objects
	l.renew(&l.plan.edition, text, now)

	return nil
}

// shownPlan is the plan that is to be shown now.
func (l *live) shownPlan() ShownPlan {
	l.mu.Lock()
	defer l.mu.Unlock()

	return ShownPlan{l.plan.version, l.plan.taken, l.plan.problem, l.plan.noFiles, l.plan.text}
}

// plannedIn are the single writes in a namespace, or without one those of the whole cluster.
func (l *live) plannedIn(namespace string) any {
	l.mu.Lock()
	defer l.mu.Unlock()

	return map[string]any{"objects": append([]PlannedObject{}, l.plan.objects[namespace]...)}
}

// chart is everything that is there or would be, with marks.
func (p *Plan) chart(snapshot *Snapshot) *Chart {
	was, is := overview.New(nil, slices.Clone(snapshot.Services), snapshot.Namespaces), p.after(snapshot)
	union := &Snapshot{
		Overview: &overview.Overview{Scopes: p.scopes(snapshot), Namespaces: is.Namespaces},
		NotRead:  snapshot.NotRead, Notes: snapshot.Notes, Flags: snapshot.Flags,
	}

	var marks []int

	for before, after := range sideBySide(was.Services, is.Services) {
		union.Services, marks = append(union.Services, *cmp.Or(after, before)), append(marks, markOf(before, after))
	}

	return chartOf(union, marks)
}

// after are the services that would exist: of the scopes that were planned, those of the plan; of the others, those that exist.
func (p *Plan) after(snapshot *Snapshot) *overview.Overview {
	services, planned := slices.Clone(p.Services), map[string]bool{}
	for _, name := range p.Planned {
		planned[name] = true
	}

	for i := range snapshot.Services {
		if !planned[snapshot.Services[i].Scope] {
			services = append(services, snapshot.Services[i])
		}
	}

	return overview.New(nil, services, slices.Concat(snapshot.Namespaces, p.Namespaces))
}

// scopes are the existing scopes as they are, and those that would be new.
func (p *Plan) scopes(snapshot *Snapshot) []overview.Scope {
	out := slices.Clone(snapshot.Scopes)

	for i := range p.Scopes {
		s := &p.Scopes[i]
		if !slices.ContainsFunc(snapshot.Scopes, func(l overview.Scope) bool { return l.Name == s.Name && l.Group == s.Group }) {
			out = append(out, *s)
		}
	}

	return out
}

// markOf says what would become of a service, which is nil where there is none.
func markOf(before, after *overview.Service) int {
	if after == nil {
		return deleted
	}

	isMissing := after.State == overview.Failed || after.State == overview.Partial

	switch {
	case before == nil && isMissing, before != nil && isMissing && before.State != after.State:
		return refused
	case before == nil:
		return created
	case before.State != after.State || !equality.Semantic.DeepEqual(before.Roles, after.Roles):
		return changed
	default:
		return unmarked
	}
}
