package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

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
	points []point
}

type point struct {
	at    time.Time
	value float64
}

type prometheus struct {
	process *embedded.Process
	url     string
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

	p := &prometheus{process: process, url: "http://" + address}
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

var errRefused = errors.New("it was refused")

// lines runs one query.
func (p *prometheus) lines(ctx context.Context, t *target, from, to time.Time) ([]line, error) {
	form := url.Values{"query": {t.query()}, "step": {scrapeInterval.String()}}
	for name, at := range map[string]time.Time{"start": from, "end": to} {
		form.Set(name, at.Format(time.RFC3339Nano))
	}

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/api/v1/query_range?"+form.Encode(), http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", t.query(), err)
	}

	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking %s: %w", t.query(), err)
	}
	defer response.Body.Close() //nolint:errcheck // It was read.

	var answer struct {
		Error string `json:"error"`
		Data  struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Values [][2]any          `json:"values"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("asking %s: %w", t.query(), err)
	}

	if answer.Error != "" {
		return nil, fmt.Errorf("asking %s: %w: %s", t.query(), errRefused, answer.Error)
	}

	var lines []line
	for _, r := range answer.Data.Result {
		lines = append(lines, line{t.legend(r.Metric), points(r.Values)})
	}

	return lines, nil
}

// points leaves out what is no number: a histogram without events has no quantiles.
func points(values [][2]any) []point {
	out := make([]point, 0, len(values))

	for _, v := range values {
		seconds, isNumber := v[0].(float64)
		text, isText := v[1].(string)

		value, err := strconv.ParseFloat(text, 64)
		if isNumber && isText && err == nil && !math.IsNaN(value) && !math.IsInf(value, 0) {
			out = append(out, point{time.UnixMilli(int64(seconds * 1000)), value})
		}
	}

	return out
}
