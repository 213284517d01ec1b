package injection_test

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/injection"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// The following draw templates that the API server accepts, from so few names that what they say often meets what is wanted.

func someTemplate(t *rapid.T) *template {
	out := &template{}
	out.Labels = rapid.MapOfN(labelKey(), rapid.SampledFrom([]string{"", "projected", "x"}), 0, 4).Draw(t, "labels")
	out.Spec.ServiceAccountName = rapid.SampledFrom([]string{"", "op"}).Draw(t, "account")
	out.Spec.Volumes = someVolumes(t)

	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 4, rapid.ID[string]).Draw(t, "containers")
	inits := rapid.IntRange(0, len(names)-1).Draw(t, "init containers")

	for i, name := range names {
		c := someContainer(t, name, out.Spec.Volumes)
		if i < inits {
			out.Spec.InitContainers = append(out.Spec.InitContainers, c)
		} else {
			out.Spec.Containers = append(out.Spec.Containers, c)
		}
	}

	return out
}

func labelKey() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"intent", "app", "example.com/part-of", "a_b", "a.b/c_d"})
}

func someVolumes(t *rapid.T) []corev1.Volume {
	var out []corev1.Volume

	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"v", "w", "list"}), 0, 3, rapid.ID[string])
	for _, name := range names.Draw(t, "volumes") {
		v := corev1.Volume{Name: name}
		if rapid.Bool().Draw(t, name+" is of a ConfigMap") {
			v.ConfigMap = &corev1.ConfigMapVolumeSource{}
			v.ConfigMap.Name = someList(t)
		} else {
			v.EmptyDir = &corev1.EmptyDirVolumeSource{}
		}

		out = append(out, v)
	}

	return out
}

func someList(t *rapid.T) string {
	return rapid.SampledFrom([]string{"namespace-scope", "other"}).Draw(t, "ConfigMap")
}

func someContainer(t *rapid.T, name string, volumes []corev1.Volume) corev1.Container {
	c := corev1.Container{Name: name, Image: "x", Args: someArguments(t)}

	// Kubernetes lets a container have a variable twice; the last one counts.
	for range rapid.IntRange(0, 4).Draw(t, "variables") {
		c.Env = append(c.Env, someVariable(t))
	}

	paths := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"/etc/ambit", "/etc/ambit/", "/data"}), 0, 2, rapid.ID[string])
	for _, path := range paths.Draw(t, "mounts") {
		if len(volumes) > 0 {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
				Name: rapid.SampledFrom(volumes).Draw(t, "volume").Name, MountPath: path,
			})
		}
	}

	return c
}

func someArguments(t *rapid.T) []string {
	return rapid.SliceOfN(rapid.SampledFrom([]string{"--watch=$(LIST)", "--leader-elect", "-v", ""}), 0, 4).Draw(t, "arguments")
}

func someVariable(t *rapid.T) corev1.EnvVar {
	v := corev1.EnvVar{Name: rapid.SampledFrom([]string{"WATCH_NAMESPACE", "LIST", "OTHER"}).Draw(t, "variable")}
	from := &corev1.EnvVarSource{}
	optional := rapid.SampledFrom([]*bool{nil, new(true), new(false)}).Draw(t, "optional")

	switch rapid.IntRange(0, 6).Draw(t, "from") {
	case 0:
		return v
	case 1:
		v.Value = "a,b"

		return v
	case 2:
		from.FieldRef = &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['olm.targetNamespaces']"}
	case 3:
		from.ResourceFieldRef = &corev1.ResourceFieldSelector{ContainerName: "a", Resource: "limits.cpu"}
	case 4:
		from.SecretKeyRef = &corev1.SecretKeySelector{Key: "namespaces", Optional: optional}
		from.SecretKeyRef.Name = "namespace-scope"
	case 5:
		from.FileKeyRef = &corev1.FileKeySelector{VolumeName: "v", Path: "env", Key: "namespaces", Optional: optional}
	default:
		from.ConfigMapKeyRef = &corev1.ConfigMapKeySelector{
			Key: rapid.SampledFrom([]string{"namespaces", "other"}).Draw(t, "key"), Optional: optional,
		}
		from.ConfigMapKeyRef.Name = someList(t)
	}

	v.ValueFrom = from

	return v
}

