package testbed

import (
	"errors"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

var (
	errDenied  = errors.New("it may not")
	errAllowed = errors.New("it may")
)

// InOperatorNamespace are the rules by which a delegate can write in the operator namespace what a scope with the default
// watch list asks for, and InMember those by which it can write projected objects in a member, whatever is in them.
func InOperatorNamespace() []string {
	return []string{
		"create,patch,delete configmaps/namespace-scope", "create pods/eviction",
		"patch deployments", "patch statefulsets", "patch daemonsets",
	}
}

// InMember is explained at InOperatorNamespace.
func InMember() []string {
	return []string{"create,patch,delete roles", "create,patch,delete rolebindings"}
}

// Account returns a service account.
func Account(namespace, name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// Rule reads a rule from words such as "get,list secrets", "get secrets/one" or "create pods/eviction".
func Rule(words string) rbacv1.PolicyRule {
	verbs, resource, _ := strings.Cut(words, " ")
	resource, name, named := strings.Cut(resource, "/")
	group := map[string]string{
		"deployments": "apps", "statefulsets": "apps", "daemonsets": "apps", "*": "*",
		"roles": rbacv1.GroupName, "rolebindings": rbacv1.GroupName, "leases": "coordination.k8s.io",
		"clusterroles": rbacv1.GroupName, "clusterrolebindings": rbacv1.GroupName, "namespacescopes": operatorv1.GroupVersion.Group,
		"clusterserviceversions": "operators.coreos.com",
	}[resource]

	if resource == "pods" && name == "eviction" {
		resource, named = "pods/eviction", false
	}

	r := rbacv1.PolicyRule{Verbs: strings.Split(verbs, ","), Resources: []string{resource}, APIGroups: []string{group}}

	if named {
		r.ResourceNames = []string{name}
	}

	return r
}

// Role returns a Role with rules in words.
func Role(namespace, name string, rules ...string) *rbacv1.Role {
	r := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, words := range rules {
		r.Rules = append(r.Rules, Rule(words))
	}

	return r
}

// ClusterRole returns a ClusterRole with rules in words.
func ClusterRole(name string, rules ...string) *rbacv1.ClusterRole {
	r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for _, words := range rules {
		r.Rules = append(r.Rules, Rule(words))
	}

	return r
}

// Bind returns a RoleBinding of a Role, or of a ClusterRole, to a service account.
func Bind(namespace, kind, role, ops, account string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: role + "-" + ops + "-" + account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: ops, Name: account}},
	}
}

// Grant gives a service account rules, in words, in a namespace, by a Role of that name.
func (w *World) Grant(namespace, name, ops, account string, rules ...string) {
	w.Helper()
	w.Make(Role(namespace, name, rules...), Bind(namespace, "Role", name, ops, account))
}

// Reader is an operator's Deployment: it runs as the account of its own name, and reads the watch list.
func Reader(ops, name string) *appsv1.Deployment {
	labels := map[string]string{"name": name, "intent": "projected"}

	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: name},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"name": name}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					ServiceAccountName: name, TerminationGracePeriodSeconds: new(int64(0)),
					Containers: []corev1.Container{{Name: "operator", Image: "registry.example.com/operator:1", Env: []corev1.EnvVar{{
						Name: "WATCH_NAMESPACE", ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
							LocalObjectReference: corev1.LocalObjectReference{Name: "namespace-scope"}, Key: "namespaces",
						}},
					}}}},
				},
			},
		},
	}
}

// Operator makes an operator in an operator namespace: a service account, a Deployment that runs as it and reads the watch
// list, and a Role with rules in words.
func (w *World) Operator(ops, name string, rules ...string) {
	w.Helper()

	w.Make(Account(ops, name), Reader(ops, name))

	if len(rules) > 0 {
		w.Grant(ops, name+"-role", ops, name, rules...)
	}
}

// Delegate makes a service account called delegate in an operator namespace, which may write there, and in each of the members
// what is given as rules in words.
func (w *World) Delegate(ops string, rules []string, members ...string) {
	w.Helper()
	w.Make(Account(ops, "delegate"))
	w.Grant(ops, "at-home", ops, "delegate", InOperatorNamespace()...)

	for _, m := range members {
		w.Grant(m, "in-member", ops, "delegate", append(InMember(), rules...)...)
	}
}

// Scope makes a scope of operator.ibm.com.
func (w *World) Scope(ops string, spec operatorv1.NamespaceScopeSpec) *operatorv1.NamespaceScope {
	w.Helper()

	return w.ScopeCalled(ops, "scope", spec)
}

// ScopeCalled makes a scope of operator.ibm.com with a name of its own.
func (w *World) ScopeCalled(ops, name string, spec operatorv1.NamespaceScopeSpec) *operatorv1.NamespaceScope {
	w.Helper()

	nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: name}, Spec: spec}
	w.Make(nss)

	return nss
}
