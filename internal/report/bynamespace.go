package report

import "sync"

// maxNamespaces is how many namespaces are remembered before those are forgotten that are idle.
const maxNamespaces = 1_000

// byNamespace is what each namespace has. What is idle is as good as new, and is forgotten once there is much: namespaces come
// and go. It is safe for concurrent use.
type byNamespace[V any] struct {
	begin  func() V
	isIdle func(V) bool

	mu sync.Mutex
	of map[string]V
}

func (b *byNamespace[V]) in(namespace string) V {
	b.mu.Lock()
	defer b.mu.Unlock()

	if has, known := b.of[namespace]; known {
		return has
	}

	for other, has := range b.of {
		if len(b.of) >= maxNamespaces && b.isIdle(has) {
			delete(b.of, other)
		}
	}

	if b.of == nil {
		b.of = map[string]V{}
	}

	b.of[namespace] = b.begin()

	return b.of[namespace]
}
