package bounds_test

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// TestConnectionsStarveNobody: every pod of the cluster reaches the ports of the metrics and of the probes. Connections by the
// hundred, each with the headers that take most memory and no end, keep Ambit small, and keep neither the kubelet nor Prometheus
// out, which have another address.
func TestConnectionsStarveNobody(t *testing.T) {
	const connections = 200

	metrics, probes := testbed.FreeAddress(t), testbed.FreeAddress(t)
	w := beds.Begin(t, "delegated",
		"--metrics-secure=true", "--metrics-bind-address="+metrics, "--health-probe-bind-address="+probes)

	served := func(url string, want int) {
		t.Helper()

		w.Within(10*time.Second, url+" is served", func() error {
			plain := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{
				TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
			}}

			response, err := plain.Get(url)
			if err != nil {
				return err
			}

			if err := response.Body.Close(); err != nil || response.StatusCode != want {
				return fmt.Errorf("got %d (%w)", response.StatusCode, err)
			}

			return nil
		})
	}

	all := func() {
		served("http://"+probes+"/healthz", http.StatusOK)
		served("http://"+probes+"/readyz", http.StatusOK)
		served("https://"+metrics+"/metrics", http.StatusUnauthorized)
	}

	all()

	var headers bytes.Buffer
	for i := range 100_000 {
		fmt.Fprintf(&headers, "%x:\r\n", i)
	}

	var tenants sync.WaitGroup

	hold := func(address string, encrypted bool) {
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext(w.Context(), "tcp", address)
		if err != nil {
			w.Error(err)

			return
		}

		t.Cleanup(func() { _ = conn.Close() })

		to := io.Writer(conn)
		if encrypted {
			to = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}) // It is the tenant who connects.
		}

		_ = conn.SetDeadline(time.Now().Add(long))
		_, _ = io.WriteString(to, "GET /metrics HTTP/1.1\r\nHost: x\r\n")
		_, _ = to.Write(headers.Bytes()) // It may be refused.
	}

	for range connections {
		tenants.Go(func() { hold(metrics, true) })
		tenants.Go(func() { hold(probes, false) })
	}

	tenants.Wait()

	all()
	bounded(w)
}
