package injection_test

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// What Helm renders of three public operators, as far as it matters here: each has another way to say "everything".
const (
	// kedaacore/charts, keda: watchNamespace is empty by default, and so is the variable.
	keda = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: keda-operator, labels: {app.kubernetes.io/managed-by: Helm}}
spec:
  replicas: 1
  selector: {matchLabels: {app: keda-operator}}
  template:
    metadata: {labels: {app: keda-operator, intent: projected}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: keda-operator
          image: ghcr.io/kedacore/keda:2.17.1
          command: [/keda]
          args: [--leader-elect, --zap-log-level=info]
          env:
            - {name: WATCH_NAMESPACE, value: ""}
            - {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
            - {name: KEDA_HTTP_DEFAULT_TIMEOUT, value: "3000"}
          volumeMounts: [{mountPath: /certs, name: certificates, readOnly: true}]
      volumes: [{name: certificates, secret: {secretName: kedaorg-certs, optional: true}}]
`
	// grafana/grafana-operator: with namespaceScope the chart writes the release's namespace.
	grafana = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: grafana-operator, labels: {app.kubernetes.io/managed-by: Helm}}
spec:
  replicas: 1
  selector: {matchLabels: {app.kubernetes.io/name: grafana-operator}}
  template:
    metadata: {labels: {app.kubernetes.io/name: grafana-operator, intent: projected}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: grafana-operator
          image: ghcr.io/grafana/grafana-operator:v5.18.0
          env:
            - {name: WATCH_NAMESPACE, value: monitoring}
            - {name: WATCH_NAMESPACE_SELECTOR, value: ""}
          args: [--health-probe-bind-address=:8081, --leader-elect]
          volumeMounts: [{name: dashboards-dir, mountPath: /tmp/dashboards}]
      volumes: [{name: dashboards-dir, emptyDir: {}}]
`
	// cloudnative-pg/charts: cluster-wide by default, without any variable.
	cnpg = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: cnpg-controller-manager, labels: {app.kubernetes.io/managed-by: Helm}}
spec:
  replicas: 1
  selector: {matchLabels: {app.kubernetes.io/name: cloudnative-pg}}
  template:
    metadata: {labels: {app.kubernetes.io/name: cloudnative-pg, intent: projected}}
    spec:
      terminationGracePeriodSeconds: 0
      containers:
        - name: manager
          image: ghcr.io/cloudnative-pg/cloudnative-pg:1.25.1
          command: [/manager]
          args: [controller, --leader-elect, --config-map-name=cnpg-controller-manager-config, --webhook-port=9443]
          env:
            - {name: OPERATOR_IMAGE_NAME, value: "ghcr.io/cloudnative-pg/cloudnative-pg:1.25.1"}
            - {name: OPERATOR_NAMESPACE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
`
)

// The environment of each, as it is shown.
func kedaWith(list string) []string {
	return []string{
		"keda-operator WATCH_NAMESPACE=" + list, "keda-operator POD_NAME=field metadata.name",
		"keda-operator KEDA_HTTP_DEFAULT_TIMEOUT=3000",
	}
}

func grafanaWith(list string) []string {
	return []string{"grafana-operator WATCH_NAMESPACE=" + list, "grafana-operator WATCH_NAMESPACE_SELECTOR="}
}

func cnpgWith(more ...string) []string {
	return append([]string{
		"manager OPERATOR_IMAGE_NAME=ghcr.io/cloudnative-pg/cloudnative-pg:1.25.1",
		"manager OPERATOR_NAMESPACE=field metadata.namespace",
	}, more...)
}

// helm applies a manifest as Helm 4 does, by server-side apply under its own name.
func (w *world) helm(ops, manifest string, edits ...string) (*appsv1.Deployment, error) {
	w.Helper()

	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(strings.NewReplacer(edits...).Replace(manifest)), &u.Object); err != nil {
		w.Fatal(err)
	}

	u.SetNamespace(ops)

	err := w.Client.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(u), client.FieldOwner("helm"))

	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: u.GetName()}}, err
}

func (w *world) install(ops, manifest string, edits ...string) *appsv1.Deployment {
	w.Helper()

	d, err := w.helm(ops, manifest, edits...)
	if err != nil {
		w.Fatalf("applying %s: %v", d.Name, err)
	}

	return d
}
