package embedded

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errOnlyKubelet is for a value that only a real kubelet knows.
var errOnlyKubelet = errors.New("it comes from where only a real kubelet can read")

// reference matches a variable in an argument or in the value of another variable; two dollar signs stand for one.
var reference = regexp.MustCompile(`\$\$|\$\([-._a-zA-Z][-._a-zA-Z0-9]*\)`)

// command is what a pod's container runs, with its environment and its files.
func (k *Kubelet) command(pod *corev1.Pod, ports map[int]int) (*exec.Cmd, error) {
	environment, err := k.environment(pod)
	if err != nil {
		return nil, err
	}

	moved, err := k.mounts(pod)
	if err != nil {
		return nil, err
	}

	temporary := k.folder(pod, "/tmp")
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return nil, fmt.Errorf("making the temporary folder of pod %s: %w", pod.Name, err)
	}

	c := &pod.Spec.Containers[0]
	arguments := slices.Concat(c.Command[min(1, len(c.Command)):], c.Args, k.options.Arguments)

	for port, argument := range k.options.Ports {
		arguments = append(arguments, fmt.Sprintf(argument, ports[port]))
	}

	for i, argument := range arguments {
		arguments[i] = moved.in(expand(argument, environment))
	}

	command := WithLifeline(k.options.Programs[c.Image], arguments...)
	command.Env = ours()

	for _, v := range environment {
		command.Env = append(command.Env, v.Name+"="+moved.in(v.Value))
	}

	command.Env = append(command.Env, "TMPDIR="+temporary)
	command.Env = append(command.Env, k.options.Environment...)

	return command, nil
}

// ours is this program's environment, without variables that lead to a cluster or are meant for operators.
func ours() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "KUBE") || strings.HasPrefix(variable, "WATCH_NAMESPACE=")
	})
}

// expand replaces references by the values of variables. A reference to an unknown variable stays as it is.
func expand(text string, environment []corev1.EnvVar) string {
	return reference.ReplaceAllStringFunc(text, func(found string) string {
		if found == "$$" {
			return "$"
		}

		for _, v := range slices.Backward(environment) {
			if found == "$("+v.Name+")" {
				return v.Value
			}
		}

		return found
	})
}

// environment is what the pod's container asks for. Values may refer to variables before them.
func (k *Kubelet) environment(pod *corev1.Pod) ([]corev1.EnvVar, error) {
	var out []corev1.EnvVar

	for _, from := range pod.Spec.Containers[0].EnvFrom {
		data, err := k.envFrom(pod.Namespace, &from)
		if err != nil {
			return nil, fmt.Errorf("envFrom of pod %s: %w", pod.Name, err)
		}

		for name, value := range data {
			out = append(out, corev1.EnvVar{Name: from.Prefix + name, Value: value})
		}
	}

	for _, v := range pod.Spec.Containers[0].Env {
		value, set, err := k.value(pod, &v)
		if err != nil {
			return nil, fmt.Errorf("variable %s of pod %s: %w", v.Name, pod.Name, err)
		}

		if set {
			out = append(out, corev1.EnvVar{Name: v.Name, Value: expand(value, out)})
		}
	}

	return out, nil
}

