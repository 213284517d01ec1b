package apply

import (
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxClients bounds the clients that are kept. Whoever may write scopes decides how many accounts they name; making a client
// again costs no request.
const maxClients = 100

// clients are those of the identities that were used last.
type clients struct {
	mu    sync.Mutex
	known map[Identity]*used
}

type used struct {
	client client.Client
	last   time.Time
}

// get returns the client of an identity, which create makes unless it is kept.
func (c *clients) get(id Identity, create func() (client.Client, error)) (client.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if u := c.known[id]; u != nil {
		u.last = time.Now()

		return u.client, nil
	}

	made, err := create()
	if err != nil {
		return nil, err
	}

	if len(c.known) >= maxClients {
		c.dropOldest()
	}

	if c.known == nil {
		c.known = map[Identity]*used{}
	}

	c.known[id] = &used{client: made, last: time.Now()}

	return made, nil
}

func (c *clients) dropOldest() {
	var oldest Identity

	for id, u := range c.known {
		if before := c.known[oldest]; before == nil || u.last.Before(before.last) {
			oldest = id
		}
	}

	delete(c.known, oldest)
}
