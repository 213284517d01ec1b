package read

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

func reference(name string) corev1.LocalObjectReference {
	return corev1.LocalObjectReference{Name: name}
}

func TestConfigMapsReadBy(t *testing.T) {
	t.Parallel()

	variable := corev1.Container{Env: []corev1.EnvVar{
		{Name: "PLAIN", Value: "x"},
		{Name: "FIELD", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{}}},
		{Name: "LIST", ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: reference("list")},
		}},
	}}

	for name, tc := range map[string]struct {
		reason string
		spec   corev1.PodSpec
		want   []string
	}{
		"nothing":  {"most pods read none", corev1.PodSpec{Containers: []corev1.Container{{}}}, nil},
		"variable": {"by a variable", corev1.PodSpec{Containers: []corev1.Container{variable}}, []string{"list"}},
		"init":     {"init containers count", corev1.PodSpec{InitContainers: []corev1.Container{variable}}, []string{"list"}},
		"all keys": {"by all its keys", corev1.PodSpec{Containers: []corev1.Container{{EnvFrom: []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: reference("no")}},
			{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: reference("list")}},
		}}}}, []string{"list"}},
		"volume": {"by a volume", corev1.PodSpec{Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: reference("list")}}},
		}}, []string{"list"}},
		"projected": {"by a part of a projected volume", corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{DownwardAPI: &corev1.DownwardAPIProjection{}},
				{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: reference("list")}},
			}},
		}}}}, []string{"list"}},
		"twice": {"each name once, sorted", corev1.PodSpec{
			Containers: []corev1.Container{variable, variable},
			Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
				ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: reference("a")},
			}}},
		}, []string{"a", "list"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			if got := configMapsReadBy(&tc.spec); !slices.Equal(got, tc.want) {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

func TestConvertWorkloadKinds(t *testing.T) {
	t.Parallel()

	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"intent": "projected"}},
		Spec:       corev1.PodSpec{ServiceAccountName: "account"},
	}
	meta := metav1.ObjectMeta{Name: "w"}

	for kind, obj := range map[facts.WorkloadKind]client.Object{
		facts.Deployment:  &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: template}},
		facts.StatefulSet: &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Template: template}},
		facts.DaemonSet:   &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Template: template}},
		facts.Job:         &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Template: template}},
		facts.CronJob: &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: template}},
		}},
	} {
		w, ok := convertWorkload(obj)
		if !ok || w.Kind != kind || w.Template.Account != "account" || w.Template.Labels["intent"] != "projected" {
			t.Errorf("%s: %+v", kind, w)
		}
	}
}

// TestReplicaSetsOfOthersAreNotKept: there are many of them, and whoever controls one is read itself.
func TestReplicaSetsOfOthersAreNotKept(t *testing.T) {
	t.Parallel()

	r := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{
		Name: "w", OwnerReferences: []metav1.OwnerReference{{Kind: "ConfigMap", Name: "c"}},
	}}
	r.Annotations = map[string]string{scope.AnnotationRestarted: "2026-01-01T00:00:00Z"}
	r.Spec.Template.Annotations = map[string]string{scope.AnnotationListHash: "of another"}

	if w, keep := convertWorkload(r); !keep || w.Kind != facts.ReplicaSet || w.ListHash != "" || !w.Restarted.IsZero() {
		t.Errorf("one that nobody controls is kept, without marks that Ambit does not write: %t, %+v", keep, w)
	}

	r.OwnerReferences = []metav1.OwnerReference{{Kind: "Deployment", Name: "w", Controller: new(true)}}
	if _, keep := convertWorkload(r); keep {
		t.Error("one of a Deployment is kept")
	}
}

func TestConvertWorkloadOwnedByOLM(t *testing.T) {
	t.Parallel()

	for reason, tc := range map[string]struct {
		change func(*appsv1.Deployment)
		want   bool
	}{
		"nobody's": {func(*appsv1.Deployment) {}, false},
		"a CSV's": {func(d *appsv1.Deployment) {
			d.Labels = map[string]string{"olm.owner": "etcd", "olm.owner.kind": "ClusterServiceVersion"}
		}, true},
		"an owner of another kind": {func(d *appsv1.Deployment) {
			d.Labels = map[string]string{"olm.owner": "etcd", "olm.owner.kind": "OperatorGroup"}
		}, false},
		"OLM's group on the pods": {func(d *appsv1.Deployment) {
			d.Spec.Template.Annotations = map[string]string{"olm.operatorGroup": "g"}
		}, true},
	} {
		d := &appsv1.Deployment{}
		tc.change(d)

		if w, _ := convertWorkload(d); w.OwnedByOLM != tc.want {
			t.Errorf("%s: owned by OLM is %v", reason, w.OwnedByOLM)
		}
	}
}

func TestConvertPod(t *testing.T) {
	t.Parallel()

	early, late := metav1.NewTime(time.Unix(100, 0)), metav1.NewTime(time.Unix(200, 0))
	owned := func(kind, name string) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: kind, Name: name, Controller: new(true)}}
	}

	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "p", UID: "u", Labels: map[string]string{"pod-template-hash": "abc"}, OwnerReferences: owned("ReplicaSet", "my-op-abc"),
		},
		Status: corev1.PodStatus{
			InitContainerStatuses: []corev1.ContainerStatus{
				{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: early}}},
			},
			ContainerStatuses: []corev1.ContainerStatus{
				{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: late}}},
				{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}},
			},
		},
	}

	p, _ := convertPod(pod)
	if p.Controller != (facts.WorkloadRef{Kind: facts.Deployment, Name: "my-op"}) {
		t.Errorf("a Deployment's pod belongs to %v", p.Controller)
	}

	if p.PodRef != (facts.PodRef{Name: "p", UID: "u"}) {
		t.Errorf("it is %v", p.PodRef)
	}

	if !p.Began.Equal(early.Time) {
		t.Errorf("it began at %s, with its first container", p.Began)
	}

	if p.Account != "default" {
		t.Errorf("a pod that names no account has the default one, not %q", p.Account)
	}

	pod.OwnerReferences = owned("ReplicaSet", "handmade")
	if p, _ = convertPod(pod); p.Controller.Kind != "ReplicaSet" {
		t.Errorf("a ReplicaSet without a Deployment is itself the controller, not %v", p.Controller)
	}

	pod.OwnerReferences, pod.Status.Phase = nil, corev1.PodSucceeded
	if p, _ = convertPod(pod); p.Controller.Kind != "" || !p.Ending {
		t.Errorf("a bare pod that is finished: %+v", p)
	}
}

func TestConvertConfigMap(t *testing.T) {
	t.Parallel()

	at := metav1.NewTime(time.Unix(100, 0))
	cm, _ := convertConfigMap(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: "7",
			Annotations:     map[string]string{"ambit.dev/namespaces-since": "not a time", "ambit.dev/created": "true"},
			ManagedFields: []metav1.ManagedFieldsEntry{
				{Manager: "ambit", Time: &at}, {Manager: "kubectl", Time: new(metav1.NewTime(time.Unix(200, 0)))},
			},
		},
		Data:       map[string]string{"namespaces": "a"},
		BinaryData: map[string][]byte{"x": nil},
	})

	if !cm.HasList || !cm.OtherKeys || !cm.Created || cm.Version != 7 || !cm.Applied.Equal(at.Time) || !cm.Since.IsZero() {
		t.Errorf("got %+v", cm)
	}

	if cm, _ = convertConfigMap(&corev1.ConfigMap{}); cm.HasList || cm.Ours() {
		t.Errorf("a ConfigMap without data is somebody else's and has no list: %+v", cm)
	}
}
