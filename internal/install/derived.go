package install

import (
	"cmp"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/conversion"
)

// isDerived says whether a live value has everything that was asked for. What was left open is the API server's to fill in: a
// probe keeps its numbers without pointers, so that one which was left open is 0 (SetDefaults_Probe in
// k8s.io/kubernetes/pkg/apis/core/v1/defaults.go).
func isDerived(want, live any) bool {
	e := conversion.Equalities{Equalities: maps.Clone(equality.Semantic.Equalities)}
	err := e.AddFunc(func(want, live corev1.Probe) bool {
		want.TimeoutSeconds = cmp.Or(want.TimeoutSeconds, live.TimeoutSeconds)
		want.PeriodSeconds = cmp.Or(want.PeriodSeconds, live.PeriodSeconds)
		want.SuccessThreshold = cmp.Or(want.SuccessThreshold, live.SuccessThreshold)
		want.FailureThreshold = cmp.Or(want.FailureThreshold, live.FailureThreshold)

		return equality.Semantic.DeepDerivative(want, live)
	})

	return err == nil && e.DeepDerivative(want, live)
}
