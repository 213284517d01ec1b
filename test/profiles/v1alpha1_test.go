package profiles_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// againstAnOlderServer installs a profile on a new cluster, and runs Ambit there as against an API server that cannot
// stream lists. Against today's, a watch brings the list along, so that the right to list is never used; Kubernetes before
// 1.34 may not do that.
func againstAnOlderServer(t *testing.T, profile string) *testbed.Bed {
	t.Helper()
	// Kubernetes' own way to switch off what a client would use.
	t.Setenv("KUBE_FEATURE_WatchListClient", "false")

	var arguments []string

	address := testbed.FreeAddress(t)
	if profile != "namespaced" {
		arguments = []string{"--metrics-secure=true", "--metrics-bind-address=" + address}
	}

	bed, err := testbed.Start(t.Context(), profile, arguments...)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := bed.Stop(); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})

	// In this profile Ambit makes a scope by itself.
	nss := scope(embedded.Namespace, controllers.DefaultScopeName)
	if profile != "namespaced" {
		nss = scope("older-server", "scope")
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: nss.Namespace}}

		for _, obj := range []client.Object{ns, nss} {
			if err := bed.Client.Create(t.Context(), obj); err != nil {
				t.Fatal(err)
			}
		}
	}

	within(t, "a scope has a status", func() bool {
		err := bed.Client.Get(t.Context(), client.ObjectKeyFromObject(nss), nss)

		return err == nil && len(nss.Status.Conditions) > 0
	})

	if profile != "namespaced" {
		if err := bed.Client.Delete(t.Context(), nss); err != nil {
			t.Fatal(err)
		}

		within(t, "a scope goes", func() bool {
			return apierrors.IsNotFound(bed.Client.Get(t.Context(), client.ObjectKeyFromObject(nss), nss))
		})

		usesTemplates(t, bed, profile == "cluster")
		usesInstalls(t, bed, profile)
		usesOperatorGroups(t, bed)
		usesMetrics(t, bed, address)
	}

	usesInjection(t, bed, profile)

	if err := bed.Manager.Stop(); err != nil {
		t.Fatal(err)
	}

	t.Setenv("KUBE_FEATURE_WatchListClient", "true")

	return bed
}

func scope(namespace, name string) *operatorv1.NamespaceScope {
	return &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// within waits until something is so.
func within(t *testing.T, what string, is func() bool) {
	t.Helper()

	err := testbed.Until(testbed.Patience, func() error {
		if !is() {
			return errors.New("it is not so")
		}

		return nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
