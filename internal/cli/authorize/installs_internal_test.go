package authorize

import (
	"context"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
)

// TestInstallsWhereNothingIsInstalled: whoever authorizes installs on a cluster without OLM's kinds is told what to install.
func TestInstallsWhereNothingIsInstalled(t *testing.T) {
	t.Parallel()

	w := &session{Client: interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error {
			return &meta.NoKindMatchError{GroupKind: operatorsv1.GroupVersion.WithKind("OperatorGroup").GroupKind()}
		},
	})}

	_, _, err := (&Options{}).decideInstalls(t.Context(), w)
	if err == nil || !strings.Contains(err.Error(), "does not know OperatorGroups; install Ambit with OLM's kinds, or OLM") {
		t.Error(err)
	}
}
