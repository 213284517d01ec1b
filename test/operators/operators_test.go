package operators_test

import (
	"path/filepath"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// operator is how one is run, and how one sees that it works.
type operator struct {
	// name is that of its line in the file modules.
	name string
	// manifests are what its authors ship, for the operator's namespace. folder is that of its module.
	manifests func(w *world, folder string) []byte
	// namespace is where its authors put it; where they say none, it gets one of its own.
	namespace string
	// workload is the name of its Deployment or StatefulSet, account that of its service account.
	workload, account string
	// arguments are for a machine on which pods share their addresses.
	arguments []string
	// environment is what it would find out from the files of its token.
	environment []string
	// clusterWide says that it does not begin without what narrow leaves it in the whole cluster.
	clusterWide bool
	// ready is what its log says once it works, where it ends by itself before that.
	ready string
	// lease is what its leader holds; empty where nobody leads.
	lease string
	// finalizer is what it puts on its resources, if it does.
	finalizer string

	// resource is one of its kinds; plural is for asking who may work with it.
	resource schema.GroupVersionKind
	plural   string
	// spec is that of a resource, of a size.
	spec func(size int64) map[string]any
	// beside is what a resource of that name is about, if that has to be there.
	beside func(namespace, name string) client.Object
	// made is what the operator makes of a resource, and sized where the size is in it.
	made  func(namespace, name string) *unstructured.Unstructured
	sized []string

	// reads and needed are for the documentation.
	reads, needed string
}

// object is one that is named and nothing else.
func object(version, kind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetAPIVersion(version)
	o.SetKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)

	return o
}

// graceTime is where a StatefulSet says how long its pods may take to end. It may be changed at any time, unlike the number of
// members of many clusters.
var graceTime = []string{"spec", "template", "spec", "terminationGracePeriodSeconds"}

// statefulSet is one whose name is that of the resource with something before and after it.
func statefulSet(before, after string) func(namespace, name string) *unstructured.Unstructured {
	return func(namespace, name string) *unstructured.Unstructured {
		return object("apps/v1", "StatefulSet", namespace, before+name+after)
	}
}

// deployment is one that somebody runs in a namespace.
func deployment(namespace, name string) client.Object {
	labels := map[string]string{"app": name}

	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: name, Image: "registry.example.com/" + name}}},
			},
		},
	}
}

var operators = []operator{
	{
		name: "prometheus-operator",
		manifests: func(w *world, folder string) []byte {
			return w.kustomize(filepath.Join(folder, "bundle.yaml"))
		},
		workload: "prometheus-operator", account: "prometheus-operator",
		arguments: []string{"--web.listen-address=127.0.0.1:0"},
		resource:  schema.GroupVersionKind{Group: "monitoring.coreos.com", Version: "v1", Kind: "Prometheus"}, plural: "prometheuses",
		spec: func(size int64) map[string]any { return map[string]any{"replicas": size} },
		made: statefulSet("prometheus-", ""), sized: []string{"spec", "replicas"},
		reads: "argument `--namespaces`", needed: "nothing",
	},
	{
		name: "rabbitmq-cluster-operator", namespace: "rabbitmq-system",
		manifests: func(w *world, folder string) []byte {
			return w.tool("kustomize", "build", filepath.Join(folder, "config", "installation"))
		},
		workload: "rabbitmq-cluster-operator", account: "rabbitmq-cluster-operator",
		arguments: []string{"--metrics-bind-address=127.0.0.1:0"},
		lease:     "rabbitmq-cluster-operator-leader-election", finalizer: "deletion.finalizers.rabbitmqclusters.rabbitmq.com",
		resource: schema.GroupVersionKind{Group: "rabbitmq.com", Version: "v1beta1", Kind: "RabbitmqCluster"},
		plural:   "rabbitmqclusters",
		spec: func(size int64) map[string]any {
			return map[string]any{"replicas": int64(1), "terminationGracePeriodSeconds": size}
		},
		made: statefulSet("", "-server"), sized: graceTime,
		reads: "variable `OPERATOR_SCOPE_NAMESPACE`", needed: "nothing",
	},
	{
		name: "eck", namespace: "elastic-system",
		manifests: func(w *world, folder string) []byte {
			return w.tool("helm", "template", "elastic-operator", filepath.Join(folder, "deploy", "eck-operator"),
				"-n", "elastic-system", "--include-crds", "--kube-version", "1.35.0",
				"--set", "webhook.enabled=false,telemetry.disabled=true,config.validateStorageClass=false")
		},
		workload: "elastic-operator", account: "elastic-operator", lease: "elastic-operator-leader",
		resource: schema.GroupVersionKind{Group: "elasticsearch.k8s.elastic.co", Version: "v1", Kind: "Elasticsearch"},
		plural:   "elasticsearches",
		spec: func(size int64) map[string]any {
			template := map[string]any{"spec": map[string]any{"terminationGracePeriodSeconds": size}}

			return map[string]any{"version": "8.15.0", "nodeSets": []any{
				map[string]any{"name": "default", "count": int64(1), "podTemplate": template},
			}}
		},
		made: statefulSet("", "-es-default"), sized: graceTime,
		reads:  "variable `NAMESPACES`",
		needed: "of its chart `config.validateStorageClass: false` and `webhook.enabled: false`, which take cluster-wide rights",
	},
	{
		name: "keda", namespace: "keda",
		manifests: func(w *world, folder string) []byte {
			config := filepath.Join(folder, "config")

			return w.kustomize(filepath.Join(config, "crd"), filepath.Join(config, "rbac"), filepath.Join(config, "service_account"),
				filepath.Join(config, "manager"))
		},
		workload: "keda-operator", account: "keda-operator", clusterWide: true,
		// It ends once it has made its certificates, to begin with them.
		ready: "Starting Metrics Service gRPC Server",
		arguments: []string{
			"--cert-dir=/certs", "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0",
			"--metrics-service-bind-address=127.0.0.1:0",
		},
		environment: []string{"KEDA_CLUSTER_OBJECT_NAMESPACE=keda"},
		lease:       "operator.keda.sh", finalizer: "finalizer.keda.sh",
		resource: schema.GroupVersionKind{Group: "keda.sh", Version: "v1alpha1", Kind: "ScaledObject"}, plural: "scaledobjects",
		spec: func(size int64) map[string]any {
			return map[string]any{
				"scaleTargetRef": map[string]any{"name": only}, "maxReplicaCount": size,
				"triggers": []any{map[string]any{
					"type": "cpu", "metricType": "Utilization", "metadata": map[string]any{"value": "50"},
				}},
			}
		},
		beside: deployment,
		made: func(namespace, name string) *unstructured.Unstructured {
			return object("autoscaling/v2", "HorizontalPodAutoscaler", namespace, "keda-hpa-"+name)
		},
		sized: []string{"spec", "maxReplicas"},
		reads: "variable `WATCH_NAMESPACE`",
		needed: "the ClusterRoleBinding, for its cluster-scoped kinds, webhooks and APIService; of its kustomization not " +
			"`metrics-server`, which cannot run here",
	},
}
