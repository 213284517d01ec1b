package listen

import (
	"net"
	"slices"
	"sync"
)

// Bounded returns a listener with no more than so many connections at once. For one more, the oldest of the address that has the
// most is closed. So whoever has fewer addresses than there may be connections keeps nobody out who has one connection, such as
// the kubelet.
func Bounded(inner net.Listener, most int) net.Listener {
	return &bounded{Listener: inner, most: most}
}

type bounded struct {
	net.Listener

	most int

	mu sync.Mutex
	// open are the connections, the oldest first.
	open []*connection
}

// connection leaves the listener's list when it is closed.
type connection struct {
	net.Conn

	of   *bounded
	from string
}

// Accept waits for a connection.
func (b *bounded) Accept() (net.Conn, error) {
	conn, err := b.Listener.Accept()
	if err != nil {
		return nil, err //nolint:wrapcheck // A server looks which error it is.
	}

	c := &connection{Conn: conn, of: b, from: hostOf(conn.RemoteAddr())}
	if over := b.add(c); over != nil {
		_ = over.Close() // It is of no use to anybody any more.
	}

	return c, nil
}

// Close closes the connection.
func (c *connection) Close() error {
	c.of.remove(c)

	return c.Conn.Close() //nolint:wrapcheck // It stands for the other one.
}

// add returns the connection that has to go, if there is one too many.
func (b *bounded) add(c *connection) (over *connection) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if b.open = append(b.open, c); len(b.open) <= b.most {
		return nil
	}

	from := map[string]int{}
	for _, c := range b.open {
		from[c.from]++
	}

	over = b.open[0]
	for _, c := range b.open {
		if from[c.from] > from[over.from] {
			over = c
		}
	}

	return over
}

func (b *bounded) remove(c *connection) {
	b.mu.Lock()
	defer b.mu.Unlock()

	if i := slices.Index(b.open, c); i >= 0 {
		b.open = slices.Delete(b.open, i, i+1)
	}
}

// hostOf is an address without the port, which is another one for each connection.
func hostOf(address net.Addr) string {
	host, _, err := net.SplitHostPort(address.String())
	if err != nil {
		return address.String()
	}

	return host
}
