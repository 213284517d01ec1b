package namespacescope

import (
	"sync"
	"time"
)

// leaving remembers since when permissions are to be revoked in namespaces that left. It serves as a bound only: the cluster
// decides what is to be done, and after a restart the time begins again.
type leaving struct {
	mu    sync.Mutex
	since map[string]map[string]time.Time
}

func (l *leaving) of(operatorNamespace string) map[string]time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()

	return l.since[operatorNamespace] // replaced by note, and never changed
}

func (l *leaving) note(operatorNamespace string, namespaces []string, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()

	if len(namespaces) == 0 {
		delete(l.since, operatorNamespace)

		return
	}

	before := l.since[operatorNamespace]
	after := make(map[string]time.Time, len(namespaces))

	for _, namespace := range namespaces {
		if at, known := before[namespace]; known {
			after[namespace] = at
		} else {
			after[namespace] = now
		}
	}

	if l.since == nil {
		l.since = map[string]map[string]time.Time{}
	}

	l.since[operatorNamespace] = after
}
