package watchlist

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// BenchmarkJoin measures the time from a list that names one namespace more to the first reconcile in it, for an operator
// that follows; and BenchmarkRestart that from the start of the same operator, with controller-runtime's own cache and
// without the time that its pod takes to begin and its lease to come.
func BenchmarkJoin(b *testing.B) {
	for _, size := range []int{10, 100} {
		b.Run(fmt.Sprintf("namespaces=%d/kinds=5", size), func(b *testing.B) {
			names := makeNamespaces(b, size+1)
			for _, name := range names {
				makeConfigMap(b, name, "a", nil)
			}

			last := names[size]
			before := strings.Join(names[:size], ",")
			l, source := newList(b, before)
			first, stop := operator(b, cache.Options{}, l)

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
	for _, size := range []int{10, 100} {
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
				first, stop := operator(b, opts, nil)

				first.wait(b, names[size])
				took = append(took, time.Since(begun))

				stop()
			}

			report(b, took)
		})
	}
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

	late := time.AfterFunc(time.Minute, func() { panic("no reconcile of " + namespace) })
	defer late.Stop()

	c.mu.Lock()
	defer c.mu.Unlock()

	for !c.seen[namespace] {
		c.fresh.Wait()
	}
}

// operator runs one that watches five kinds; with a list it follows that.
func operator(b *testing.B, opts cache.Options, l *List) (*calls, func()) {
	b.Helper()

	o := ctrl.Options{
		Cache: opts, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
	}
	if l != nil {
		o.NewCache = l.NewCache()
	}

	mgr, err := ctrl.NewManager(apiServer, o)
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
