package namespacescope_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
)

const (
	// defaultList is the ConfigMap of scopes that name none.
	defaultList = "namespace-scope"
	finalizer   = "finalizer.nss.operator.ibm.com"
	rbacGroup   = "rbac.authorization.k8s.io"
)

type spec = operatorv1.NamespaceScopeSpec

// scope creates a NamespaceScope.
func (w *world) scope(ops, name string, s spec) *operatorv1.NamespaceScope {
	w.Helper()

	nss := &operatorv1.NamespaceScope{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: name}, Spec: s}
	w.create(nss)
	w.Cleanup(func() { w.discard(nss) })

	return nss
}

// members makes the spec of a scope with these members.
func members(namespaces ...string) spec { return spec{NamespaceMembers: namespaces} }

// selecting makes the spec of a scope with a selector, in JSON.
func selecting(selector string) spec {
	return spec{NamespaceSelector: &operatorv1.NamespaceSelector{Raw: json.RawMessage(selector)}}
}

// operator creates an account that may read secrets in its operator namespace, and a Deployment that runs as it and carries
// the label of an operand.
func (w *world) operator(ops, name string) *appsv1.Deployment {
	w.Helper()
	w.grant(ops, name, "secrets", "get secrets")

	d := deployment(ops, name)
	w.create(d)

	return d
}

// grant creates an account if need be, and a Role and RoleBinding called name that give it rights, in words such as "get
// secrets".
func (w *world) grant(ops, account, name string, words ...string) {
	w.Helper()

	sa := serviceAccount(ops, account)
	if err := w.get(sa); err != nil {
		w.create(sa)
	}

	w.create(role(ops, name, words...), binding(ops, name, "Role", name, subject(ops, account)))
}

func serviceAccount(ops, name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: name}}
}

// role makes a Role from words such as "get secrets" or "get,list deployments/one".
func role(ops, name string, words ...string) *rbacv1.Role {
	r := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: name}}
	for _, w := range words {
		r.Rules = append(r.Rules, rule(w))
	}

	return r
}

func rule(words string) rbacv1.PolicyRule {
	verbs, resource, _ := strings.Cut(words, " ")
	resource, name, named := strings.Cut(resource, "/")
	p := rbacv1.PolicyRule{
		Verbs: strings.Split(verbs, ","), Resources: []string{resource},
		APIGroups: []string{map[string]string{"deployments": "apps", "*": "*"}[resource]},
	}

	if named {
		p.ResourceNames = []string{name}
	}

	return p
}

func binding(ops, name, kind, roleName string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacGroup, Kind: kind, Name: roleName},
		Subjects:   subjects,
	}
}

func subject(namespace, account string) rbacv1.Subject {
	return rbacv1.Subject{Kind: "ServiceAccount", Namespace: namespace, Name: account}
}

// podSpec runs as an account; readers make it read a ConfigMap.
func podSpec(account string, readers ...func(*corev1.PodSpec)) corev1.PodSpec {
	s := corev1.PodSpec{
		ServiceAccountName: account,
		Containers:         []corev1.Container{{Name: "operator", Image: "registry.example.com/operator:1"}},
		// Pods of a deleted namespace go at once.
		TerminationGracePeriodSeconds: new(int64(0)),
	}
	for _, read := range readers {
		read(&s)
	}

	return s
}

// readsList makes the first container read the watch list the way that the documentation recommends.
func readsList(s *corev1.PodSpec) { s.Containers[0].Env = []corev1.EnvVar{watchNamespace()} }

func watchNamespace() corev1.EnvVar {
	return corev1.EnvVar{Name: "WATCH_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
		ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: defaultList}, Key: "namespaces",
		},
	}}
}

func template(name string, readers ...func(*corev1.PodSpec)) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"name": name, "intent": "projected"}},
		Spec:       podSpec(name, readers...),
	}
}

func named(name string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"name": name}}
}

// deployment makes a Deployment whose pods are operands and run as the account of the same name.
func deployment(ops, name string, readers ...func(*corev1.PodSpec)) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: name},
		Spec:       appsv1.DeploymentSpec{Selector: named(name), Template: template(name, readers...)},
	}
}

func statefulSet(ops, name string, readers ...func(*corev1.PodSpec)) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: name},
		Spec:       appsv1.StatefulSetSpec{Selector: named(name), Template: template(name, readers...)},
	}
}

