package read

import (
	"context"
	"sync"
	"time"
)

const (
	// share is the part of the time for which a namespace may have its catalogs read, one in so many. After it has been quiet, it
	// may use at once what is due for the time credit: ten full catalogs come in together.
	share  = 5
	credit = 15 * time.Second
)

// turns lets catalogs be read one after the other, and takes care that a namespace whose catalogs change all the time makes those
// of others wait no longer than for one of them. While a catalog is read, it takes many times the memory of its text.
type turns struct {
	// reading is held while something is read.
	reading sync.Mutex

	mu sync.Mutex
	// paid is until when a namespace has used up its share.
	paid map[string]time.Time
}

// take reads something of a namespace when it is its turn, and not at all when the context ends before that.
func (t *turns) take(ctx context.Context, namespace string, read func()) {
	for {
		t.reading.Lock()

		wait := time.Until(t.of(namespace))
		if wait <= 0 {
			break
		}

		t.reading.Unlock()

		if !sleep(ctx, wait) {
			return
		}
	}

	defer t.reading.Unlock()

	began := time.Now()

	read()
	t.pay(namespace, time.Since(began))
}

func (t *turns) of(namespace string) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()

	return t.paid[namespace]
}

func (t *turns) pay(namespace string, took time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if t.paid == nil {
		t.paid = map[string]time.Time{}
	}

	now := time.Now()
	from := t.paid[namespace]

	// A namespace that has been quiet for long has all of the credit, and needs no record.
	if from.Before(now.Add(-credit)) {
		from = now.Add(-credit)
	}

	t.paid[namespace] = from.Add(share * took)

	for other, paid := range t.paid {
		if paid.Before(now.Add(-credit)) {
			delete(t.paid, other)
		}
	}
}
