package install

import (
	"reflect"
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

// TestConfigOverridesWhatItNames: of two entries that mean the same, that of the Subscription counts, and the others stay.
func TestConfigOverridesWhatItNames(t *testing.T) {
	t.Parallel()

	source := corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{}}
	source.ConfigMapRef.Name = "a"

	own := func() *appsv1.Deployment {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec = corev1.PodSpec{
			Tolerations:  []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists}, {Key: "l"}},
			Volumes:      []corev1.Volume{{Name: "v"}, {Name: "w"}},
			NodeSelector: map[string]string{"own": "yes"},
			Containers: []corev1.Container{{
				EnvFrom:      []corev1.EnvFromSource{source},
				VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}, {Name: "w", MountPath: "/w"}, {Name: "x", MountPath: "/x"}},
				Resources:    corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "own"}}},
			}},
		}

		return d
	}

	for reason, tc := range map[string]struct {
		config string
		want   func(*corev1.PodSpec) bool
	}{
		"nothing": {`env: []`, func(p *corev1.PodSpec) bool {
			return len(p.Tolerations) == 2 && len(p.Volumes) == 2 && p.NodeSelector["own"] == "yes" && p.Affinity == nil &&
				len(p.Containers[0].Resources.Claims) == 1
		}},
		"a toleration of the same": {`tolerations: [{key: k, operator: Exists, tolerationSeconds: 5}]`, func(p *corev1.PodSpec) bool {
			return len(p.Tolerations) == 2
		}},
		"another toleration": {`tolerations: [{key: k, operator: Exists, effect: NoExecute}]`, func(p *corev1.PodSpec) bool {
			return len(p.Tolerations) == 3
		}},
		"a volume of the same name": {`volumes: [{name: v, emptyDir: {}}]`, func(p *corev1.PodSpec) bool {
			return len(p.Volumes) == 2 && slices.ContainsFunc(p.Volumes, func(v corev1.Volume) bool { return v.EmptyDir != nil })
		}},
		"mounts of the same name, and at the same place": {
			`volumeMounts: [{name: v, mountPath: /new}, {name: new, mountPath: /w}]`, func(p *corev1.PodSpec) bool {
				var at []string
				for _, m := range p.Containers[0].VolumeMounts {
					at = append(at, m.Name+m.MountPath)
				}

				slices.Sort(at)

				return strings.Join(at, " ") == "new/w v/new x/x"
			},
		},
		"a source that is there": {`envFrom: [{configMapRef: {name: a}}]`, func(p *corev1.PodSpec) bool {
			return len(p.Containers[0].EnvFrom) == 1
		}},
		"with another prefix": {`envFrom: [{prefix: P, configMapRef: {name: a}}]`, func(p *corev1.PodSpec) bool {
			return len(p.Containers[0].EnvFrom) == 2
		}},
		"another source": {`envFrom: [{configMapRef: {name: b}}, {secretRef: {name: a}}]`, func(p *corev1.PodSpec) bool {
			return len(p.Containers[0].EnvFrom) == 3
		}},
		"the last of two variables": {
			`env: [{name: A, value: "1"}, {name: B, value: "2"}, {name: A, value: "3"}]`, func(p *corev1.PodSpec) bool {
				env := p.Containers[0].Env

				return len(env) == 2 && env[0].Name == "B" && env[1].Value == "3"
			},
		},
		"no nodes":     {`nodeSelector: {}`, func(p *corev1.PodSpec) bool { return len(p.NodeSelector) == 0 }},
		"no resources": {`resources: {}`, func(p *corev1.PodSpec) bool { return len(p.Containers[0].Resources.Claims) == 0 }},
	} {
		_, config := ReadConfig(subscription(t, "config: {"+tc.config+"}"))
		if config == nil || config.Problem != "" {
			t.Fatalf("%s: %+v", reason, config)
		}

		d := own()
		if config.configure(d); !tc.want(&d.Spec.Template.Spec) {
			t.Errorf("%s: %+v", reason, d.Spec.Template.Spec)
		}
	}
}

// TestAffinityByParts: a Subscription overrides the parts of an affinity that it gives, and leaves the others.
func TestAffinityByParts(t *testing.T) {
	t.Parallel()

	terms := func(key string) []corev1.PodAffinityTerm { return []corev1.PodAffinityTerm{{TopologyKey: key}} }
	of := func(key string) *corev1.Affinity {
		return &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
				{Weight: int32(len(key))},
			}},
			PodAffinity:     &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms(key)},
			PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms(key)},
		}
	}
	own, theirs := of("own"), of("theirs")

	for reason, tc := range map[string]struct{ has, says, want *corev1.Affinity }{
		"nothing said": {own, nil, own}, "nothing had": {nil, theirs, theirs}, "nothing given": {own, &corev1.Affinity{}, own},
		"everything": {own, theirs, theirs},
		"of nodes": {own, &corev1.Affinity{NodeAffinity: theirs.NodeAffinity}, &corev1.Affinity{
			NodeAffinity: theirs.NodeAffinity, PodAffinity: own.PodAffinity, PodAntiAffinity: own.PodAntiAffinity,
		}},
		"of pods": {own, &corev1.Affinity{PodAffinity: theirs.PodAffinity}, &corev1.Affinity{
			NodeAffinity: own.NodeAffinity, PodAffinity: theirs.PodAffinity, PodAntiAffinity: own.PodAntiAffinity,
		}},
		"against pods": {own, &corev1.Affinity{PodAntiAffinity: theirs.PodAntiAffinity}, &corev1.Affinity{
			NodeAffinity: own.NodeAffinity, PodAffinity: own.PodAffinity, PodAntiAffinity: theirs.PodAntiAffinity,
		}},
	} {
		if got := affinity(tc.has, tc.says); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", reason, got, tc.want)
		}
	}

	if !reflect.DeepEqual(own, of("own")) {
		t.Error("what the operator says was changed")
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
