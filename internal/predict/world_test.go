package predict_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	"github.com/ambit-k8s/ambit/internal/controllers"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/simulation"
)

// world is a cluster with an operator in namespace ops, and a scope of it.
type world struct {
	testing.TB

	now     time.Time
	key     scope.Key
	objects []client.Object
	scope   *operatorv1.NamespaceScope
	// declared are the resources that ask for scopes, where it is not that scope alone.
	declared []client.Object
	manager  predict.Manager
	// closed are the namespaces of which nothing may be read; terminating says that they are being deleted.
	closed      []string
	terminating bool
	// lacks are the namespaces in which the scope's account holds nothing; nil where nobody knows what it holds.
	lacks map[string]bool
	// holds are the rights of the account elsewhere.
	holds []rbacv1.PolicyRule
}

func at(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func newWorld(t testing.TB, members ...string) *world {
	t.Helper()

	w := &world{TB: t, key: scope.NamespaceScopes.In("ops"), now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	w.manager.RestartInterval = 10 * time.Second

	for _, name := range append([]string{"ops", "old"}, members...) {
		w.objects = append(w.objects, &corev1.Namespace{ObjectMeta: at("", name)})
	}

	operand := labels.Set{"intent": "projected"}
	began := metav1.NewTime(w.now.Add(-time.Hour))
	spec := corev1.PodSpec{ServiceAccountName: "op", Containers: []corev1.Container{{
		Name: "c", Image: "registry.example.com/c:1", Env: []corev1.EnvVar{{Name: "WATCH_NAMESPACE", ValueFrom: &corev1.EnvVarSource{
			ConfigMapKeyRef: &corev1.ConfigMapKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: "list"}, Key: "namespaces",
			},
		}}},
	}}}

	deployment := &appsv1.Deployment{ObjectMeta: at("ops", "op"), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: operand},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: operand}, Spec: spec},
	}}
	deployment.CreationTimestamp, deployment.UID = began, "1"
	// It restarted a moment ago, so the next restart waits.
	deployment.Annotations = map[string]string{scope.AnnotationRestarted: w.now.Add(-time.Second).Format(time.RFC3339)}

	pod := &corev1.Pod{ObjectMeta: at("ops", "op-1"), Spec: spec}
	pod.Labels = labels.Merge(operand, labels.Set{appsv1.DefaultDeploymentUniqueLabelKey: "x"})
	pod.CreationTimestamp, pod.UID = began, "2"
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "op-x", UID: "3", Controller: new(true),
	}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}},
	}}

	w.objects = append(w.objects, deployment, pod,
		&corev1.ServiceAccount{ObjectMeta: at("ops", "op")}, &corev1.ServiceAccount{ObjectMeta: at("ops", "delegate")},
		&rbacv1.Role{ObjectMeta: at("ops", "r"), Rules: []rbacv1.PolicyRule{ruleOf("get", "", "secrets")}},
		bindingOf("ops", "b", "r"))
	w.listed("old,ops")

	w.scope = &operatorv1.NamespaceScope{ObjectMeta: at("ops", "s"), Spec: operatorv1.NamespaceScopeSpec{
		ConfigmapName: "list", NamespaceMembers: members, RestartLabels: map[string]operatorv1.LabelValue{"intent": "projected"},
	}}
	w.scope.UID, w.scope.Finalizers = "5", []string{operatorv1.Finalizer}

	return w
}

func bindingOf(namespace, name, role string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: at(namespace, name), RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "ops", Name: "op"}},
	}
}

func ruleOf(verbs, group, resources string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		Verbs: strings.Split(verbs, ","), APIGroups: []string{group}, Resources: strings.Split(resources, ","),
	}
}

