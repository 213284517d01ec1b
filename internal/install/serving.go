package install

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/servingcert"
)

// What operators that were packaged for OLM look for (installCertRequirementsForDeployment and
// AddDefaultCertVolumeAndVolumeMounts in pkg/controller/install of operator-lifecycle-manager).
const (
	keyAuthorities = "olmCAKey"
	annotationCA   = "olmcahash"

	volumeOfAPIServices, pathOfAPIServices = "apiservice-cert", "/apiserver.local.config/certificates"
	volumeOfWebhooks, pathOfWebhooks       = "webhook-cert", "/tmp/k8s-webhook-server/serving-certs"

	defaultPort = 443
)

// Serving is what a Deployment needs to answer for webhooks: a Service, and a Secret with a certificate.
type Serving struct {
	Deployment, Service, Secret string
	// Hosts are the names by which API servers call.
	Hosts []string

	selector map[string]string
	ports    []corev1.ServicePort
}

// ServingOf are the Deployments of a CSV that answer for webhooks, in the order of the CSV.
func ServingOf(csv *olm.ClusterServiceVersion) []Serving {
	var out []Serving

	specs := csv.Spec.InstallStrategy.StrategySpec.DeploymentSpecs

	for i := range specs {
		var ports []corev1.ServicePort

		for j := range csv.Spec.WebhookDefinitions {
			if d := &csv.Spec.WebhookDefinitions[j]; d.DeploymentName == specs[i].Name {
				ports = addPort(ports, d)
			}
		}

		if len(ports) == 0 {
			continue
		}

		service := serviceOf(specs[i].Name)
		out = append(out, Serving{
			Deployment: specs[i].Name, Service: service, Secret: SecretOf(service),
			Hosts:    []string{service + "." + csv.Namespace + ".svc", service + "." + csv.Namespace},
			selector: selects(&specs[i].Spec), ports: ports,
		})
	}

	return out
}

// SecretOf is what the Secret with the certificate of a Service is called.
func SecretOf(service string) string { return service + "-cert" }

// selects are the labels by which a Service finds the pods of a Deployment. A Service has no expressions: of each label that one
// is about, it has the value that the pods have. Without any, it would have no pods, and whoever may write its endpoints would
// answer instead.
func selects(d *appsv1.DeploymentSpec) map[string]string {
	selector := cmp.Or(d.Selector, &metav1.LabelSelector{})
	if len(selector.MatchExpressions) == 0 {
		return selector.MatchLabels
	}

	out := merged(selector.MatchLabels, nil)

	for _, e := range selector.MatchExpressions {
		if value, has := d.Template.Labels[e.Key]; has {
			out[e.Key] = value
		}
	}

	if len(out) == 0 {
		return d.Template.Labels
	}

	return out
}

func serviceOf(deployment string) string {
	return strings.ReplaceAll(deployment, ".", "-") + "-service"
}

func addPort(ports []corev1.ServicePort, d *olm.WebhookDescription) []corev1.ServicePort {
	number := portOf(d)
	port := corev1.ServicePort{
		Name: strconv.Itoa(int(number)), Protocol: corev1.ProtocolTCP, Port: number, TargetPort: intstr.FromInt32(number),
	}

	if d.TargetPort != nil {
		port.TargetPort = *d.TargetPort
	}

	if slices.Contains(ports, port) {
		return ports
	}

	return append(ports, port)
}

func portOf(d *olm.WebhookDescription) int32 { return cmp.Or(d.ContainerPort, defaultPort) }

// ServiceToWrite is the Service of a Deployment, or nil when it is as it should be.
func (w *Snapshot) ServiceToWrite(csv *olm.ClusterServiceVersion, s *Serving) (*unstructured.Unstructured, error) {
	want := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metaOf(csv, s.Service),
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: s.ports, Selector: s.selector},
	}

	live, exists := w.Services[s.Service]

	switch {
	case exists && !live.Made:
		return nil, &ClashError{Kind: want.Kind, Name: want.Name}
	case exists && live.Shape == facts.ServiceShape(&want.Spec) && haveAll(live.Owners, want.OwnerReferences):
		return nil, nil //nolint:nilnil // Nothing to write is an answer.
	}

	return writable(want)
}

func metaOf(csv *olm.ClusterServiceVersion, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: csv.Namespace, Name: name, Labels: ownerLabels(csv), OwnerReferences: []metav1.OwnerReference{ownerOf(csv)},
	}
}

// writable is an object as it is applied: without what is not Ambit's to say, not even as nothing.
func writable(obj runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, fmt.Errorf("writing a %T: %w", obj, err)
	}

	unstructured.RemoveNestedField(content, "status")
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(content, "spec", "template", "metadata", "creationTimestamp")

	return &unstructured.Unstructured{Object: content}, nil
}

