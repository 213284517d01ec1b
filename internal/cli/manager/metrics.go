package manager

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/ambit-k8s/ambit/internal/listen"
	"github.com/ambit-k8s/ambit/internal/scrape"
)

// The files of a Secret of the type kubernetes.io/tls.
const (
	certName = "tls.crt"
	keyName  = "tls.key"
)

func (o *Options) metricsFlags(f *pflag.FlagSet) {
	f.StringVar(&o.metricsAddress, "metrics-bind-address", ":8443",
		"address of the Prometheus metrics (host:port); 0 serves none")
	f.BoolVar(&o.metricsSecure, "metrics-secure", true,
		"serve the metrics over TLS, to those whom the API server authorizes to get /metrics; false serves them to everybody who "+
			"reaches the address")
	f.StringVar(&o.metricsCertDir, "metrics-cert-dir", "",
		"folder with tls.crt and tls.key for the metrics, read again when they change; without it a certificate that Ambit signs "+
			"itself when it starts")
}

// Everybody in the cluster reaches the metrics and the probes. Prometheus and a kubelet have one connection each, or two.
const (
	connections = 64
	// probeHeaders is more than a kubelet sends.
	probeHeaders = 4 << 10
)

// serveMetrics has the manager serve the metrics, unless the address is 0. It does what controller-runtime's metrics server does,
// but for what that may cost.
func (o *Options) serveMetrics(ctx context.Context, m manager.Manager) error {
	if isNone(o.metricsAddress) {
		return nil
	}

	handler := promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})

	var encrypted *tls.Config

	if o.metricsSecure {
		filter, err := scrape.Filter(m.GetConfig(), m.GetHTTPClient())
		if err != nil {
			return err
		}

		handler = filter(m.GetLogger().WithName("metrics"), handler)

		if encrypted, err = o.metricsTLS(m); err != nil {
			return fmt.Errorf("serving metrics over TLS: %w", err)
		}
	}

	mux := http.NewServeMux()
	mux.Handle("/metrics", handler)

	return serve(ctx, m, listen.Options{
		Name: "metrics", Address: o.metricsAddress, Handler: mux, TLS: encrypted, Connections: connections,
		Headers: scrape.MaxToken + probeHeaders,
	})
}

// serveProbes has the manager serve its checks, unless the address is 0.
func (o *Options) serveProbes(ctx context.Context, m *checked) error {
	if isNone(o.probeAddress) {
		return nil
	}

	mux := http.NewServeMux()
	for path, checks := range map[string]map[string]healthz.Checker{"/healthz": {"ping": healthz.Ping}, "/readyz": m.ready} {
		handler := http.StripPrefix(path, &healthz.Handler{Checks: checks})
		mux.Handle(path, handler)
		mux.Handle(path+"/", handler)
	}

	return serve(ctx, m, listen.Options{
		Name: "probes", Address: o.probeAddress, Handler: mux, Connections: connections, Headers: probeHeaders,
	})
}

func isNone(address string) bool { return address == "" || address == "0" }

func serve(ctx context.Context, m manager.Manager, o listen.Options) error {
	server, err := listen.New(ctx, o)
	if err == nil {
		err = m.Add(server)
	}

	if err != nil {
		return fmt.Errorf("starting: %w", err)
	}

	return nil
}

// checked is a manager whose checks are served by serveProbes.
type checked struct {
	manager.Manager

	ready map[string]healthz.Checker
}

// AddReadyzCheck adds a check.
func (c *checked) AddReadyzCheck(name string, check healthz.Checker) error {
	c.ready[name] = check

	return nil
}

// metricsTLS is how metrics are encrypted.
func (o *Options) metricsTLS(m manager.Manager) (*tls.Config, error) {
	// Without HTTP/2, a connection has one request at a time (CVE-2023-44487).
	config := &tls.Config{NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS12}

	if o.metricsCertDir == "" {
		// Nobody can know it, but what is said is encrypted.
		cert, key, err := certutil.GenerateSelfSignedCertKeyWithFixtures("localhost", []net.IP{{127, 0, 0, 1}}, nil, "")
		if err != nil {
			return nil, err //nolint:wrapcheck // The caller says what for.
		}

		pair, err := tls.X509KeyPair(cert, key)
		config.Certificates = []tls.Certificate{pair}

		return config, err //nolint:wrapcheck // As above.
	}

	watcher, err := certwatcher.New(filepath.Join(o.metricsCertDir, certName), filepath.Join(o.metricsCertDir, keyName))
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of --metrics-cert-dir: %w", err)
	}

	config.GetCertificate = watcher.GetCertificate

	return config, m.Add(watcher) //nolint:wrapcheck // As above.
}

// checkMetricsCert says which file of the certificate is missing, before anything else is begun.
func (o *Options) checkMetricsCert() error {
	if o.metricsCertDir == "" {
		return nil
	}

	for _, name := range []string{certName, keyName} {
		if _, err := os.Stat(filepath.Join(o.metricsCertDir, name)); err != nil {
			return fmt.Errorf("looking for the certificate of --metrics-cert-dir: %w", err)
		}
	}

	return nil
}