// listed makes the list what it was for two hours.
func (w *world) listed(list string) {
	cm := &corev1.ConfigMap{ObjectMeta: at("ops", "list"), Data: map[string]string{scope.ListKey: list}}
	cm.UID = "4"
	cm.Annotations = map[string]string{
		scope.AnnotationListHash: scope.ListHash(list, 1), scope.AnnotationListGeneration: "1", scope.AnnotationCreated: "true",
	}
	wrote := metav1.NewTime(w.now.Add(-2 * time.Hour))
	fields := &metav1.FieldsV1{}
	fields.SetRawBytes([]byte(`{"f:data":{"f:namespaces":{}}}`))

	cm.ManagedFields = []metav1.ManagedFieldsEntry{{
		Manager: scope.FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", Time: &wrote,
		FieldsType: "FieldsV1", FieldsV1: fields,
	}}

	w.objects = append(slices.DeleteFunc(w.objects, func(obj client.Object) bool {
		_, is := obj.(*corev1.ConfigMap)

		return is
	}), cm)
}

func (w *world) labels(namespace string, of labels.Set) {
	for _, obj := range w.objects {
		if ns, is := obj.(*corev1.Namespace); is && ns.Name == namespace {
			ns.Labels = of
		}
	}
}

// delegate lets an account write for the scope that holds everything but in some namespaces.
func (w *world) delegate(lacks ...string) {
	w.scope.Spec.ServiceAccountName, w.lacks = "delegate", map[string]bool{}
	w.holds = []rbacv1.PolicyRule{ruleOf("*", "*", "*")}

	for _, name := range lacks {
		w.lacks[name] = true
	}
}

// begin is where the scope is served, with the cluster in memory.
func (w *world) begin() (*serving, *simulation.Cluster) {
	w.Helper()

	scheme, err := controllers.Scheme()
	if err != nil {
		w.Fatal(err)
	}

	once := read.NewOnce([]string{"ops"})
	once.CSVs("ops", true)

	cluster := simulation.NewCluster(scheme, meta.NewDefaultRESTMapper(nil), once, w.now)

	for i, obj := range w.objects {
		obj.SetResourceVersion(strconv.Itoa(i + 1))
		cluster.Add(obj)
	}

	in := w.manager.Simulation(cluster)
	in.Ask = func(user, namespace string) ([]rbacv1.PolicyRule, bool, error) {
		switch {
		case user != "system:serviceaccount:ops:delegate":
			return nil, false, nil
		case w.lacks[namespace]:
			return nil, true, nil
		default:
			return w.holds, true, nil
		}
	}

	declared := w.declared
	if declared == nil {
		declared = []client.Object{w.scope}
	}

	s := &serving{Simulation: in, cluster: cluster, setting: predict.Setting{Key: w.key}}

	for _, of := range w.manager.Compile(declared) {
		s.setting.Scopes = append(s.setting.Scopes, of.Scope)
	}

	w.declare(s, declared...)

	return s, cluster
}

// serving is a simulation of what it serves.
type serving struct {
	*simulation.Simulation

	cluster *simulation.Cluster
	setting predict.Setting
}

// declare puts resources there that ask for scopes.
func (w *world) declare(in *serving, declared ...client.Object) {
	w.Helper()

	for _, obj := range declared {
		if err := in.cluster.Declare(obj); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) amend(f *facts.Facts) {
	for _, name := range w.closed {
		ns := f.Namespaces[name]
		ns.Closed, ns.Terminating = "it may not be read", w.terminating
		f.Namespaces[name] = ns
	}
}

func (w *world) predict() *predict.Prediction {
	w.Helper()

	in, _ := w.begin()

	return predicted(w, in)
}

func predicted(w *world, in *serving) *predict.Prediction {
	w.Helper()

	out, err := predict.Of(w.Context(), in.Simulation, []predict.Setting{in.setting}, w.amend)
	if err != nil {
		w.Fatal(err)
	}

	return out[0]
}

// add puts an object there.
func (w *world) add(obj client.Object) {
	obj.SetUID(types.UID(obj.GetName()))
	w.objects = append(w.objects, obj)
}
