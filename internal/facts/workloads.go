package facts

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// Workload is a controller of pods.
type Workload struct {
	Kind WorkloadKind
	Name string
	// Template is what its pods begin with.
	Template Template
	// ListHash is the template's annotation ambit.dev/namespaces-hash.
	ListHash string
	// Restarted is when Ambit last restarted it; zero when it never did.
	Restarted time.Time
	// RestartWait is how long the next restart waits after that; zero where that is not known.
	RestartWait time.Duration
	// RestartDisabled is the owner's wish, by annotation, not to be restarted.
	RestartDisabled bool
	// OwnedByOLM says that OLM writes the template, so that a change of it would be undone. CSV names the
	// ClusterServiceVersion that it is written from, where that is known.
	OwnedByOLM bool
	CSV        string
	// KeepsPods says that no pod of it is replaced, or not each of them, although its template changes.
	KeepsPods bool
	// PodSpec is what something can be injected into; empty for kinds that are never injected into.
	PodSpec PodSpec
	// Injected is the hash of what Ambit injected, InjectedFor the scope, and Replaced what it wrote over, each from an
	// annotation. Applied says that the API server recorded a server-side apply of the injector, Patched another write.
	Injected, InjectedFor, Replaced string
	Applied, Patched                bool
	// InjectedWith is the template's annotation ambit.dev/injected-with.
	InjectedWith string
	// Annotated says that it has annotations at all, TemplateAnnotated that its template has; Version is its resource version.
	Annotated, TemplateAnnotated bool
	Version                      uint64
	// Idle says that it wants no pod at all.
	Idle bool
	// Birth orders the workload against a ConfigMap.
	Birth
}

// Birth is when something came into being.
type Birth struct {
	// Created is the time by the API server's clock, in whole seconds.
	Created time.Time
	// BornAt is the resource version it came into being with, where Ambit saw that; 0 where it did not. It gives the
	// order within one second.
	BornAt uint64
}

// InDoubt says whether it came into being within the same second as something else, and Ambit did not see that, so that
// nothing tells which of them was first.
func (b *Birth) InDoubt(at time.Time) bool { return b.BornAt == 0 && b.Created.Equal(at) }

// Template is what a pod template and a pod have in common.
type Template struct {
	Labels labels.Set
	// Account is the service account, never empty.
	Account string
	// Reads are the names of the ConfigMaps that a container reads, sorted.
	Reads []string
}

// Pod is a pod of the operator namespace.
type Pod struct {
	PodRef
	Template
	// Controller is the workload that made it; its Kind is empty for a bare pod, and otherwise that of the controller,
	// also of one that is no Workload.
	Controller WorkloadRef
	// OwnedByOLM says that the pod itself bears OLM's mark.
	OwnedByOLM bool
	// RestartDisabled is the owner's wish, by annotation, not to be restarted.
	RestartDisabled bool
	// ListHash is the annotation ambit.dev/namespaces-hash of the template that it was made from.
	ListHash string
	// Ending says that the pod is finished or being deleted, so that it reads nothing any more.
	Ending bool
	// Birth orders the pod against a ConfigMap.
	Birth
	// Began is when the first of its containers began, by the node's clock; zero while none has.
	Began time.Time
}

// PodRef names one pod, and none that gets its name later.
type PodRef struct {
	Name string
	UID  types.UID
}

// WorkloadRef names a controller of pods.
type WorkloadRef struct {
	Kind WorkloadKind
	Name string
}

// AccountOf is the service account as which pods run. A template within a ClusterServiceVersion may have it in the deprecated
// field alone; the API server fills in the default where neither has one.
func AccountOf(pod *corev1.PodSpec) string {
	return cmp.Or(pod.ServiceAccountName, pod.DeprecatedServiceAccount, scope.DefaultAccount)
}
