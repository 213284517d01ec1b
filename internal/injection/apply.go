package injection

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
)

// The following hold those fields of a pod template that a server-side apply may send. The types of Kubernetes send zero
// values as well, such as a container's resources, and would own those.
type (
	// Spec is the spec of a workload.
	Spec struct {
		Template Template `json:"template"`
	}
	// Template is a pod template.
	Template struct {
		Metadata *Metadata `json:"metadata,omitempty"`
		Spec     PodSpec   `json:"spec"`
	}
	// Metadata is that of a pod template.
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	}
	// PodSpec is the spec of a pod.
	PodSpec struct {
		InitContainers []Container     `json:"initContainers,omitempty"`
		Containers     []Container     `json:"containers,omitempty"`
		Volumes        []corev1.Volume `json:"volumes,omitempty"`
	}
	// Container is a container.
	Container struct {
		Name         string               `json:"name"`
		Env          []corev1.EnvVar      `json:"env,omitempty"`
		Args         []string             `json:"args,omitempty"`
		VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`
	}
)

// Spec returns the fields to apply to a workload. They are the same whether or not some of them were applied before, because the
// API server takes back what an apply leaves out.
func (w *Want) Spec(t *facts.PodSpec) Spec {
	var out PodSpec

	for _, c := range w.in(t) {
		into := Container{Name: c.Name}
		if w.Variable != "" {
			into.Env = []corev1.EnvVar{w.variable()}
		}

		// A list of arguments is atomic, so it has one owner: a list that has ours among others is somebody else's.
		if len(c.Args) == 0 || slices.Equal(c.Args, w.Arguments) {
			into.Args = w.Arguments
		}

		if at := w.mountedAt(c); w.MountPath != "" && (at == "" || at == Volume) {
			into.VolumeMounts = []corev1.VolumeMount{w.mount()}
			out.Volumes = []corev1.Volume{w.volume()}
		}

		if c.Init {
			out.InitContainers = append(out.InitContainers, into)
		} else {
			out.Containers = append(out.Containers, into)
		}
	}

	return Spec{Template{Spec: out}}
}