// PairOf is the pair in a Secret; nil when Ambit does not use that Secret. Whoever may write Secrets beside an operator must not
// choose the certificate that API servers trust, so the Secret has to go with a CSV that is there.
func (w *Snapshot) PairOf(secret *corev1.Secret) *servingcert.Pair {
	if secret == nil {
		return nil
	}

	owned := slices.ContainsFunc(secret.OwnerReferences, func(r metav1.OwnerReference) bool {
		return slices.ContainsFunc(w.CSVs, func(csv *olm.ClusterServiceVersion) bool { return csv.UID == r.UID })
	})
	if !owned || secret.Type != corev1.SecretTypeTLS {
		return nil
	}

	return &servingcert.Pair{
		Certificate: secret.Data[corev1.TLSCertKey], Key: secret.Data[corev1.TLSPrivateKeyKey],
		Authorities: secret.Data[keyAuthorities],
	}
}

// SecretToWrite holds a pair for a Deployment of a CSV.
func SecretToWrite(csv *olm.ClusterServiceVersion, s *Serving, pair *servingcert.Pair) (*unstructured.Unstructured, error) {
	secret := &corev1.Secret{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metaOf(csv, s.Secret), Type: corev1.SecretTypeTLS,
		Data: map[string][]byte{
			corev1.TLSCertKey: pair.Certificate, corev1.TLSPrivateKeyKey: pair.Key, keyAuthorities: pair.Authorities,
		},
	}
	secret.Annotations = Told(pair)

	return writable(secret)
}

// Told are the annotations of pods by which they begin anew with the certificate of a pair.
func Told(pair *servingcert.Pair) map[string]string {
	return map[string]string{annotationCA: pair.Newest()}
}

// IsOwnedBy says whether an object goes with a CSV. Its label is not enough: that may hold the name in part only, and a CSV that
// was made anew has the same one.
func IsOwnedBy(obj metav1.Object, csv *olm.ClusterServiceVersion) bool {
	return slices.ContainsFunc(obj.GetOwnerReferences(), func(r metav1.OwnerReference) bool { return r.UID == csv.UID })
}

// mount puts the certificate of a Deployment where operators look for it. A new authority changes the pod template, so that the
// pods restart with the certificate that goes with it.
func (w *Snapshot) mount(csv *olm.ClusterServiceVersion, d *appsv1.Deployment) {
	all := ServingOf(csv)

	i := slices.IndexFunc(all, func(s Serving) bool { return s.Deployment == d.Name })
	if i < 0 {
		return
	}

	pods := &d.Spec.Template
	pods.Annotations = merged(pods.Annotations, map[string]string{annotationCA: w.Certificates[d.Name]})

	ours := []corev1.Volume{
		volume(volumeOfAPIServices, all[i].Secret, "apiserver.crt", "apiserver.key"),
		volume(volumeOfWebhooks, all[i].Secret, corev1.TLSCertKey, corev1.TLSPrivateKeyKey),
	}
	pods.Spec.Volumes = replaced(pods.Spec.Volumes, ours, isSameVolume)

	mounts := []corev1.VolumeMount{
		{Name: volumeOfAPIServices, MountPath: pathOfAPIServices}, {Name: volumeOfWebhooks, MountPath: pathOfWebhooks},
	}

	for i := range pods.Spec.Containers {
		c := &pods.Spec.Containers[i]
		c.VolumeMounts = replaced(c.VolumeMounts, mounts, isSameMount)
	}
}

func isSameVolume(a, b *corev1.Volume) bool { return a.Name == b.Name }

func isSameMount(a, b *corev1.VolumeMount) bool {
	return a.Name == b.Name || a.MountPath == b.MountPath
}

func volume(name, secret, certificate, key string) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: secret, Items: []corev1.KeyToPath{
			{Key: corev1.TLSCertKey, Path: certificate}, {Key: corev1.TLSPrivateKeyKey, Path: key},
		},
	}}}
}

// replaced is a list with further entries. Each takes the place of the first one that is the same, since variables refer to those
// before them.
func replaced[T any](list, with []T, same func(a, b *T) bool) []T {
	var out []T

	used := make([]bool, len(with))

	for i := range list {
		switch j := slices.IndexFunc(with, func(t T) bool { return same(&list[i], &t) }); {
		case j < 0:
			out = append(out, list[i])
		case !used[j]:
			out, used[j] = append(out, with[j]), true
		}
	}

	for j := range with {
		if !used[j] {
			out = append(out, with[j])
		}
	}

	return out
}

// merged is a map with further entries. Neither is changed.
func merged[V any](m, with map[string]V) map[string]V {
	out := maps.Clone(m)
	if out == nil {
		out = map[string]V{}
	}

	maps.Copy(out, with)

	return out
}
