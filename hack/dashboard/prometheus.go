package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

const (
	scrapeInterval = time.Second
	rateInterval   = 10 * time.Second
)

// configuration scrapes as the chart's ServiceMonitor says: over TLS, with a token.
const configuration = `global: {scrape_interval: %s}
scrape_configs:
- job_name: ambit
  scheme: https
  authorization: {credentials_file: %s}
  tls_config: {insecure_skip_verify: true}
  static_configs: [{targets: [%q]}]
`

// recording is what Prometheus answered: for each panel its lines.
type recording struct {
	from, to time.Time
	panels   [][]line
}

type line struct {
	name   string
	points []model.SamplePair
}

type prometheus struct {
	process *embedded.Process
	api     prometheusv1.API
}

func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}

	return listener.Addr().String(), listener.Close()
}

// startPrometheus starts a Prometheus that scrapes an address, and waits until it has.
func startPrometheus(ctx context.Context, bed *testbed.Bed, scraped string) (*prometheus, error) {
	token, err := readerToken(ctx, bed)
	if err != nil {
		return nil, err
	}

	address, err := freeAddress(ctx)
	if err != nil {
		return nil, err
	}

	dir := bed.Cluster.Dir
	config, credentials := filepath.Join(dir, "prometheus.yml"), filepath.Join(dir, "prometheus.token")

	if err := errors.Join(
		os.WriteFile(credentials, []byte(token), 0o600),
		os.WriteFile(config, fmt.Appendf(nil, configuration, scrapeInterval, credentials, scraped), 0o600),
	); err != nil {
		return nil, fmt.Errorf("configuring Prometheus: %w", err)
	}

	process, err := embedded.StartProcess("prometheus", embedded.WithLifeline(embedded.Program("tools/prometheus"),
		"--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "prometheus"), "--web.listen-address="+address,
		"--log.level=error"), func(error) {})
	if err != nil {
		return nil, err
	}

	client, err := api.NewClient(api.Config{Address: "http://" + address})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("making a client of Prometheus: %w", err), process.Stop())
	}

	p := &prometheus{process: process, api: prometheusv1.NewAPI(client)}
	if err := testbed.Until(time.Minute, func() error { return p.scraping(ctx) }); err != nil {
		return nil, errors.Join(err, p.stop())
	}

	return p, nil
}

func (p *prometheus) stop() error { return p.process.Stop() }

// readerToken returns the token of an account that may read metrics and nothing else.
func readerToken(ctx context.Context, bed *testbed.Bed) (string, error) {
	account := testbed.Account("default", "prometheus")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "prometheus-scrapes"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "ambit-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}

	if err := errors.Join(bed.Client.Create(ctx, account), bed.Client.Create(ctx, binding)); err != nil {
		return "", fmt.Errorf("making an account that reads metrics: %w", err)
	}

	config, err := embedded.ConfigFor(ctx, bed.Config, account.Namespace, account.Name)
	if err != nil {
		return "", err
	}

	return config.BearerToken, nil
}

var errNotScraped = errors.New("nothing was scraped")

func (p *prometheus) scraping(ctx context.Context) error {
	lines, err := p.lines(ctx, &target{Expr: "up == 1"}, time.Now().Add(-scrapeInterval), time.Now())
	if err == nil && len(lines) == 0 {
		err = errNotScraped
	}

	return err
}

// ask runs the queries of each panel.
func (p *prometheus) ask(ctx context.Context, d *dashboard, from, to time.Time) (*recording, error) {
	r := &recording{from: from, to: to}

	for i := range d.Panels {
		var all []line

		for j := range d.Panels[i].Targets {
			lines, err := p.lines(ctx, &d.Panels[i].Targets[j], from, to)
			if err != nil {
				return nil, fmt.Errorf("panel %q: %w", d.Panels[i].Title, err)
			}

			all = append(all, lines...)
		}

		r.panels = append(r.panels, all)
	}

	return r, nil
}

// lines runs one query.
func (p *prometheus) lines(ctx context.Context, t *target, from, to time.Time) ([]line, error) {
	answer, _, _, err := p.api.QueryRange(ctx, t.query(), prometheusv1.Range{Start: from, End: to, Step: scrapeInterval})
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", t.query(), err)
	}

	matrix, _ := answer.(model.Matrix) // A question about a range has no other answer.

	lines := make([]line, 0, len(matrix))
	for _, stream := range matrix {
		lines = append(lines, line{t.legend(stream.Metric), points(stream.Values)})
	}

	return lines, nil
}

// points leaves out what is no number: a histogram without events has no quantiles.
func points(values []model.SamplePair) []model.SamplePair {
	return slices.DeleteFunc(values, func(v model.SamplePair) bool {
		return math.IsNaN(float64(v.Value)) || math.IsInf(float64(v.Value), 0)
	})
}
