package page

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/ambit-k8s/ambit/internal/printable"
)

const (
	// settle is how long changes are gathered before they are looked at.
	settle = 150 * time.Millisecond
	// The back-off after a cluster did not answer.
	minBackOff = time.Second
	maxBackOff = 30 * time.Second
)

// live is the one snapshot that all tabs share, and what changed since it began.
type live struct {
	mu sync.Mutex
	// snapshot is the last one, nil before the first, of which the edition shows a chart.
	snapshot *Snapshot
	edition

	changes []Change
	// count is how many changes there were, including those that are forgotten.
	count int
	// news is closed at every change, and replaced.
	news chan struct{}
	tabs int
	plan planned
}

// edition is what is shown of something, and why it is not newer.
type edition struct {
	// version grows with every change.
	version int
	taken   time.Time
	problem string
	text    json.RawMessage
}

// Shown is what a page shows.
type Shown struct {
	// Version grows with every change.
	Version int       `json:"version"`
	Taken   time.Time `json:"taken"`
	// Problem says why it is not newer.
	Problem string `json:"problem,omitempty"`
	// Changes says how many changes there were since the page was started.
	Changes int `json:"changes"`
	// Plan is the version of the plan.
	Plan int `json:"planVersion"`
	// Chart is a Chart; null before the first snapshot.
	Chart json.RawMessage `json:"chart"`
}

// run reads a snapshot, waits for a change, and reads again. It reads for half of the time at most, however long a snapshot
// takes.
func (l *live) run(ctx context.Context, source Source) {
	wait := minBackOff

	for ctx.Err() == nil {
		began := time.Now()
		snapshot, err := source.Read(ctx)
		rest := max(settle, time.Since(began))

		if err == nil {
			err = l.accept(snapshot, time.Now())
		}

		if err == nil {
			wait = minBackOff
			err = source.Wait(ctx)
		}

		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			l.fail(&l.edition, err)

			rest, wait = wait, min(2*wait, maxBackOff) //nolint:mnd // Twice as long each time.
		}

		select {
		case <-time.After(rest):
		case <-ctx.Done():
		}
	}
}

// accept makes a snapshot the one that is shown.
func (l *live) accept(snapshot *Snapshot, now time.Time) error {
	text, err := printable.CompactJSON(chartOf(snapshot, nil))
	if err != nil {
		return err
	}

	l.mu.Lock()
	defer l.mu.Unlock()

	if l.snapshot != nil {
		changes := differences(l.snapshot, snapshot, now)
		l.count += len(changes)
		l.changes = append(l.changes, changes...)
		l.changes = slices.Clone(l.changes[max(0, len(l.changes)-maxChanges):])
	}

	l.snapshot = snapshot
	l.renew(&l.edition, text, now)
	l.replan()

	return nil
}

// renew makes a text the one that is shown, and wakes the streams if that is news.
func (l *live) renew(e *edition, text []byte, now time.Time) {
	isNews := e.problem != "" || !bytes.Equal(text, e.text)
	e.text, e.problem, e.taken = text, "", now.UTC()

	if isNews {
		e.version++
		l.wakeAll()
	}
}

// fail says why what is shown is not newer.
func (l *live) fail(e *edition, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if words := inWords(err); e.problem != words {
		e.problem = words
		e.version++
		l.wakeAll()
	}
}

// wakeAll has the streams look again.
func (l *live) wakeAll() {
	close(l.news)
	l.news = make(chan struct{})
}

// shown is what is to be shown now, and a channel that is closed when there is something else.
func (l *live) shown() (Shown, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()

	return Shown{l.version, l.taken, l.problem, l.count, l.plan.version, l.text}, l.news
}

// first waits until there is something to show, even if that is only a problem.
func (l *live) first(ctx context.Context) Shown {
	for {
		shown, news := l.shown()
		if shown.Version > 0 {
			return shown
		}

		select {
		case <-news:
		case <-ctx.Done():
			return shown
		}
	}
}

// past returns the changes after the first so many, oldest first, as far as they are remembered.
func (l *live) past(after int) (changes []Change, count int) {
	l.mu.Lock()
	defer l.mu.Unlock()

	skip := max(0, after-(l.count-len(l.changes)))

	return append([]Change{}, l.changes[min(skip, len(l.changes)):]...), l.count
}

// join counts a tab; false when there are too many.
func (l *live) join() bool {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.tabs >= maxTabs {
		return false
	}

	l.tabs++

	if l.snapshot != nil {
		l.replan()
	}

	return true
}

func (l *live) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.tabs--
}
