package grant

import (
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// OperatorNamespace is what was read of the scope's own namespace.
type OperatorNamespace struct {
	Namespaces     map[string]facts.Namespace
	Roles          rbacv1.RoleList
	RoleBindings   rbacv1.RoleBindingList
	Accounts       corev1.ServiceAccountList
	Pods           corev1.PodList
	Deployments    appsv1.DeploymentList
	StatefulSets   appsv1.StatefulSetList
	DaemonSets     appsv1.DaemonSetList
	Jobs           batchv1.JobList
	CronJobs       batchv1.CronJobList
	NoClusterRoles map[string]struct{}
	// AmbitNamespace is where Ambit runs: no selector selects it.
	AmbitNamespace string
}

// Plan returns what the manager would project for a scope. ClusterRoles count as existing unless they are known not to:
// most callers may not list them.
func (h *OperatorNamespace) Plan(s scope.Scope) *plan.ScopePlan {
	f := &facts.Facts{Namespaces: h.Namespaces, AmbitNamespace: h.AmbitNamespace, OperatorNamespace: facts.OperatorNamespace{
		Name: s.OperatorNamespace, Roles: map[string][]rbacv1.PolicyRule{}, Bindings: map[string]facts.Binding{},
		Accounts: map[string]struct{}{}, Workloads: h.workloads(),
	}}

	for i := range h.Roles.Items {
		if r := &h.Roles.Items[i]; read.IsSource(r) {
			f.OperatorNamespace.Roles[r.Name] = r.Rules
		}
	}

	if h.NoClusterRoles != nil {
		f.ClusterRoles = map[string]facts.ClusterRole{}
	}

	for i := range h.RoleBindings.Items {
		b := &h.RoleBindings.Items[i]
		if !read.IsSource(b) {
			continue
		}

		f.OperatorNamespace.Bindings[b.Name] = facts.Binding{RoleRef: b.RoleRef, Subjects: b.Subjects}

		if _, missing := h.NoClusterRoles[b.RoleRef.Name]; f.ClusterRoles != nil && b.RoleRef.Kind == "ClusterRole" && !missing {
			f.ClusterRoles[b.RoleRef.Name] = facts.ClusterRole{}
		}
	}

	for i := range h.Accounts.Items {
		f.OperatorNamespace.Accounts[h.Accounts.Items[i].Name] = struct{}{}
	}

	for i := range h.Pods.Items {
		p := &h.Pods.Items[i]
		f.OperatorNamespace.Pods = append(f.OperatorNamespace.Pods, facts.Pod{
			PodRef: facts.PodRef{Name: p.Name, UID: p.UID}, Template: read.Template(&p.ObjectMeta, &p.Spec),
		})
	}

	p := plan.New([]scope.Scope{s}, f)

	return &p.Scopes[0]
}

func (h *OperatorNamespace) workloads() []facts.Workload {
	var out []facts.Workload

	add := func(kind facts.WorkloadKind, name string, t *corev1.PodTemplateSpec) {
		out = append(out, facts.Workload{Kind: kind, Name: name, Template: read.Template(&t.ObjectMeta, &t.Spec)})
	}

	for i := range h.Deployments.Items {
		add(facts.Deployment, h.Deployments.Items[i].Name, &h.Deployments.Items[i].Spec.Template)
	}

	for i := range h.StatefulSets.Items {
		add(facts.StatefulSet, h.StatefulSets.Items[i].Name, &h.StatefulSets.Items[i].Spec.Template)
	}

	for i := range h.DaemonSets.Items {
		add(facts.DaemonSet, h.DaemonSets.Items[i].Name, &h.DaemonSets.Items[i].Spec.Template)
	}

	for i := range h.Jobs.Items {
		add(facts.Job, h.Jobs.Items[i].Name, &h.Jobs.Items[i].Spec.Template)
	}

	for i := range h.CronJobs.Items {
		add(facts.CronJob, h.CronJobs.Items[i].Name, &h.CronJobs.Items[i].Spec.JobTemplate.Spec.Template)
	}

	return out
}
