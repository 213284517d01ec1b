package embedded

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// errNowhere is for an address at which this Kubelet runs no program.
var errNowhere = errors.New("no program of this Kubelet is there")

// network plays the network of a cluster for the API server.
type network struct {
	//nolint:containedctx // It ends with the cluster, not with a request.
	ctx   context.Context
	route func(ctx context.Context, address string) (port int, err error)
}

// Lead plays the network of a cluster for the API server, as long as the context lasts: what that sends to an address of a
// Service or a pod reaches the port of this machine that route returns. The socket is that of Cluster.Services.
func Lead(
	ctx context.Context, socket string, route func(ctx context.Context, address string) (port int, err error),
) (serve func(), err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listening for the API server: %w", err)
	}

	n := &network{ctx: ctx, route: route}
	server := &http.Server{Handler: http.HandlerFunc(n.connect), ReadHeaderTimeout: stopTime}
	context.AfterFunc(ctx, func() { _ = server.Close() })

	return func() { _ = server.Serve(listener) }, nil // It ends when it is closed.
}

// connect answers CONNECT. Errors are for the API server, which reports them to whoever made the write that it asks a webhook
// about.
func (n *network) connect(rw http.ResponseWriter, r *http.Request) {
	port, err := n.route(r.Context(), r.Host)
	if err != nil {
		http.Error(rw, fmt.Sprintf("looking for %s: %v", r.Host, err), http.StatusBadGateway)

		return
	}

	program, err := new(net.Dialer).DialContext(r.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		http.Error(rw, err.Error(), http.StatusBadGateway)

		return
	}

	asking, _, err := http.NewResponseController(rw).Hijack()
	if err == nil {
		_, err = io.WriteString(asking, "HTTP/1.1 200 OK\r\n\r\n")
	}

	if err != nil {
		_ = program.Close()

		return
	}

	n.tunnel(asking, program)
}

// tunnel copies until one of the two ends, or the network does.
func (n *network) tunnel(a, b net.Conn) {
	ctx, end := context.WithCancel(n.ctx)
	defer end()

	context.AfterFunc(ctx, func() { _, _ = a.Close(), b.Close() })

	go func() {
		defer end()

		_, _ = io.Copy(a, b)
	}()

	_, _ = io.Copy(b, a)
}

// route finds the port of this machine to which the address of a Service leads.
func (k *Kubelet) route(ctx context.Context, address string) (int, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return 0, fmt.Errorf("reading the address: %w", err)
	}

	all, err := k.clients.CoreV1().Services(k.options.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, fmt.Errorf("listing Services: %w", err)
	}

	for i := range all.Items {
		s := &all.Items[i]
		if s.Spec.ClusterIP != host {
			continue
		}

		for _, p := range s.Spec.Ports {
			if strconv.Itoa(int(p.Port)) == port {
				return k.listening(s, p.TargetPort.IntValue())
			}
		}
	}

	return 0, errNowhere
}

// listening returns where the youngest program listens, of those in a Service's pods.
func (k *Kubelet) listening(s *corev1.Service, port int) (int, error) {
	selector := labels.SelectorFromSet(s.Spec.Selector)

	k.mu.Lock()
	defer k.mu.Unlock()

	var latest *played

	for _, p := range k.pods {
		runs := p.process != nil && !p.ended && p.ports[port] != 0 && selector.Matches(labels.Set(p.pod.Labels))
		if runs && (latest == nil || latest.began.Before(p.began)) {
			latest = p
		}
	}

	if latest == nil {
		return 0, errNowhere
	}

	return latest.ports[port], nil
}

// ports finds free ports for a program.
func (k *Kubelet) ports() (map[int]int, error) {
	out := map[int]int{}

	for port := range k.options.Ports {
		listener, err := FreePort(k.ctx)
		if err != nil {
			return nil, err
		}
		defer listener.Close() //nolint:errcheck // All stay open until the end, so no two are the same.

		if address, ok := listener.Addr().(*net.TCPAddr); ok {
			out[port] = address.Port
		}
	}

	return out, nil
}
