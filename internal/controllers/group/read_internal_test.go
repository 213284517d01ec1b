package group

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// shifting is a cache that learns something while it is read: first that a group names an account by now, and with that, what
// somebody who may use the account wrote since.
type shifting struct {
	client.Client

	lists, after int
}

func (s *shifting) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	learned := s.lists >= s.after
	s.lists++

	switch list := list.(type) {
	case *operatorsv1.OperatorGroupList:
		g := operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "group"}}
		if learned {
			g.Spec.ServiceAccountName = "installer"
		}

		list.Items = []operatorsv1.OperatorGroup{g}
	case *unstructured.UnstructuredList:
		if obj := scope.NewOLM(scope.KindCSV); learned && list.GetKind() == scope.KindCSV+"List" {
			obj.SetNamespace("ops")
			obj.SetName("late")
			list.Items = []unstructured.Unstructured{*obj}
		}
	}

	return nil
}

// TestNothingIsReadBesideAnEarlierGroup: when a group without an account gets one, whoever may use that may write what is
// installed. At whichever moment Ambit learns of that, it does not take what they wrote for the earlier group's, which is Ambit's
// own to install.
func TestNothingIsReadBesideAnEarlierGroup(t *testing.T) {
	t.Parallel()

	for after := range 5 {
		cache := &shifting{after: after}
		r := &Reconciler{Client: cache, Cache: cache}

		found, err := r.read(t.Context(), "ops")
		if err != nil {
			t.Fatal(err)
		}

		if len(found.csvs) > 0 && found.groups[0].Spec.ServiceAccountName == "" {
			t.Errorf("what changed after %d lists: somebody's ClusterServiceVersion is Ambit's own to install", after)
		}
	}
}
