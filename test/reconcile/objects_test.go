package reconcile_test

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// podTemplate is that of pods which carry the default restartLabels and run as an account.
func podTemplate(account string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"name": account, "intent": "projected"}},
		Spec: corev1.PodSpec{
			ServiceAccountName: account, TerminationGracePeriodSeconds: new(int64(0)),
			Containers: []corev1.Container{{Name: "operator", Image: "registry.example.com/operator:1"}},
		},
	}
}

func selectorOf(t *corev1.PodTemplateSpec) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"name": t.Labels["name"]}}
}

// deployment makes a Deployment that reads no watch list, after the edits.
func (w *world) deployment(account string, edits ...func(*corev1.PodTemplateSpec)) *appsv1.Deployment {
	w.Helper()

	t := edited(account, edits)
	d := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: account},
		Spec:       appsv1.DeploymentSpec{Selector: selectorOf(&t), Template: t},
	}
	w.Make(d)

	return d
}

func edited(account string, edits []func(*corev1.PodTemplateSpec)) corev1.PodTemplateSpec {
	t := podTemplate(account)
	for _, edit := range edits {
		edit(&t)
	}

	return t
}

// workload is an operator of a kind.
func (w *world) workload(kind, account string) client.Object {
	t := podTemplate(account)
	meta := metav1.ObjectMeta{Namespace: w.ns(ops), Name: account}
	job := batchv1.JobSpec{Template: t}
	job.Template.Spec.RestartPolicy = corev1.RestartPolicyNever

	switch kind {
	case "StatefulSet":
		return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selectorOf(&t), Template: t}}
	case "DaemonSet":
		return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selectorOf(&t), Template: t}}
	case "ReplicaSet":
		return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selectorOf(&t), Template: t}}
	case "Job":
		return &batchv1.Job{ObjectMeta: meta, Spec: job}
	case "CronJob":
		return &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{
			Schedule: "@daily", JobTemplate: batchv1.JobTemplateSpec{Spec: job},
		}}
	case "Pod":
		meta.Labels = t.Labels

		return &corev1.Pod{ObjectMeta: meta, Spec: t.Spec}
	default:
		return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selectorOf(&t), Template: t}}
	}
}

// operator makes an account, a Deployment that runs as it, and a Role with rules in words that is bound to it.
func (w *world) operator(name string, rules ...string) {
	w.Helper()
	w.Make(testbed.Account(w.ns(ops), name))
	w.deployment(name)

	if len(rules) > 0 {
		w.grant(ops, name+"-role", name, rules...)
	}
}

// grant gives an account of the operator namespace rules in a namespace, by a Role and a binding of one name.
func (w *world) grant(short, name, account string, rules ...string) {
	w.Helper()
	w.Make(testbed.Role(w.ns(short), name, rules...), w.binding(short, name, "Role", name, testbed.Account(w.ns(ops), account)))
}

// binding is a RoleBinding whose subjects are service accounts, or subjects as they are.
func (w *world) binding(short, name, kind, role string, to ...any) *rbacv1.RoleBinding {
	w.Helper()

	b := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(short), Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
	}

	for _, one := range to {
		switch s := one.(type) {
		case *corev1.ServiceAccount:
			b.Subjects = append(b.Subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: s.Namespace, Name: s.Name})
		case rbacv1.Subject:
			b.Subjects = append(b.Subjects, s)
		default:
			w.Fatalf("%T is no subject", one)
		}
	}

	return b
}

func toGroup(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}
}

func toUser(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}
}
