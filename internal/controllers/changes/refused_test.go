package changes

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// patientQueue notes for when a key was added, and how urgent it was then.
type patientQueue struct {
	priorityqueue.PriorityQueue[scope.Key]

	of        scope.Key
	due       map[time.Time]struct{}
	priority  int
	forgotten int
}

func (q *patientQueue) Forget(key scope.Key) {
	if key == q.of {
		q.forgotten++
	}
}

func (q *patientQueue) AddAfter(key scope.Key, wait time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: wait, Priority: new(0)}, key)
}

func (q *patientQueue) AddWithOpts(how priorityqueue.AddOpts, keys ...scope.Key) {
	if keys[0] == q.of {
		q.due[time.Now().Add(how.After)] = struct{}{}
		q.priority = *how.Priority
	}
}

// TestPermissionsThatChangeAllTheTime: whoever administers a namespace in which hundreds of others were refused something has
// these planned again as often as they like at first, and then seldom, and never before what changes elsewhere. So does
// whoever may write a definition.
func TestPermissionsThatChangeAllTheTime(t *testing.T) {
	t.Parallel()

	const (
		keys    = 200
		seconds = 60
		every   = 50 * time.Millisecond
	)

	evil := map[string]struct{}{"evil": {}}

	all := make([]scope.Key, keys)
	for i := range all {
		all[i] = scope.NamespaceScopes.In(fmt.Sprintf("ops-%d", i))
	}

	for how, tc := range map[string]struct {
		change func(c *Changes)
		atOnce int
	}{
		"somebody writes":  {func(c *Changes) { c.PermissionsChanged("evil") }, busyPlans},
		"Ambit writes":     {func(c *Changes) { c.Wrote(map[string]struct{}{"evil": {}, "other": {}}, every) }, busyPlans},
		"definitions come": {func(c *Changes) { c.DefinitionsChanged(all) }, fewPlans},
		"they matter":      {func(c *Changes) { c.DefinitionsChanged(nil) }, fewPlans},
		"roles change":     {func(c *Changes) { c.ClusterPermissionsChanged(facts.ClusterPermissions{Bound: true}) }, fewPlans},
		"everybody":        {func(c *Changes) { c.ClusterChanged(nil, true) }, fewPlans},
		"rivals move":      {func(c *Changes) { c.RivalsChanged("evil", all) }, fewPlans},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, q := New(), &patientQueue{of: scope.NamespaceScopes.In("ops-7"), due: map[time.Time]struct{}{}}
			c.Start(scope.NamespaceScopes, q)

			for _, key := range all {
				c.Follow(key, nil)
				c.Refuse(key, evil)
				c.Define(key, how == "they matter")
			}

			for range seconds * time.Second / every {
				tc.change(c)
				time.Sleep(every)
			}

			// The first ones at once, and then one in ten seconds.
			if n := len(q.due); n < tc.atOnce || n > tc.atOnce+10 {
				t.Errorf("%s: it is planned %d times in a minute", how, n)
			}

			if q.priority != handler.LowPriority || q.forgotten > tc.atOnce {
				t.Errorf("%s: it is planned with priority %d, and its failures are forgotten %d times", how, q.priority, q.forgotten)
			}

			last := false
			for at := range q.due {
				last = last || at.After(time.Now().Add(-every))
			}

			if !last {
				t.Errorf("%s: nothing is planned after the last change", how)
			}

			if c.KeyChanged(q.of); q.priority != 0 {
				t.Errorf("%s: its own changes have priority %d", how, q.priority)
			}

			c.Refuse(q.of, map[string]struct{}{"evil": {}, "quiet": {}})

			before := len(q.due)
			if c.PermissionsChanged("quiet"); len(q.due) > before+1 {
				t.Errorf("%s: it waits for another namespace", how)
			}

			time.Sleep(time.Hour)
			c.PermissionsChanged("evil")

			if _, soon := q.due[time.Now().Add(coalesce)]; !soon {
				t.Errorf("%s: it waits where nothing has changed for long", how)
			}

			if n := len(c.rounds); n > 1 {
				t.Errorf("%s: %d namespaces are remembered", how, n)
			}
		})
	}
}