// someWant is what a workload should have; that of a ClusterServiceVersion has labels and one variable, and nothing else.
func someWant(t *rapid.T) *injection.Want {
	w := &injection.Want{ConfigMap: someList(t), Optional: rapid.Bool().Draw(t, "is optional")}
	if rapid.Bool().Draw(t, "of a CSV") {
		return csvWant(t)
	}

	w.Variable = rapid.SampledFrom([]string{"", "WATCH_NAMESPACE", "LIST"}).Draw(t, "wanted variable")
	w.MountPath = rapid.SampledFrom([]string{"", "/etc/ambit"}).Draw(t, "mountPath")
	w.Containers = rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "nosuch"}), 0, 2).Draw(t, "wanted containers")

	if len(w.Containers) > 0 {
		w.Arguments = someArguments(t)
	}

	return w
}

func csvWant(t *rapid.T) *injection.Want {
	return &injection.Want{
		ConfigMap: someList(t), Optional: true,
		Labels:            rapid.MapOfN(labelKey(), rapid.SampledFrom([]string{"", "projected", "y"}), 0, 3).Draw(t, "wanted labels"),
		WorkloadInjection: scope.WorkloadInjection{Variable: "WATCH_NAMESPACE"},
	}
}

// isLeftAlone says whether nothing is put into a template, because of what can never be replaced.
func isLeftAlone(w *injection.Want, in *template) bool {
	for _, c := range conflicts(w, in) {
		if !c.Replaceable {
			return true
		}
	}

	return false
}

// rest is a template without everything that an injection may touch: it must be as before.
func rest(w *injection.Want, in *template) *template {
	out := in.DeepCopy()
	for k := range w.Labels {
		delete(out.Labels, k)
	}

	out.Spec.Volumes = slices.DeleteFunc(out.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == injection.Volume })

	for _, sort := range [][]corev1.Container{out.Spec.InitContainers, out.Spec.Containers} {
		for i := range sort {
			if len(w.Containers) == 0 || slices.Contains(w.Containers, sort[i].Name) {
				stripContainer(w, &sort[i])
			}
		}
	}

	return out
}

func stripContainer(w *injection.Want, c *corev1.Container) {
	for i, v := range slices.Backward(c.Env) {
		if v.Name == w.Variable {
			c.Env = slices.Delete(c.Env, i, i+1)

			break
		}
	}

	c.VolumeMounts = slices.DeleteFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
		return m.Name == injection.Volume && m.MountPath == w.MountPath && m.ReadOnly
	})
	c.Args = slices.DeleteFunc(c.Args, func(a string) bool { return slices.Contains(w.Arguments, a) })
}

// someFacts are what no API server would say: names twice, or empty, and places that are nowhere.
func someFacts(t *rapid.T) *facts.PodSpec {
	out := *factsOf(someTemplate(t))

	for i := range out.Containers {
		c := &out.Containers[i]
		if rapid.Bool().Draw(t, fmt.Sprintf("container %d is odd", i)) {
			c.Name = rapid.SampledFrom([]string{"", "a"}).Draw(t, "name")
			c.Env = append(c.Env, c.Env...)
			c.Mounts = append(c.Mounts, facts.Mount{}, facts.Mount{Path: "/etc/ambit", Volume: injection.Volume})
		}

		if rapid.Bool().Draw(t, fmt.Sprintf("container %d is empty", i)) {
			*c = facts.Container{}
		}
	}

	out.Volumes = append(out.Volumes, facts.Volume{}, facts.Volume{Name: injection.Volume})

	return &out
}
