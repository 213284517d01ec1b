package read

import (
	"errors"
	"fmt"
)

// Listed says what is missing until everything that is watched cluster-wide has been listed; nil from then on. Namespaces that
// are watched one by one are not waited for: one that may not be read must not keep the others from being served.
func (w *Watches) Listed() error {
	w.mu.Lock()
	running := w.running != nil
	w.mu.Unlock()

	if !running {
		return errors.New("the watches have not begun")
	}

	w.store.mu.RLock()
	defer w.store.mu.RUnlock()

	if n := w.store.waiting; n > 0 {
		return fmt.Errorf("%d of what is watched cluster-wide is not listed yet", n)
	}

	return nil
}
