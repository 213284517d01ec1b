package profiles_test

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/test/harness/embedded"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// ofOLM is what OLM has of an operator whose watch list and webhooks are Ambit's matter. HOME is its namespace.
const ofOLM = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: profiles.v1
  namespace: HOME
  labels: {operators.coreos.com/profiles.HOME: ""}
  annotations: {nss.operator.ibm.com/managed-operators: profiles, nss.operator.ibm.com/managed-webhooks: profiles}
spec:
  displayName: profiles
  install:
    strategy: deployment
    spec:
      deployments:
        - name: profiles
          spec:
            selector: {matchLabels: {name: profiles}}
            template:
              metadata: {labels: {name: profiles}}
              spec: {containers: [{name: operator, image: x}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata:
  name: profiles
  labels: {olm.owner: profiles.v1, olm.owner.namespace: HOME, olm.owner.kind: ClusterServiceVersion}
webhooks:
  - name: profiles.example.com
    clientConfig: {url: "https://webhook.invalid/"}
    sideEffects: None
    failurePolicy: Ignore
    admissionReviewVersions: [v1]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata:
  name: profiles
  labels: {olm.owner: profiles.v1, olm.owner.namespace: HOME, olm.owner.kind: ClusterServiceVersion}
webhooks:
  - name: profiles.example.com
    clientConfig: {url: "https://webhook.invalid/"}
    sideEffects: None
    failurePolicy: Ignore
    admissionReviewVersions: [v1]
`

// usesInjection lets Ambit inject into an operator of OLM's: as an account where it may not write itself.
func usesInjection(t *testing.T, bed *testbed.Bed, profile string) {
	t.Helper()

	ops := embedded.Namespace
	if profile != "namespaced" {
		ops = "older-server"
	}

	file := filepath.Join(t.TempDir(), "olm.yaml")
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(ofOLM, "HOME", ops)), 0o600); err != nil {
		t.Fatal(err)
	}

	within(t, "OLM's objects", func() bool {
		_, err := bed.Cluster.Kubectl(t.Context(), "apply", "--server-side", "-f", file)

		return err == nil
	})

	nss := &operatorv1.NamespaceScope{
		ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: "injected"},
		Spec: operatorv1.NamespaceScopeSpec{
			ConfigmapName: "injected", CSVInjector: &operatorv1.Injector{Enable: new(true)},
		},
	}
	if profile == "delegated" {
		nss.Spec.ServiceAccountName = "injector"
		in := &subscribed{Bed: bed, namespace: ops, account: nss.Spec.ServiceAccountName}
		provide(t, bed.Client, testbed.Account(ops, in.account))
		in.letInstall(t)
	}

	if err := bed.Client.Create(t.Context(), nss); err != nil {
		t.Fatal(err)
	}

	within(t, "a status about injection", func() bool {
		err := bed.Client.Get(t.Context(), client.ObjectKeyFromObject(nss), nss)

		c := cmp.Or(meta.FindStatusCondition(nss.Status.Conditions, "CSVsInjected"), &metav1.Condition{})

		return err == nil && len(nss.Status.ManagedCSVList) > 0 && isInjected(t, bed, ops) &&
			strings.HasSuffix(c.Message, "those of profiles.v1") == (profile == "namespaced")
	})

	if err := bed.Client.Delete(t.Context(), nss); err != nil {
		t.Fatal(err)
	}

	within(t, "the scope goes", func() bool {
		return apierrors.IsNotFound(bed.Client.Get(t.Context(), client.ObjectKeyFromObject(nss), nss))
	})
}

// isInjected says whether the CSV reads the list, and, where Ambit may see to that, whether its webhooks are limited.
func isInjected(t *testing.T, bed *testbed.Bed, ops string) bool {
	t.Helper()

	csv := &unstructured.Unstructured{}
	csv.SetAPIVersion("operators.coreos.com/v1alpha1")
	csv.SetKind("ClusterServiceVersion")

	if err := bed.Client.Get(t.Context(), client.ObjectKey{Namespace: ops, Name: "profiles.v1"}, csv); err != nil {
		return false
	}

	raw, err := csv.MarshalJSON()
	if err != nil || !strings.Contains(string(raw), "WATCH_NAMESPACE") {
		return false
	}

	if ops == embedded.Namespace {
		return true // Webhooks have no namespace.
	}

	for _, kind := range []string{"ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"} {
		hook := &unstructured.Unstructured{}
		hook.SetAPIVersion("admissionregistration.k8s.io/v1")
		hook.SetKind(kind)

		if err := bed.Client.Get(t.Context(), client.ObjectKey{Name: "profiles"}, hook); err != nil {
			return false
		}

		if raw, err := hook.MarshalJSON(); err != nil || !strings.Contains(string(raw), "kubernetes.io/metadata.name") {
			return false
		}
	}

	return true
}
