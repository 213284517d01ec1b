package watchlist

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// sizes are the numbers of namespaces that are measured.
var sizes = []int{10, 100, 1000}

// BenchmarkJoin measures the time from a list that names one namespace more to the first reconcile in it, for an operator
// that follows; and BenchmarkRestart that from the start of the same operator, with controller-runtime's own cache and
// without the time that its pod takes to begin and its lease to come.
func BenchmarkJoin(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("namespaces=%d/kinds=5", size), func(b *testing.B) {
			names := makeNamespaces(b, size+1)
			for _, name := range names {
				makeConfigMap(b, name, "a", nil)
			}

			last := names[size]
			before := strings.Join(names[:size], ",")
			l, source := newList(b, before)
			first, stop := operator(b, apiServer, cache.Options{}, l)

			defer stop()

			first.wait(b, names[0])
			eventually(b, "all are served", func() bool { return len(l.Namespaces()) == size && open(l) })

			var took []time.Duration

			for b.Loop() {
				first.forget(last)

				begun := time.Now()

				source.push(b, before+","+last)
				first.wait(b, last)
				took = append(took, time.Since(begun))

				source.push(b, before)
				eventually(b, "it left", func() bool { return len(l.Namespaces()) == size })
			}

			report(b, took)
		})
	}
}

// BenchmarkRestart is what BenchmarkJoin is compared with.
func BenchmarkRestart(b *testing.B) {
	for _, size := range sizes {
		b.Run(fmt.Sprintf("namespaces=%d/kinds=5", size), func(b *testing.B) {
			names := makeNamespaces(b, size+1)
			opts := cache.Options{DefaultNamespaces: map[string]cache.Config{}}

			for _, name := range names {
				makeConfigMap(b, name, "a", nil)
				opts.DefaultNamespaces[name] = cache.Config{}
			}

			var took []time.Duration

			for b.Loop() {
				begun := time.Now()
				first, stop := operator(b, apiServer, opts, nil)

				first.wait(b, names[size])
				took = append(took, time.Since(begun))

				stop()
			}

			report(b, took)
		})
	}
}

// BenchmarkHold measures what an operator holds while nothing happens, with each kind of cache: memory, goroutines and watches.
func BenchmarkHold(b *testing.B) {
	for _, size := range sizes {
		names := makeNamespaces(b, size)
		for _, name := range names {
			makeConfigMap(b, name, "a", nil)
		}

		listed := cache.Options{DefaultNamespaces: map[string]cache.Config{}}
		for _, name := range names {
			listed.DefaultNamespaces[name] = cache.Config{}
		}

		follow := func(b *testing.B) *List {
			b.Helper()
			l, _ := newList(b, strings.Join(names, ","))

			return l
		}
		none := func(*testing.B) *List { return nil }

		for _, of := range []struct {
			name string
			opts cache.Options
			list func(*testing.B) *List
		}{
			{"cache=live", cache.Options{}, follow}, {"cache=namespaces", listed, none}, {"cache=cluster", cache.Options{}, none},
		} {
			b.Run(fmt.Sprintf("namespaces=%d/kinds=5/%s", size, of.name), func(b *testing.B) {
				for b.Loop() {
					hold(b, names, of.opts, of.list(b))
				}
			})
		}
	}
}

func hold(b *testing.B, names []string, opts cache.Options, l *List) {
	b.Helper()

	open := &openWatches{}
	cfg := rest.CopyConfig(apiServer)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { open.next = next; return open })

	before, goroutines := heap(), runtime.NumGoroutine()
	first, stop := operator(b, cfg, opts, l)

	for _, name := range names {
		first.wait(b, name)
	}

	after := heap()
	b.ReportMetric(float64(after-before)/float64(len(names))/1024, "KiB/namespace")
	b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/float64(len(names)), "goroutines/namespace")
	b.ReportMetric(float64(open.n.Load())/float64(len(names)), "watches/namespace")
	b.ReportMetric(0, "ns/op")
	stop()
}

// heap is what lives after a collection.
func heap() int64 {
	runtime.GC()
	runtime.GC() // The second frees what finalizers of the first let go.

	var m runtime.MemStats
	runtime.ReadMemStats(&m)

	return int64(m.HeapAlloc)
}

// openWatches counts the watches that are open.
type openWatches struct {
	next http.RoundTripper
	n    atomic.Int64
}

func (o *openWatches) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := o.next.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusOK || r.URL.Query().Get("watch") == "" {
		return response, err
	}

	o.n.Add(1)
	response.Body = &closing{ReadCloser: response.Body, done: sync.OnceFunc(func() { o.n.Add(-1) })}

	return response, nil
}

type closing struct {
	io.ReadCloser

	done func()
}

func (c *closing) Close() error {
	c.done()

	return c.ReadCloser.Close()
}

func report(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)

	ms := func(p int) float64 { return float64(took[min(len(took)-1, len(took)*p/100)].Microseconds()) / 1000 }
	b.ReportMetric(ms(50), "p50-ms")
	b.ReportMetric(ms(99), "p99-ms")
	b.ReportMetric(0, "ns/op")
}

// calls notes which namespaces were reconciled.
type calls struct {
	mu    sync.Mutex
	seen  map[string]bool
	fresh *sync.Cond
}

func (c *calls) note(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.seen[namespace] = true
	c.fresh.Broadcast()
}

func (c *calls) forget(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()

	delete(c.seen, namespace)
}

func (c *calls) wait(b *testing.B, namespace string) {
	b.Helper()

	late := time.AfterFunc(5*time.Minute, func() { panic("no reconcile of " + namespace) })
	defer late.Stop()

	c.mu.Lock()
	defer c.mu.Unlock()

	for !c.seen[namespace] {
		c.fresh.Wait()
	}
}

// operator runs one that watches five kinds; with a list it follows that.
func operator(b *testing.B, cfg *rest.Config, opts cache.Options, l *List) (*calls, func()) {
	b.Helper()

	o := ctrl.Options{
		Cache: opts, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	}
	if l != nil {
		o.NewCache = l.NewCache()
	}

	mgr, err := ctrl.NewManager(cfg, o)
	must(b, err)

	c := &calls{seen: map[string]bool{}}
	c.fresh = sync.NewCond(&c.mu)

	must(b, ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).Owns(&corev1.Secret{}).Owns(&corev1.Service{}).
		Owns(&corev1.ServiceAccount{}).Owns(&appsv1.Deployment{}).
		Complete(reconcile.Func(func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			c.note(r.Namespace)

			return reconcile.Result{}, nil
		})))

	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)

	go func() { done <- mgr.Start(ctx) }()

	return c, func() {
		cancel()
		must(b, <-done)
	}
}
