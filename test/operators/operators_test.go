package operators_test

import (
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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
	// lease is what its leader holds; empty where nobody leads.
	lease string
	// finalizer is what it puts on its resources, if it does.
	finalizer string

	// resource is one of its kinds; plural is for asking who may work with it.
	resource schema.GroupVersionKind
	plural   string
	// spec is that of a resource, of a size.
	spec func(size int64) map[string]any
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
}
