package namespacescope

import "sync"

// memory keeps something for each operator namespace, which is reconciled by one worker at a time. The zero value is ready.
type memory[T any] struct {
	mu sync.Mutex
	of map[string]T
}

func (m *memory[T]) get(operatorNamespace string) T {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.of[operatorNamespace]
}

// set remembers something, or nothing any more.
func (m *memory[T]) set(operatorNamespace string, is T, keep bool) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if !keep {
		delete(m.of, operatorNamespace)

		return
	}

	if m.of == nil {
		m.of = map[string]T{}
	}

	m.of[operatorNamespace] = is
}
