package read

import (
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The namespaces of OLM.
const upstream, openShift = "olm", "openshift-operator-lifecycle-manager"

// controller is a Deployment, as one of OLM's controllers or like one.
func controller(name, app string, replicas *int32, left int32) *appsv1.Deployment {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: upstream, Name: name, Labels: map[string]string{"app": app}}}
	d.Spec.Replicas, d.Status.Replicas = replicas, left

	return d
}

func TestOwnership(t *testing.T) {
	t.Parallel()

	const olm, catalog = "olm-operator", "catalog-operator"

	none := map[string][]any{upstream: {}, openShift: {}}
	only := func(d *appsv1.Deployment) map[string][]any {
		listed := map[string][]any{upstream: {}, openShift: {}}
		listed[d.Namespace] = append(listed[d.Namespace], d)

		return listed
	}
	no, one := new(int32(0)), new(int32(1))

	for name, tc := range map[string]struct {
		reason      string
		serving     Serving
		listed      map[string][]any
		ours, known bool
	}{
		"NotListed":    {"nothing is known yet", ServeAuto, nil, false, false},
		"HalfListed":   {"it may run in the other namespace", ServeAuto, map[string][]any{upstream: {}}, false, false},
		"HalfIsEnough": {"one that runs is enough", ServeAuto, map[string][]any{upstream: {controller(olm, olm, one, 1)}}, false, true},
		"None":         {"OLM is not there", ServeAuto, none, true, true},
		"One":          {"either of them works on these kinds", ServeAuto, only(controller(catalog, catalog, one, 1)), false, true},
		"ByDefault":    {"left out, replicas are one", ServeAuto, only(controller(olm, olm, nil, 0)), false, true},
		"Stopped":      {"scaled to zero, it does nothing", ServeAuto, only(controller(olm, olm, no, 0)), true, true},
		"Stopping":     {"its last pod still works", ServeAuto, only(controller(olm, olm, no, 1)), false, true},
		"SomethingOf":  {"something else may have the name", ServeAuto, only(controller(catalog, "shop", one, 1)), true, true},
		"Another":      {"OLM has others", ServeAuto, only(controller("packageserver", "packageserver", one, 1)), true, true},
		"Always":       {"the administrator has decided", ServeAlways, only(controller(olm, olm, nil, 1)), true, true},
		"AlwaysAtOnce": {"and nothing has to be known for that", ServeAlways, nil, true, true},
		"Never":        {"the administrator has decided", ServeNever, none, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			o := NewOwnership(nil, tc.serving)

			for namespace, objs := range tc.listed {
				if err := o.sink(namespace).Replace(objs, ""); err != nil {
					t.Fatal(err)
				}
			}

			if ours, known := o.Ours(); ours != tc.ours || known != tc.known {
				t.Errorf("%s: ours %t, known %t; want %t, %t", tc.reason, ours, known, tc.ours, tc.known)
			}
		})
	}
}

func TestOwnershipFollows(t *testing.T) {
	t.Parallel()

	const olm = "olm-operator"

	o := NewOwnership(nil, ServeAuto)
	s := o.sink(upstream)
	forget := func() error {
		o.forget(upstream, s)

		return nil
	}
	told := func() bool {
		select {
		case <-o.changed:
			return true
		default:
			return false
		}
	}

	for _, step := range []struct {
		reason      string
		do          func() error
		ours, known bool
		told        bool
	}{
		{"one of two lists", func() error { return s.Replace(nil, "") }, false, false, false},
		{"both are listed", func() error { return o.sink(openShift).Replace(nil, "") }, true, true, true},
		{"OLM comes", func() error { return s.Add(controller(olm, olm, nil, 0)) }, false, true, true},
		{"its status changes nothing", func() error { return s.Update(controller(olm, olm, nil, 1)) }, false, true, false},
		{"it is asked to stop", func() error { return s.Update(controller(olm, olm, new(int32(0)), 1)) }, false, true, false},
		{"it has stopped", func() error { return s.Update(controller(olm, olm, new(int32(0)), 0)) }, true, true, true},
		{"it comes back", func() error { return s.Update(controller(olm, olm, new(int32(1)), 0)) }, false, true, true},
		{"it is deleted", func() error { return s.Delete(controller(olm, olm, new(int32(1)), 0)) }, true, true, true},
		{"it may not be seen any more", forget, false, false, true},
		{"what still comes in does not count", func() error { return s.Delete(controller(olm, olm, nil, 0)) }, false, false, false},
		{"something that is no Deployment", func() error {
			if s.Add(nil) == nil {
				return errors.New("it was taken")
			}

			return nil
		}, false, false, false},
		{"it may be seen again", func() error { return s.Replace(nil, "") }, true, true, true},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.reason, err)
		}

		if ours, known := o.Ours(); ours != step.ours || known != step.known {
			t.Errorf("%s: ours %t, known %t; want %t, %t", step.reason, ours, known, step.ours, step.known)
		}

		if got := told(); got != step.told {
			t.Errorf("%s: told: %t, want %t", step.reason, got, step.told)
		}
	}
}
