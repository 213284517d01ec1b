package watchlist

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// together are the handshakes of one process about one ConfigMap: one for each of its managers. All tell by the Lease of their
// pod, which says no more than all of them have taken in.
type together struct {
	// writing is held while one of them writes the Lease.
	writing sync.Mutex

	mu sync.Mutex
	// taken is what each of them has taken in; empty where it has taken in nothing yet. written is what the Lease says.
	taken   map[*handshake]string
	written string
}

type aboutWhat struct {
	pod       types.UID
	configMap string
}

// beside are those that run, by what they are about.
var beside = struct {
	sync.Mutex

	of map[aboutWhat]*together
}{of: map[aboutWhat]*together{}}

// join adds a handshake to those that tell the same.
func join(h *handshake) *together {
	beside.Lock()
	defer beside.Unlock()

	about := aboutWhat{h.self.uid, h.configMap}
	if beside.of[about] == nil {
		beside.of[about] = &together{taken: map[*handshake]string{}}
	}

	t := beside.of[about]
	t.take(h, "")

	return t
}

// leave takes it from them again. What it had yet to tell, the others tell.
func (t *together) leave(h *handshake) {
	beside.Lock()
	defer beside.Unlock()

	t.mu.Lock()
	defer t.mu.Unlock()

	if delete(t.taken, h); len(t.taken) == 0 {
		delete(beside.of, aboutWhat{h.self.uid, h.configMap})
	}

	for other := range t.taken {
		wake(other.wake)
	}
}

func (t *together) take(h *handshake, hash string) {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.taken[h] = hash
}

// due is what is to be told: what all have taken in, unless it was told already; empty for nothing.
func (t *together) due() string {
	t.mu.Lock()
	defer t.mu.Unlock()

	all := ""

	for _, hash := range t.taken {
		if hash == "" || all != "" && hash != all {
			return ""
		}

		all = hash
	}

	if all == t.written {
		return ""
	}

	return all
}

// tell has what is due written, by one of them at a time.
func (t *together) tell(write func(hash string) error) error {
	t.writing.Lock()
	defer t.writing.Unlock()

	hash := t.due()
	if hash == "" {
		return nil
	}

	if err := write(hash); err != nil {
		return err
	}

	t.mu.Lock()
	defer t.mu.Unlock()

	t.written = hash

	return nil
}
