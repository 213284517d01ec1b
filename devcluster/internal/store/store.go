// Package store remembers what a cluster stores in etcd, and puts it back. A
// cluster that is put back is as good as one that was started anew, in a tenth
// of the time.
package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// kept are the keys that go on as they are: what the components of the cluster
// write to say that they live.
var kept = []string{
	"/registry/leases/kube-",
	"/registry/masterleases/",
	"/registry/minions/",
	"/registry/csinodes/",
}

const (
	// patience is how long the store is compared again and again, and how long
	// the API server may fail to answer. Controllers answer what is put back,
	// by events and the like, which goes with the next comparison.
	patience = time.Minute

	// answers is how often the API server answers between two comparisons, and
	// apart how long after one answer it is asked again. Components learn and
	// write through it: as long as it stands still, that nothing is written
	// says nothing. Two comparisons in a row have to find nothing.
	answers, apart = 5, 10 * time.Millisecond

	// rests is how many comparisons in a row have to find nothing before a
	// state is saved.
	rests = 20

	// yields is how often a key is put back that somebody writes again. After
	// that it is taken as it is: a controller that was late when the state was
	// saved, such as the one that sums up ClusterRoles, would write it for ever.
	yields = 5
)

// restlessError says that somebody goes on writing.
type restlessError struct{ key string }

func (e *restlessError) Error() string {
	return fmt.Sprintf("the cluster does not come to rest, somebody goes on writing %s; stop everything that writes to it first",
		e.key)
}

// entry is what is stored under a key.
type entry struct {
	value []byte
	// revision is the one of etcd at which it was written last.
	revision int64
	// late says that the key was not there when the state was saved, and that
	// somebody insisted on it later.
	late bool
}

// storage is where a cluster stores what it knows. [Client] implements it.
type storage interface {
	list(ctx context.Context, keysOnly bool) (map[string]entry, error)
	get(ctx context.Context, key string) (entry, error)
	delete(ctx context.Context, keys []string) error
	put(ctx context.Context, values map[string][]byte) (map[string]int64, error)
}

// Asking asks the API server something. It fails without an answer.
type Asking func(ctx context.Context) error

// Image is what a cluster stored at some moment.
type Image struct {
	entries map[string]entry
}

// Save reads everything that the cluster stores, when its components have done
// what they do by themselves: they would do it again after each reset.
func Save(ctx context.Context, client storage, ask Asking) (*Image, error) {
	for same, before := 0, map[string]entry(nil); same < rests; {
		now, err := client.list(ctx, true)
		if err != nil {
			return nil, fmt.Errorf("reading what the cluster stores: %w", err)
		}
		if same++; !equal(before, now) {
			same = 0
		}
		before = now
		if err := wait(ctx, ask); err != nil {
			return nil, err
		}
	}
	entries, err := client.list(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("reading what the cluster stores: %w", err)
	}
	return &Image{entries: entries}, nil
}

// wait gives the components time to do something. An API server that does not
// answer is asked again, as it may be busy, or restart.
func wait(ctx context.Context, ask Asking) error {
	for started, answered := time.Now(), 0; answered < answers; {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the cluster to come to rest: %w", ctx.Err())
		case <-time.After(apart):
		}
		if err := ask(ctx); err == nil {
			answered++
		} else if time.Since(started) > patience {
			return fmt.Errorf("waiting for the API server to answer: %w", err)
		}
	}
	return nil
}

// equal says whether two listings are of one state.
func equal(before, now map[string]entry) bool {
	for key := range before {
		if _, there := now[key]; !there && !alive(key) {
			return false
		}
	}
	for key, e := range now {
		if before[key].revision != e.revision && !alive(key) {
			return false
		}
	}
	return true
}

// Restore writes the image back, and returns when nothing differs any more.
// Whatever waits for a finalizer goes, too.
func (i *Image) Restore(ctx context.Context, client storage, ask Asking) error {
	last, tries := "nothing yet", map[string]int{}
	for started := time.Now(); time.Since(started) < patience; {
		changed, err := i.restoreOnce(ctx, client, tries)
		if err != nil {
			return err
		}
		if last == "" && changed == "" {
			return nil
		}
		last = changed
		if err := wait(ctx, ask); err != nil {
			return err
		}
	}
	return &restlessError{last}
}

// restoreOnce returns a key that differed, if any did. It counts how often each
// did.
func (i *Image) restoreOnce(ctx context.Context, client storage, tries map[string]int) (string, error) {
	now, err := client.list(ctx, true)
	if err != nil {
		return "", fmt.Errorf("reading what the cluster stores: %w", err)
	}
	differed := ""
	var remove []string
	write := map[string][]byte{}
	for key, is := range now {
		was, known := i.entries[key]
		if alive(key) || is.revision == was.revision {
			continue
		}
		differed = key
		switch tries[key]++; {
		case tries[key] > yields:
			if err := i.adopt(ctx, client, key); err != nil {
				return "", err
			}
		case known:
			write[key] = was.value
		default:
			remove = append(remove, key)
		}
	}
	for key, e := range i.missing(now) {
		differed = key
		// Whoever insisted on it has seen meanwhile that it is not wanted: a slow API server goes on creating the APIService
		// of a definition until it has heard that the definition is gone, and deletes it then, as often as it is put back.
		if e.late {
			delete(i.entries, key)
			continue
		}
		write[key] = e.value
	}
	if err := client.delete(ctx, remove); err != nil {
		return "", fmt.Errorf("removing what came after: %w", err)
	}
	written, err := client.put(ctx, write)
	if err != nil {
		return "", fmt.Errorf("writing what was there: %w", err)
	}
	for key, revision := range written {
		i.entries[key] = entry{value: i.entries[key].value, revision: revision}
	}
	return differed, nil
}

// missing returns what was there and is not any more.
func (i *Image) missing(now map[string]entry) map[string]entry {
	out := map[string]entry{}
	for key, e := range i.entries {
		if _, there := now[key]; !there && !alive(key) {
			out[key] = e
		}
	}
	return out
}

// adopt takes a key as it is.
func (i *Image) adopt(ctx context.Context, client storage, key string) error {
	adopted, err := client.get(ctx, key)
	if err != nil {
		return fmt.Errorf("reading what a component wrote: %w", err)
	}
	// One that has gone in the meantime differs at the next look.
	if adopted.value != nil {
		was, known := i.entries[key]
		adopted.late = !known || was.late
		i.entries[key] = adopted
	}
	return nil
}

// alive says whether a key is one by which a component says that it lives.
func alive(key string) bool {
	for _, prefix := range kept {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}
