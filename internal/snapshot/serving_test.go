package snapshot

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/predict"
)

// deployments lists those of each namespace, and of others says that nobody may.
type deployments struct {
	client.Client

	in map[string][]appsv1.Deployment
}

func (d deployments) List(_ context.Context, list client.ObjectList, options ...client.ListOption) error {
	o := &client.ListOptions{}
	o.ApplyOptions(options)

	found, may := d.in[o.Namespace]
	if !may {
		return apierrors.NewForbidden(appsv1.Resource("deployments"), "", nil)
	}

	into, _ := list.(*appsv1.DeploymentList)
	into.Items = found

	return nil
}

func TestServesInstalls(t *testing.T) {
	t.Parallel()

	const upstream, openShift = "olm", "openshift-operator-lifecycle-manager"

	running := appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: upstream, Name: "olm-operator", Labels: map[string]string{"app": "olm-operator"},
	}}
	none := map[string][]appsv1.Deployment{upstream: nil, openShift: nil}
	olm := map[string][]appsv1.Deployment{upstream: {running}, openShift: nil}

	for name, tc := range map[string]struct {
		reason  string
		manager predict.Manager
		in      map[string][]appsv1.Deployment
		want    Serving
		why     string
	}{
		"alone":   {"nothing of OLM runs", predict.Manager{}, none, Serving{Ours: true, Known: true, Revokes: true}, ""},
		"beside":  {"OLM runs", predict.Manager{}, olm, Serving{Known: true, Revokes: true}, "olm/olm-operator runs"},
		"unknown": {"nobody may look there", predict.Manager{}, nil, Serving{Revokes: true}, "namespace olm, nor in openshift"},
		"half": {
			"OLM may run where nobody may look", predict.Manager{}, map[string][]appsv1.Deployment{upstream: nil},
			Serving{Revokes: true}, "namespace openshift-operator-lifecycle-manager",
		},
		"half is enough": {
			"one that runs is enough", predict.Manager{}, map[string][]appsv1.Deployment{upstream: {running}},
			Serving{Known: true, Revokes: true}, "olm/olm-operator runs",
		},
		"elsewhere": {
			"the administrator says where OLM runs", predict.Manager{OLMNamespaces: []string{"other"}},
			map[string][]appsv1.Deployment{"other": nil, upstream: {running}}, Serving{Ours: true, Known: true, Revokes: true}, "",
		},
		"always": {
			"the administrator has decided", predict.Manager{OperatorGroups: "enabled"}, nil,
			Serving{Ours: true, Known: true, Revokes: true}, "",
		},
		"never": {
			"the administrator has decided", predict.Manager{OperatorGroups: "disabled"}, none,
			Serving{Known: true, Revokes: true}, "--operator-groups=disabled",
		},
		"single namespaces": {
			"nobody there can know whether OLM serves them", predict.Manager{Namespaces: []string{"ops"}}, none, Serving{Known: true},
			"no OperatorGroups",
		},
		"single namespaces, where the administrator says so": {
			"", predict.Manager{Namespaces: []string{"ops"}, OperatorGroups: "enabled"}, nil, Serving{Ours: true, Known: true}, "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got, err := New(deployments{in: tc.in}).ServesInstalls(t.Context(), &tc.manager)
			why := got.Why
			got.Why = ""

			if err != nil || got != tc.want || !strings.Contains(why, tc.why) || (why == "") != got.Ours {
				t.Errorf("%s: %+v, %q, %v; want %+v, %q", tc.reason, got, why, err, tc.want, tc.why)
			}
		})
	}
}
