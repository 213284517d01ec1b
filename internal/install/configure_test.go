package install

import (
	"slices"
	"strings"
	"testing"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func subscription(t *testing.T, config string) *unstructured.Unstructured {
	t.Helper()

	obj := map[string]any{}
	if err := yaml.Unmarshal([]byte(`
metadata: {name: sub}
status: {installedCSV: op.v1, currentCSV: op.v2}
spec: {`+config+`}`), &obj); err != nil {
		t.Fatal(err)
	}

	return &unstructured.Unstructured{Object: obj}
}

const configured = `config: {
  env: [{name: A, value: theirs}, {name: C, value: new}],
  envFrom: [{configMapRef: {name: more}}],
  resources: {limits: {cpu: "1"}},
  nodeSelector: {disk: fast},
  tolerations: [{key: k, operator: Exists}],
  affinity: {nodeAffinity: {}},
  volumes: [{name: v, emptyDir: {}}],
  volumeMounts: [{name: v, mountPath: /v}],
  annotations: {note: theirs, mine: theirs},
  selector: {matchLabels: {app: op}}
}`

// TestConfigure: everything that a Subscription can say reaches the Deployments.
func TestConfigure(t *testing.T) {
	t.Parallel()

	names, config := ReadConfig(subscription(t, configured))
	if config == nil || config.Problem != "" || !slices.Equal(names, []string{"op.v1", "op.v2"}) {
		t.Fatalf("read %v for %v", config, names)
	}

	w := snapshotOf([]string{"a"}, member("op.v1", func(c *olm.ClusterServiceVersion) {
		pods := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template
		pods.Annotations = map[string]string{"mine": "own"}
		pods.Spec.InitContainers = []corev1.Container{{Name: "before"}}
		pods.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "own"}, {Name: "B", Value: "$(A)"}}
	}))
	w.Configs = map[string]*Config{"op.v1": config}

	d := w.deployments(w.CSVs[0], nil)[0]
	pods := &d.Spec.Template
	c := &pods.Spec.Containers[0]

	var env []string
	for _, e := range c.Env {
		env = append(env, e.Name+"="+e.Value)
	}

	for what, is := range map[string]bool{
		"env": strings.Join(env, " ") == "A=theirs B=$(A) OPERATOR_CONDITION_NAME=op.v1 C=new", "envFrom": len(c.EnvFrom) == 1,
		"resources": c.Resources.Limits.Cpu().String() == "1", "nodeSelector": pods.Spec.NodeSelector["disk"] == "fast",
		"tolerations": len(pods.Spec.Tolerations) == 1, "affinity": pods.Spec.Affinity != nil,
		"volumes": len(pods.Spec.Volumes) == 1, "volumeMounts": len(c.VolumeMounts) == 1,
		"annotations":    pods.Annotations["note"] == "theirs" && pods.Annotations["mine"] == "own",
		"of Deployment":  d.Annotations["note"] == "theirs",
		"initContainers": len(pods.Spec.InitContainers[0].Env) == 0,
	} {
		if !is {
			t.Errorf("%s are not as they should be: %+v", what, pods)
		}
	}

	again := w.deployments(w.CSVs[0], nil)[0]
	if again.Annotations[AnnotationApplied] != d.Annotations[AnnotationApplied] {
		t.Error("the same is not applied twice")
	}
}

func TestConfigureOnlyWhatIsSelected(t *testing.T) {
	t.Parallel()

	_, config := ReadConfig(subscription(t, `config: {env: [{name: C, value: new}], selector: {matchLabels: {app: other}}}`))
	d := &appsv1.Deployment{}
	d.Spec.Template.Labels = map[string]string{"app": "op"}
	d.Spec.Template.Spec.Containers = []corev1.Container{{}}

	config.configure(d)

	if len(d.Spec.Template.Spec.Containers[0].Env) != 0 {
		t.Error("a Deployment is configured that the selector does not select")
	}
}

// TestConfigThatCannotBeRead: an operator is not said to be installed while what somebody asked for is left out.
func TestConfigThatCannotBeRead(t *testing.T) {
	t.Parallel()

	for name, config := range map[string]string{
		"no object": `config: nothing`, "field": `config: {env: {A: B}}`,
		"selector": `config: {selector: {matchExpressions: [{key: a, operator: Sometimes}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			_, got := ReadConfig(subscription(t, config))
			w := snapshotOf([]string{"a"}, member("op.v1"))
			w.Configs = map[string]*Config{"op.v1": got}

			if v := w.Decide(w.CSVs[0]); v.Phase != olm.CSVPhaseFailed || v.ApplyObjects ||
				!strings.Contains(v.Message, "Subscription sub") {
				t.Errorf("it is %s: %s", v.Phase, v.Message)
			}
		})
	}

	if _, none := ReadConfig(subscription(t, `name: op`)); none != nil {
		t.Error("nothing is said, and something is read")
	}
}
