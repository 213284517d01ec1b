package faults_test

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
)

// TestConnectionThatIsLostWithoutAWord: what is between a manager and the API server forgets their connections, and neither of
// them hears of it. What is revoked meanwhile is revoked all the same, and nobody has to wait as long as client-go would by
// itself, which is 45 seconds.
func TestConnectionThatIsLostWithoutAWord(t *testing.T) {
	kill(t)
	t.Cleanup(func() { start(t) })

	// Without a lease, which would end the manager. What it has for a lease is a connection of its own.
	wires, m := newWires(t, "--leader-elect=false")
	w := newWorld(t, "wires", 2, 3)
	w.eventually("the manager works", func() bool { return m.Works("namespacescope") == nil })
	w.scope(w.members...)
	w.settled()

	if wires.lose() == 0 {
		t.Fatal("no connection was open")
	}

	w.remove(&rbacv1.RoleBinding{ObjectMeta: w.meta("operator-1-a")})
	w.within(30*time.Second, "what is revoked is revoked", func() bool { return w.bound(t, "operator-1-a") == 0 })
	w.settled()
}

// wires are the connections between a manager and the API server.
type wires struct {
	net.Listener

	mu  sync.Mutex
	all []*wire
}

// wire is one connection. Once it is lost, it takes what is sent, and neither delivers it nor ends.
type wire struct {
	lost atomic.Bool
}

// newWires starts a manager with further arguments whose connections can be lost. All end with the test.
func newWires(t *testing.T, arguments ...string) (*wires, *embedded.Manager) {
	t.Helper()

	admin, server := apiServer(t)

	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}

	w := &wires{Listener: listener}
	t.Cleanup(func() { _ = w.Close() })

	go w.accept(server.Host)

	return w, managerBehind(t, admin, func(cluster *clientcmdapi.Cluster) {
		cluster.Server = "https://" + listener.Addr().String() // The API server's certificate is for any port of this address.
	}, arguments...)
}

func (w *wires) accept(server string) {
	for {
		client, err := w.Accept()
		if err != nil {
			return // The test has ended.
		}

		behind, err := net.Dial("tcp", server)
		if err != nil {
			_ = client.Close()

			continue
		}

		one := &wire{}

		w.mu.Lock()
		w.all = append(w.all, one)
		w.mu.Unlock()

		go one.carry(behind, client)
		go one.carry(client, behind)
	}
}

// carry delivers what one side sends to the other, and ends both when one has ended.
func (w *wire) carry(to, from net.Conn) {
	_, _ = io.Copy(writerFunc(func(p []byte) (int, error) {
		if w.lost.Load() {
			return len(p), nil
		}

		return to.Write(p)
	}), from)

	_ = from.Close()

	if !w.lost.Load() {
		_ = to.Close()
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// lose loses all connections that are there, and returns how many.
func (w *wires) lose() int {
	w.mu.Lock()
	defer w.mu.Unlock()

	for _, one := range w.all {
		one.lost.Store(true)
	}

	return len(w.all)
}
