package installs_test

import (
	"fmt"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/install"
)

// TestScopedConflict: what comes into conflict with another group goes, though the account that installed it may delete nothing.
func TestScopedConflict(t *testing.T) {
	w := begin(t, "cluster")
	crd := w.definition("rivals", "Rival")
	one, two, common, apart := w.Namespace("one"), w.Namespace("two"), w.Namespace("common"), w.Namespace("apart")
	w.keeper(one, common, crd, "Rival")

	second := w.scoped(two, apart)
	b := csv(two, "op.v1", owning(crd, "Rival"))

	for i, place := range install.Needs(b, two, []string{apart}) {
		w.give(two, fmt.Sprintf("conflict-%d-%s", i, two), place)
	}

	w.Make(b)
	w.succeeds(b)

	w.Change(second, func() { second.Spec.TargetNamespaces = []string{apart, common} })
	w.becomes(b, olm.CSVPhaseFailed, olm.CSVReasonInterOperatorGroupOwnerConflict)
	w.gone(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: two, Name: "op"}})
	w.MayNot(two, "op", apart, "get secrets")
}
