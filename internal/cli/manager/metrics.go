package manager

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

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

// metrics returns the options of the metrics server.
func (o *Options) metrics() metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.metricsAddress, SecureServing: o.metricsSecure}
	if !o.metricsSecure {
		return options
	}

	options.FilterProvider, options.CertDir, options.CertName, options.KeyName = scrape.Filter, o.metricsCertDir, certName, keyName
	// Without HTTP/2, a connection has one request at a time (CVE-2023-44487).
	options.TLSOpts = []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }}

	return options
}

// checkMetricsCert says which file of the certificate is missing. Without this check, controller-runtime would silently serve a
// certificate that it signs itself, and scrapers that trust the given one would refuse that.
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
