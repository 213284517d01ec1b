package listen_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ambit-k8s/ambit/internal/listen"
)

// arrivals is a listener for connections from anywhere.
type arrivals struct {
	net.Listener

	next chan net.Conn
}

func (a *arrivals) Accept() (net.Conn, error) { return <-a.next, nil }

type from struct {
	net.Conn

	address string
}

func (f *from) RemoteAddr() net.Addr { return address(f.address) }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// crowd is a bounded listener, and the other ends of who arrived.
type crowd struct {
	t        *testing.T
	incoming *arrivals
	listener net.Listener
	port     int
}

// arrive returns both ends of a connection from a host.
func (c *crowd) arrive(host string) (there, here net.Conn) {
	c.t.Helper()

	c.port++
	there, accepted := net.Pipe()

	go func() { c.incoming.next <- &from{accepted, fmt.Sprintf("%s:%d", host, c.port)} }()

	here, err := c.listener.Accept()
	if err != nil {
		c.t.Fatal(err)
	}

	return there, here
}

// isOpen says whether a connection's other end was not closed.
func isOpen(there net.Conn) bool {
	_ = there.SetReadDeadline(time.Now().Add(time.Millisecond))
	_, err := there.Read(make([]byte, 1))

	return !errors.Is(err, io.EOF)
}

// TestCrowdsKeepNobodyOut: a connection that is one too many takes the place of the oldest of who has the most.
func TestCrowdsKeepNobodyOut(t *testing.T) {
	t.Parallel()

	const most = 8

	incoming := &arrivals{next: make(chan net.Conn)}
	c := &crowd{t: t, incoming: incoming, listener: listen.Bounded(incoming, most)}

	kubelet, _ := c.arrive("10.0.0.1")

	var mallory []net.Conn

	for range 100 {
		there, _ := c.arrive("10.0.0.2")
		mallory = append(mallory, there)
	}

	if !isOpen(kubelet) {
		t.Error("who has many connections took the place of who has one")
	}

	for i, there := range mallory {
		if is, want := isOpen(there), i > 100-most; is != want {
			t.Errorf("connection %d is open: %v, want %v", i, is, want)
		}
	}

	// Another one comes in although all places are taken, and so does one from an address in another notation.
	for _, host := range []string{"10.0.0.3", "[fd00::1]"} {
		prometheus, here := c.arrive(host)
		if !isOpen(prometheus) || !isOpen(kubelet) {
			t.Errorf("%s, who has one connection, is kept out", host)
		}

		if err := here.Close(); err != nil || isOpen(prometheus) {
			t.Error(err)
		}
	}

	// Whoever closes one has room for another: six are left, and the kubelet's.
	left, _ := c.arrive("10.0.0.2")
	if !isOpen(left) || !isOpen(mallory[len(mallory)-6]) {
		t.Error("a connection that is closed takes a place")
	}
}

// TestRequestsAreBounded: what is too long is refused before it is read to the end, and what is slow ends.
func TestRequestsAreBounded(t *testing.T) {
	t.Parallel()

	s, err := listen.New(t.Context(), listen.Options{
		Name: "test", Address: "127.0.0.1:0", Connections: 4, Headers: 4 << 10,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("served")) }),
	})
	if err != nil {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)

	go func() { done <- s.Start(ctx) }()

	send := func(headers string) (status int) {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close() //nolint:errcheck // Everything was said.

		_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n"+headers+"\r\n")

		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close() //nolint:errcheck // As above.

		return response.StatusCode
	}

	if got := send(""); got != http.StatusOK {
		t.Errorf("got %d", got)
	}

	if got := send("X: " + strings.Repeat("x", 16<<10) + "\r\n"); got != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("with long headers: got %d", got)
	}

	// Somebody who is in the middle of a request does not hold up the end.
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // As above.

	_, _ = io.WriteString(conn, "GET / HTTP/1.1\r\n")

	send("")
	cancel()

	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("the server does not end")
	}
}
