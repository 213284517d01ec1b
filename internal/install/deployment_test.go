package install

import (
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// asked is a Deployment that leaves to the API server whatever it may.
func asked() *appsv1.Deployment {
	csv := member("op.v1")
	pod := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec
	probe := corev1.Probe{ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8081)},
	}}
	pod.Volumes = []corev1.Volume{{Name: "v"}}
	pod.Volumes[0].Secret = &corev1.SecretVolumeSource{SecretName: "s"}
	c := &pod.Containers[0]
	c.Ports = []corev1.ContainerPort{{ContainerPort: 8081}}
	c.LivenessProbe, c.ReadinessProbe, c.StartupProbe = &probe, probe.DeepCopy(), probe.DeepCopy()
	c.ReadinessProbe.PeriodSeconds = 7
	c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000m")}

	return (&Snapshot{}).deployment(csv, &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0], nil)
}

// stored is how the API server stores that: with the defaults of k8s.io/kubernetes/pkg/apis/apps/v1 and core/v1.
func stored() *appsv1.Deployment {
	d := asked()
	d.UID, d.ResourceVersion, d.Generation = "uid", "1", 1
	d.Annotations["deployment.kubernetes.io/revision"] = "1"
	d.Spec.Replicas, d.Spec.RevisionHistoryLimit, d.Spec.ProgressDeadlineSeconds = new(int32(1)), new(int32(10)), new(int32(600))
	quarter := intstr.FromString("25%")
	d.Spec.Strategy = appsv1.DeploymentStrategy{
		Type:          appsv1.RollingUpdateDeploymentStrategyType,
		RollingUpdate: &appsv1.RollingUpdateDeployment{MaxUnavailable: &quarter, MaxSurge: &quarter},
	}

	pod := &d.Spec.Template.Spec
	pod.RestartPolicy, pod.DNSPolicy, pod.SchedulerName = corev1.RestartPolicyAlways, corev1.DNSClusterFirst, "default-scheduler"
	pod.TerminationGracePeriodSeconds, pod.SecurityContext = new(int64(30)), &corev1.PodSecurityContext{}
	pod.DeprecatedServiceAccount = pod.ServiceAccountName
	pod.Volumes[0].Secret.DefaultMode = new(int32(420))
	c := &pod.Containers[0]
	c.ImagePullPolicy, c.TerminationMessagePath, c.TerminationMessagePolicy = "IfNotPresent", "/dev/termination-log", "File"
	c.Ports[0].Protocol = corev1.ProtocolTCP
	c.Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1")

	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		probe.HTTPGet.Scheme = corev1.URISchemeHTTP
		probe.TimeoutSeconds, probe.SuccessThreshold, probe.FailureThreshold = 1, 1, 3

		if probe.PeriodSeconds == 0 {
			probe.PeriodSeconds = 10
		}
	}

	return d
}

func TestIsAsWanted(t *testing.T) {
	t.Parallel()

	if !isAsWanted(stored(), asked()) {
		t.Error("what the API server fills in counts as a difference, and would be written again and again")
	}

	container := func(d *appsv1.Deployment) *corev1.Container { return &d.Spec.Template.Spec.Containers[0] }

	for reason, change := range map[string]func(live *appsv1.Deployment){
		"made from something else": func(d *appsv1.Deployment) { d.Annotations[AnnotationApplied] = "other" },
		"another account":          func(d *appsv1.Deployment) { d.Spec.Template.Spec.ServiceAccountName = "default" },
		"another image":            func(d *appsv1.Deployment) { container(d).Image = "example.com/op:2" },
		"no variable":              func(d *appsv1.Deployment) { container(d).Env = nil },
		"a changed variable":       func(d *appsv1.Deployment) { container(d).Env[0].Value = "x" },
		"a changed port":           func(d *appsv1.Deployment) { container(d).Ports[0].ContainerPort = 1 },
		"a changed probe":          func(d *appsv1.Deployment) { container(d).LivenessProbe.HTTPGet.Path = "/" },
		"a probe's period":         func(d *appsv1.Deployment) { container(d).ReadinessProbe.PeriodSeconds = 70 },
		"no probe":                 func(d *appsv1.Deployment) { container(d).LivenessProbe = nil },
		"less of a resource": func(d *appsv1.Deployment) {
			container(d).Resources.Requests[corev1.ResourceCPU] = resource.MustParse("1m")
		},
		"no label of an owner": func(d *appsv1.Deployment) { delete(d.Labels, scope.LabelOLMOwner) },
		"a host's port":        func(d *appsv1.Deployment) { container(d).Ports[0].HostPort = 1 },
		"another owner":        func(d *appsv1.Deployment) { d.OwnerReferences[0].UID = "other" },
		"no label of the pods": func(d *appsv1.Deployment) { d.Spec.Template.Labels = map[string]string{} },
	} {
		live := stored()
		change(live)

		if isAsWanted(live, asked()) {
			t.Errorf("%s is not seen", reason)
		}
	}

	beside := stored()
	beside.Labels["theirs"], beside.Spec.Template.Labels["theirs"] = "x", "x"
	container(beside).Env = append(container(beside).Env, corev1.EnvVar{Name: "THEIRS", Value: "x"})

	if !isAsWanted(beside, asked()) {
		t.Error("what others put beside it is written over and over, and stays")
	}

	none := asked()
	none.Spec.Replicas = new(int32(0))

	if isAsWanted(stored(), none) {
		t.Error("one replica is taken for none")
	}
}

// TestDeployment holds what goes from a CSV to the pods, and what does not.
func TestDeployment(t *testing.T) {
	t.Parallel()

	csv := member("op.v1")
	from := &csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0]
	from.Label = map[string]string{"theirs": "x", scope.LabelOLMOwner: "forged"}
	from.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{
		{Name: conditionVariable, Value: "old"}, {Name: "A", Value: "a"}, {Name: conditionVariable, Value: "older"},
	}
	before := csv.DeepCopy()
	d := (&Snapshot{}).deployment(csv, from, map[string]string{
		operatorsv1.TargetsAnnotation: "a,b", "ambit.dev/injected": "x", "nss.operator.ibm.com/managed-operators": "x",
		corev1.LastAppliedConfigAnnotation: "{}", "theirs": "x",
	})

	want := map[string]string{operatorsv1.TargetsAnnotation: "a,b", "theirs": "x"}
	if got := d.Spec.Template.Annotations; !maps.Equal(got, want) {
		t.Errorf("the pods are annotated with %v, want %v", got, want)
	}

	if d.Labels["theirs"] != "x" || d.Labels[scope.LabelOLMOwner] != "op.v1" ||
		d.Labels[scope.LabelOLMOwnerNamespace] != ownNamespace {
		t.Errorf("labels are %v", d.Labels)
	}

	env := []corev1.EnvVar{{Name: "A", Value: "a"}, {Name: conditionVariable, Value: "op.v1"}}
	if got := d.Spec.Template.Spec.Containers[0].Env; !slices.Equal(got, env) {
		t.Errorf("the environment is %v, want %v", got, env)
	}

	if !slices.ContainsFunc(d.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == csv.UID }) {
		t.Errorf("owners are %v", d.OwnerReferences)
	}

	if csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Annotations != nil ||
		len(before.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Env) != 3 ||
		len(from.Spec.Template.Spec.Containers[0].Env) != 3 {
		t.Error("the CSV itself was changed")
	}
}
