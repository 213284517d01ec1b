package facts

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// WorkloadKind is the kind of a controller of pods.
type WorkloadKind string

// The kinds whose pod templates are read.
const (
	Deployment  WorkloadKind = "Deployment"
	StatefulSet WorkloadKind = "StatefulSet"
	DaemonSet   WorkloadKind = "DaemonSet"
	ReplicaSet  WorkloadKind = "ReplicaSet"
	Job         WorkloadKind = "Job"
	CronJob     WorkloadKind = "CronJob"
)

// RestartMethod is how the pods of a kind are restarted.
type RestartMethod string

// NoRestart is that of kinds whose pods end by themselves. ByTemplate is that of kinds whose controller replaces the pods when
// their template changes: it is annotated, and only there does something that is injected reach a pod. ByEviction is that of
// kinds whose controller replaces pods that are gone, and no others: Ambit writes nothing on them.
const (
	NoRestart  RestartMethod = ""
	ByTemplate RestartMethod = "template"
	ByEviction RestartMethod = "eviction"
)

// WorkloadType is what has to be known of a kind of workload, and is known nowhere else: what is watched, listed, authorized and
// restarted comes from here. Besides, the manifests in config/rbac name each resource, which a test compares.
type WorkloadType struct {
	Kind     WorkloadKind
	Resource schema.GroupVersionResource
	Restart  RestartMethod
	// OnlyBare says that only those count that no controller owns: the others belong to a workload that is read itself.
	OnlyBare bool
	// New and NewList make an empty object, and an empty list of them.
	New     func() scope.Object
	NewList func() scope.ObjectList
	// Path is where the pod template is in a manifest.
	Path []string

	pods func(scope.Object) (template, *int32)
}

// WorkloadTypes are all kinds, those that run operators most often first. Nobody changes them.
var WorkloadTypes = []WorkloadType{
	{
		Kind: Deployment, Resource: appsv1.SchemeGroupVersion.WithResource("deployments"), Restart: ByTemplate, Path: inSpec,
		New:     func() scope.Object { return &appsv1.Deployment{} },
		NewList: func() scope.ObjectList { return &appsv1.DeploymentList{} },
		pods:    podsOf(func(o *appsv1.Deployment) (template, *int32) { return &o.Spec.Template, o.Spec.Replicas }),
	},
	{
		Kind: StatefulSet, Resource: appsv1.SchemeGroupVersion.WithResource("statefulsets"), Restart: ByTemplate, Path: inSpec,
		New:     func() scope.Object { return &appsv1.StatefulSet{} },
		NewList: func() scope.ObjectList { return &appsv1.StatefulSetList{} },
		pods:    podsOf(func(o *appsv1.StatefulSet) (template, *int32) { return &o.Spec.Template, o.Spec.Replicas }),
	},
	{
		Kind: DaemonSet, Resource: appsv1.SchemeGroupVersion.WithResource("daemonsets"), Restart: ByTemplate, Path: inSpec,
		New:     func() scope.Object { return &appsv1.DaemonSet{} },
		NewList: func() scope.ObjectList { return &appsv1.DaemonSetList{} },
		pods:    podsOf(func(o *appsv1.DaemonSet) (template, *int32) { return &o.Spec.Template, nil }),
	},
	{
		Kind: ReplicaSet, Resource: appsv1.SchemeGroupVersion.WithResource("replicasets"), Restart: ByEviction, Path: inSpec,
		OnlyBare: true,

		New:     func() scope.Object { return &appsv1.ReplicaSet{} },
		NewList: func() scope.ObjectList { return &appsv1.ReplicaSetList{} },
		pods:    podsOf(func(o *appsv1.ReplicaSet) (template, *int32) { return &o.Spec.Template, o.Spec.Replicas }),
	},
	{
		Kind: Job, Resource: batchv1.SchemeGroupVersion.WithResource("jobs"), Path: inSpec,
		New:     func() scope.Object { return &batchv1.Job{} },
		NewList: func() scope.ObjectList { return &batchv1.JobList{} },
		pods:    podsOf(func(o *batchv1.Job) (template, *int32) { return &o.Spec.Template, nil }),
	},
	{
		Kind: CronJob, Resource: batchv1.SchemeGroupVersion.WithResource("cronjobs"), Path: inSpecOfJobs,
		New:     func() scope.Object { return &batchv1.CronJob{} },
		NewList: func() scope.ObjectList { return &batchv1.CronJobList{} },
		pods:    podsOf(func(o *batchv1.CronJob) (template, *int32) { return &o.Spec.JobTemplate.Spec.Template, nil }),
	},
}

var inSpec, inSpecOfJobs = []string{"spec", "template"}, []string{"spec", "jobTemplate", "spec", "template"}

type template = *corev1.PodTemplateSpec

// podsOf finds the template of an object's pods, and how many it wants, where it says; nothing in objects of other kinds.
func podsOf[O scope.Object](of func(O) (template, *int32)) func(scope.Object) (template, *int32) {
	return func(obj scope.Object) (template, *int32) {
		if o, is := obj.(O); is {
			return of(o)
		}

		return nil, nil
	}
}

// Type is what is known of the kind; nil where it is not the kind of a workload.
func (k WorkloadKind) Type() *WorkloadType {
	i := slices.IndexFunc(WorkloadTypes, func(t WorkloadType) bool { return t.Kind == k })
	if i < 0 {
		return nil
	}

	return &WorkloadTypes[i]
}

// Restarts says how the pods of a kind are restarted.
func (k WorkloadKind) Restarts() RestartMethod {
	if t := k.Type(); t != nil {
		return t.Restart
	}

	return NoRestart
}

// TypeOfWorkload is what is known of the kind of an object; nil for one that is no workload.
func TypeOfWorkload(obj scope.Object) *WorkloadType {
	for i := range WorkloadTypes {
		if of, _ := WorkloadTypes[i].pods(obj); of != nil {
			return &WorkloadTypes[i]
		}
	}

	return nil
}

// Pods are the template of the pods of an object of the type, and whether it wants none at all.
func (t *WorkloadType) Pods(obj scope.Object) (of *corev1.PodTemplateSpec, idle bool) {
	of, replicas := t.pods(obj)

	return of, replicas != nil && *replicas == 0
}

// KeepsPods says whether pods of a workload stay as they are when its template changes: until somebody deletes them, lets the
// partition in which they are be updated, or resumes what is paused. That may be never.
func KeepsPods(obj scope.Object) bool {
	switch o := obj.(type) {
	case *appsv1.Deployment:
		return o.Spec.Paused
	case *appsv1.DaemonSet:
		return o.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType
	case *appsv1.StatefulSet:
		by := o.Spec.UpdateStrategy.RollingUpdate

		return o.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType ||
			by != nil && by.Partition != nil && *by.Partition > 0
	default:
		return false
	}
}
