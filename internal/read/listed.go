package read

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listed is a table that one watch fills, with whether that has listed what there is.
type listed[R any] struct {
	table[R]

	isListed bool
}

// sink fills the table. changed is called with the lock held when everything was listed, and for each difference after that.
func (l *listed[R]) sink(lock sync.Locker, convert func(client.Object) (R, bool), changed func()) *sink[R] {
	l.changed = func(types.NamespacedName, *R, *R) {
		if l.isListed {
			changed()
		}
	}

	s := tableSink(&l.table, convert)
	s.lock, s.done = lock, func() {
		l.isListed = true

		changed()
	}

	return &s
}
