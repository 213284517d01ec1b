package testbed

import (
	"net"
	"sync/atomic"
)

// Silent serves nothing: whoever connects waits until the test ends. It returns the address, and how often somebody connected.
func (w *World) Silent() (url string, asked *atomic.Int64) {
	w.Helper()

	listener, err := (&net.ListenConfig{}).Listen(w.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		w.Fatal(err)
	}

	w.Cleanup(func() { _ = listener.Close() })

	asked = &atomic.Int64{}

	go func() {
		var open []net.Conn

		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			asked.Add(1)
			open = append(open, conn)
		}

		for _, conn := range open {
			_ = conn.Close()
		}
	}()

	return "https://" + listener.Addr().String(), asked
}
