package authorize_test

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	appsv1 "k8s.io/api/apps/v1"
)

func (h *house) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: h.ops, Name: name}
}

func (h *house) account(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: h.meta(name)}
}

func (h *house) role(name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: h.meta(name), Rules: rules}
}

func (h *house) bind(name, kind, role string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: h.meta(name),
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   subjects,
	}
}

func (h *house) subject(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: h.ops, Name: name}
}

func rule(group, resource string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
}

// template is the pod template of an operator; intent is the value of its label.
func template(account, intent string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "operator", "intent": intent}},
		Spec: corev1.PodSpec{
			ServiceAccountName: account,
			Containers:         []corev1.Container{{Name: "main", Image: "operator:v1"}},
		},
	}
}

func (h *house) deployment(name, account, intent string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: h.meta(name), Spec: appsv1.DeploymentSpec{
		Replicas: new(int32(0)), Template: template(account, intent),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "operator"}},
	}}
}

func (h *house) cronJob(name, account string) *batchv1.CronJob {
	t := template(account, "projected")
	t.Spec.RestartPolicy = corev1.RestartPolicyNever

	return &batchv1.CronJob{ObjectMeta: h.meta(name), Spec: batchv1.CronJobSpec{
		Schedule: "0 0 1 1 *", Suspend: new(true),
		JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{Template: t}},
	}}
}

func (h *house) pod(name, account string) *corev1.Pod {
	t := template(account, "projected")

	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: h.ops, Name: name, Labels: t.Labels}, Spec: t.Spec,
	}
}

// makeOperator makes an operator that may read secrets and do what the ClusterRole view says.
func (h *house) makeOperator() {
	h.Helper()
	h.make(
		h.account("secretman"), h.deployment("secretman", "secretman", "projected"),
		h.role("secretman", rule("", "secrets", "get", "list"), rule("example.com", "certificates", "*")),
		h.bind("secretman", "Role", "secretman", h.subject("secretman")),
		h.bind("secretman-view", "ClusterRole", "view", h.subject("secretman")),
	)
}

// makeZoo makes operators of every kind, and everything beside them that must not count.
func (h *house) makeZoo() {
	h.Helper()
	h.makeOperator()

	named := rule("", "configmaps", "get", "update")
	named.ResourceNames = []string{"b", "a"}
	group := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + h.ops}
	user := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: account(h.ops, "nightly")}
	elsewhere := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: h.ns, Name: "secretman"}

	copied := h.role("copied", rule("", "nodes", "get"))
	copied.Labels = map[string]string{"ambit.dev/scope": "0123456789abcdef"}
	copiedBinding := h.bind("copied", "Role", "copied", h.subject("secretman"))
	copiedBinding.Annotations = map[string]string{"ambit.dev/owner": "NamespaceScope/other/other"}

	objects := []client.Object{
		h.account("nightly"), h.cronJob("nightly", "nightly"),
		h.account("lonely"), h.pod("lonely", "lonely"),
		h.account("listed"), h.account("idle"), h.deployment("idle", "idle", "other"),
		h.deployment("ghost", "ghost", "projected"),

		h.role("everyone", named, rule("", "secrets", "get", "list")), h.bind("everyone", "Role", "everyone", group),
		h.role("by-user", rule("batch", "jobs", "create"), rule("batch", "jobs/status", "get")),
		h.bind("by-user", "Role", "by-user", user),
		h.role("a.b:c d", rule("", "pods/log", "get")),
		// Without a namespace, it is the account beside the binding.
		h.bind("a.b:c", "Role", "a.b:c d", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: "lonely"}),
		h.role("empty"), h.bind("empty", "Role", "empty", h.subject("listed")),
		h.bind("edit", "ClusterRole", "edit", h.subject("listed"), h.subject("nightly")),

		h.role("idle", rule("", "endpoints", "get")), h.bind("idle", "Role", "idle", h.subject("idle")),
		h.role("elsewhere", rule("", "events", "get")), h.bind("elsewhere", "Role", "elsewhere", elsewhere),
		h.bind("ghost", "Role", "elsewhere", h.subject("ghost")),
		h.bind("dangling", "Role", "nowhere", h.subject("secretman")),
		h.bind("dangling-cluster", "ClusterRole", h.ops+"-nowhere", h.subject("secretman")),
		copied, copiedBinding,
	}
	h.make(append(objects, h.marked()...)...)
}

// marked are Roles and bindings of secretman that bear marks: two that Ambit made for a ClusterServiceVersion there, which are
// projected, and others, which are not.
func (h *house) marked() []client.Object {
	h.Helper()

	var out []client.Object

	for name, marks := range map[string]struct{ resource, owner, project, manager string }{
		"installed":       {resource: "services", owner: "ClusterServiceVersion/" + h.ops + "/secretman.v1"},
		"installed-there": {resource: "limitranges", owner: "ClusterServiceVersion/" + h.ops + "-too/secretman.v1"},
		"ours-alone":      {resource: "resourcequotas", project: "disabled"},
		"of-ibm":          {resource: "podtemplates", manager: "ibm-namespace-scope-operator"},
	} {
		role, binding := h.role(name, rule("", marks.resource, "get")), h.bind(name, "Role", name, h.subject("secretman"))
		for _, obj := range []client.Object{role, binding} {
			annotations, labels := map[string]string{}, map[string]string{}
			if marks.owner != "" {
				annotations["ambit.dev/owner"], labels["ambit.dev/scope"] = marks.owner, "0123456789abcdef"
			}

			if marks.project != "" {
				annotations["ambit.dev/project"] = marks.project
			}

			if marks.manager != "" {
				labels["namespace-scope-configmap"], labels["app.kubernetes.io/managed-by"] = "x", marks.manager
			}

			obj.SetAnnotations(annotations)
			obj.SetLabels(labels)
		}

		out = append(out, role, binding)
	}

	return out
}