func daemonSet(ops, name string, readers ...func(*corev1.PodSpec)) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: name},
		Spec:       appsv1.DaemonSetSpec{Selector: named(name), Template: template(name, readers...)},
	}
}

func pod(ops, name string, readers ...func(*corev1.PodSpec)) *corev1.Pod {
	t := template(name, readers...)
	t.Namespace, t.Name = ops, name

	return &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
}

func configMap(ops, name string, data ...string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ops, Name: name}, Data: pairs(data)}
}

// run creates workloads that read the list, and before each the account that its pods need to run; both have one name.
func (w *world) run(workloads ...client.Object) {
	w.Helper()

	for _, obj := range workloads {
		w.create(serviceAccount(obj.GetNamespace(), obj.GetName()), obj)
	}
}

// projections returns the Roles and RoleBindings in a namespace that bear Ambit's label.
func (w *world) projections(namespace string) ([]rbacv1.Role, []rbacv1.RoleBinding) {
	w.Helper()

	roles, bindings, err := w.listProjections(namespace)
	if err != nil {
		w.Fatalf("listing projections: %v", err)
	}

	return roles, bindings
}

// listProjections is the same where a failure does not end the test.
func (w *world) listProjections(namespace string) ([]rbacv1.Role, []rbacv1.RoleBinding, error) {
	var (
		roles    rbacv1.RoleList
		bindings rbacv1.RoleBindingList
		err      error
	)

	for _, list := range []client.ObjectList{&roles, &bindings} {
		err = errors.Join(err, w.client.List(w.Context(), list, client.InNamespace(namespace), client.HasLabels{scopeLabel}))
	}

	return roles.Items, bindings.Items, err
}

// projectedRole and projectedBinding wait for the copy of an object of the operator namespace, and return it.
func (w *world) projectedRole(ops, source, namespace string) *rbacv1.Role {
	w.Helper()

	return w.projection(&rbacv1.RoleList{}, "Role/"+ops+"/"+source, namespace).(*rbacv1.Role)
}

func (w *world) projectedBinding(ops, source, namespace string) *rbacv1.RoleBinding {
	w.Helper()

	return w.projection(&rbacv1.RoleBindingList{}, "RoleBinding/"+ops+"/"+source, namespace).(*rbacv1.RoleBinding)
}

func (w *world) projection(list client.ObjectList, source, namespace string) client.Object {
	w.Helper()

	var found client.Object

	w.eventually("the copy of "+source+" in "+namespace, func() error {
		if err := w.client.List(w.Context(), list, client.InNamespace(namespace), client.HasLabels{scopeLabel}); err != nil {
			return err
		}

		for _, obj := range objectsOf(list) {
			if obj.GetAnnotations()["ambit.dev/source"] == source {
				found = obj

				return nil
			}
		}

		return errNotThere
	})

	return found
}

// refusesRoles is the label of namespaces where the API server refuses Roles whose name begins with "refused".
const refusesRoles = "namespacescope-test/refuses-roles=true"

// refusals makes the API server refuse some Roles in labelled namespaces, which stands for whatever a cluster's own
// policies may refuse.
func (s *system) refusals() error {
	key, value, _ := strings.Cut(refusesRoles, "=")
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "namespacescope-test-refuses-roles"},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
					Rule: admissionv1.Rule{
						APIGroups: []string{rbacGroup}, APIVersions: []string{"v1"}, Resources: []string{"roles"},
					},
				},
			}}},
			Validations: []admissionv1.Validation{{
				Expression: `!object.metadata.name.startsWith("refused")`, Message: "this house has a rule against it",
			}},
		},
	}
	inForce := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}},
			},
		},
	}

	for _, obj := range []client.Object{policy, inForce} {
		// A cluster that served an earlier run has them already.
		if err := s.client.Create(context.Background(), obj); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}

	return nil
}

// untilRefusing waits until the policy is in force in a namespace.
func (w *world) untilRefusing(namespace string) {
	w.Helper()
	w.eventually("roles are refused in "+namespace, func() error {
		err := w.client.Create(w.Context(), role(namespace, "refused-probe"), client.DryRunAll)
		if err == nil {
			return errNotThere
		}

		return nil
	})
}