func (k *Kubelet) envFrom(namespace string, from *corev1.EnvFromSource) (map[string]string, error) {
	switch {
	case from.ConfigMapRef != nil:
		return k.configMap(namespace, from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
	case from.SecretRef != nil:
		return k.secret(namespace, from.SecretRef.Name, from.SecretRef.Optional)
	}

	return nil, errOnlyKubelet
}

func (k *Kubelet) value(pod *corev1.Pod, v *corev1.EnvVar) (value string, set bool, err error) {
	switch from := v.ValueFrom; {
	case from == nil:
		return v.Value, true, nil
	case from.FieldRef != nil:
		value, err = field(pod, from.FieldRef.FieldPath)

		return value, true, err
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		data, err := k.configMap(pod.Namespace, ref.Name, ref.Optional)

		return keyOf(data, ref.Key, ref.Optional, err)
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		data, err := k.secret(pod.Namespace, ref.Name, ref.Optional)

		return keyOf(data, ref.Key, ref.Optional, err)
	}

	return "", false, errOnlyKubelet
}

// field is what the downward API says of a pod.
func field(pod *corev1.Pod, path string) (string, error) {
	if name, ok := strings.CutPrefix(path, "metadata.labels['"); ok {
		return pod.Labels[strings.TrimSuffix(name, "']")], nil
	}

	if name, ok := strings.CutPrefix(path, "metadata.annotations['"); ok {
		return pod.Annotations[strings.TrimSuffix(name, "']")], nil
	}

	known := map[string]string{
		"metadata.name": pod.Name, "metadata.namespace": pod.Namespace, "metadata.uid": string(pod.UID),
		"spec.nodeName": pod.Spec.NodeName, "spec.serviceAccountName": pod.Spec.ServiceAccountName, "status.podIP": "127.0.0.1",
	}

	value, ok := known[path]
	if !ok {
		return "", errOnlyKubelet
	}

	return value, nil
}

func keyOf(data map[string]string, key string, optional *bool, err error) (value string, set bool, _ error) {
	if err != nil {
		return "", false, err
	}

	value, set = data[key]
	if !set && !isTrue(optional) {
		return "", false, fmt.Errorf("there is no key %s", key)
	}

	return value, set, nil
}

func isTrue(b *bool) bool { return b != nil && *b }

// configMap returns the data of a ConfigMap; nothing if the ConfigMap is missing and optional.
func (k *Kubelet) configMap(namespace, name string, optional *bool) (map[string]string, error) {
	cm, err := k.clients.CoreV1().ConfigMaps(namespace).Get(k.ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, unlessOptional(fmt.Errorf("reading ConfigMap %s: %w", name, err), optional)
	}

	return cm.Data, nil
}

func (k *Kubelet) secret(namespace, name string, optional *bool) (map[string]string, error) {
	s, err := k.clients.CoreV1().Secrets(namespace).Get(k.ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, unlessOptional(fmt.Errorf("reading Secret %s: %w", name, err), optional)
	}

	data := map[string]string{}
	for key, value := range s.Data {
		data[key] = string(value)
	}

	return data, nil
}

func unlessOptional(err error, optional *bool) error {
	if isTrue(optional) && apierrors.IsNotFound(err) {
		return nil
	}

	return err
}

// folders says where a pod's volumes are on this machine, because processes share one file system. Each has the path in the
// container, then that on this machine.
type folders [][2]string

// in replaces the paths in a container that a text names by those on this machine.
func (f folders) in(text string) string {
	for _, folder := range f {
		at := regexp.MustCompile(`(^|[=,: ])` + regexp.QuoteMeta(folder[0]) + `(/|[,: ]|$)`)
		text = at.ReplaceAllString(text, "${1}"+strings.ReplaceAll(folder[1], "$", "$$")+"${2}")
	}

	return text
}

// folder returns where a folder of a pod's container is on this machine.
func (k *Kubelet) folder(pod *corev1.Pod, path string) string {
	return filepath.Join(k.options.Dir, string(pod.UID), path)
}

// mounts writes the files of a pod's ConfigMaps and Secrets, as they are now. Other volumes are empty folders.
func (k *Kubelet) mounts(pod *corev1.Pod) (folders, error) {
	var out folders

	for _, mount := range pod.Spec.Containers[0].VolumeMounts {
		at := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if at < 0 || mount.MountPath == tokenPath {
			continue
		}

		data, err := k.volume(pod.Namespace, &pod.Spec.Volumes[at])
		if err != nil {
			return nil, fmt.Errorf("volume %s of pod %s: %w", mount.Name, pod.Name, err)
		}

		folder := k.folder(pod, mount.MountPath)
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, fmt.Errorf("making the folder of volume %s: %w", mount.Name, err)
		}

		for name, content := range data {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
				return nil, fmt.Errorf("writing volume %s: %w", mount.Name, err)
			}
		}

		out = append(out, [2]string{mount.MountPath, folder})
	}

	return out, nil
}

// tokenPath is where the API server mounts an account's token. Programs get a kubeconfig instead.
//
//nolint:gosec // It is the name of a folder.
const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount"

func (k *Kubelet) volume(namespace string, v *corev1.Volume) (map[string]string, error) {
	switch {
	case v.ConfigMap != nil:
		data, err := k.configMap(namespace, v.ConfigMap.Name, v.ConfigMap.Optional)

		return files(data, v.ConfigMap.Items, v.ConfigMap.Optional, err)
	case v.Secret != nil:
		data, err := k.secret(namespace, v.Secret.SecretName, v.Secret.Optional)

		return files(data, v.Secret.Items, v.Secret.Optional, err)
	}

	return map[string]string{}, nil
}

// files returns all keys of a ConfigMap or Secret, or those that a volume names, by the paths that it gives them.
func files(data map[string]string, items []corev1.KeyToPath, optional *bool, err error) (map[string]string, error) {
	if err != nil || len(items) == 0 {
		return data, err
	}

	out := map[string]string{}

	for _, item := range items {
		content, set, err := keyOf(data, item.Key, optional, nil)
		if err != nil {
			return nil, err
		}

		if set {
			out[item.Path] = content
		}
	}

	return out, nil
}
