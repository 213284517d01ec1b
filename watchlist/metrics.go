package watchlist

import (
	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

var (
	servedGauge = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "ambit_watchlist_namespaces", Help: "Namespaces in the list that the operator follows.",
	})
	failureCounter = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "ambit_watchlist_watch_failures_total",
		Help: "How often a watch began to fail, by namespace and kind. The series of a namespace goes when it leaves.",
	}, []string{"namespace", "kind"})
)

func init() { //nolint:gochecknoinits // controller-runtime's registry is filled so
	metrics.Registry.MustRegister(servedGauge, failureCounter)
}
