package apply

import "github.com/ambit-k8s/ambit/internal/scope"

// share is what a reconcile key has of the detached writes in one namespace.
type share struct {
	key       scope.Key
	namespace string
}

// isFull says whether there are as many detached writes as there may be, but for those that are about to end.
func (h *breaker) isFull() bool {
	n := 0

	for _, u := range h.detached {
		if !u.ceded {
			n++
		}
	}

	return n >= maxDetached
}

// hasRoom says whether one more write may be detached, and makes room for it where there are too many: one ends of the reconcile
// key that has most, in the namespace in which most of those are. So neither the author of a scope in whose members writes hang,
// nor the owner of one of them, leaves nothing to others. Who has as many makes no room: none of them would ever be answered.
func (h *breaker) hasRoom(w writeKey) bool {
	if !h.isFull() {
		return true
	}

	keys, shares := map[scope.Key]int{}, map[share]int{}

	for other, u := range h.detached {
		if !u.ceded {
			keys[other.key]++
			shares[share{other.key, other.namespace}]++
		}
	}

	from, most := w.key, keys[w.key]+1

	for key, n := range keys {
		if n > most {
			from, most = key, n
		}
	}

	own := share{w.key, w.namespace}
	least := shares[own] + 1

	if from != w.key {
		least = 0
	}

	var last *underWay

	for other, u := range h.detached {
		if n := shares[share{from, other.namespace}]; other.key == from && !u.ceded && n > least {
			last, least = u, n
		}
	}

	if last == nil {
		return false
	}

	last.ceded = true
	last.cancel()

	return true
}
