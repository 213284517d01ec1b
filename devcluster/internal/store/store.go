// Package store remembers what a cluster stores in etcd, and puts it back. A
// cluster that is put back is as good as one that was started anew, in a tenth
// of the time.
package store

import (
	"context"
	"errors"
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
	// attempts is how often the store is compared. Controllers answer what is
	// put back, by events and the like, which goes with the next attempt.
	attempts = 50

	// pause is how long controllers have to answer. Two comparisons in a row
	// have to find nothing.
	pause = 50 * time.Millisecond
)

// errRestless says that somebody goes on writing.
var errRestless = errors.New("the cluster does not come to rest; stop everything that writes to it first")

// entry is what is stored under a key.
type entry struct {
	value []byte
	// revision is the one of etcd at which it was written last.
	revision int64
}

// Image is what a cluster stored at some moment.
type Image struct {
	entries map[string]entry
}

// Save reads everything that the cluster stores.
func Save(ctx context.Context, client *Client) (*Image, error) {
	entries, err := client.list(ctx, false)
	if err != nil {
		return nil, fmt.Errorf("reading what the cluster stores: %w", err)
	}
	return &Image{entries: entries}, nil
}

// Restore writes the image back, and returns when nothing differs any more.
// Whatever waits for a finalizer goes, too.
func (i *Image) Restore(ctx context.Context, client *Client) error {
	same := 0
	for range attempts {
		changed, err := i.restoreOnce(ctx, client)
		if err != nil {
			return err
		}
		if changed {
			same = 0
		} else if same++; same == 2 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("putting the cluster back: %w", ctx.Err())
		case <-time.After(pause):
		}
	}
	return errRestless
}

// restoreOnce says whether anything differed.
func (i *Image) restoreOnce(ctx context.Context, client *Client) (bool, error) {
	now, err := client.list(ctx, true)
	if err != nil {
		return false, fmt.Errorf("reading what the cluster stores: %w", err)
	}
	var remove []string
	for key := range now {
		if _, known := i.entries[key]; !known && !alive(key) {
			remove = append(remove, key)
		}
	}
	write := map[string][]byte{}
	for key, e := range i.entries {
		if now[key].revision != e.revision && !alive(key) {
			write[key] = e.value
		}
	}
	if len(remove) == 0 && len(write) == 0 {
		return false, nil
	}
	if err := client.delete(ctx, remove); err != nil {
		return false, fmt.Errorf("removing what came after: %w", err)
	}
	written, err := client.put(ctx, write)
	if err != nil {
		return false, fmt.Errorf("writing what was there: %w", err)
	}
	for key, revision := range written {
		i.entries[key] = entry{value: i.entries[key].value, revision: revision}
	}
	return true, nil
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
