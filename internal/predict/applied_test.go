package predict_test

import (
	"errors"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/predict"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// TestListWithoutTheRightToDelete holds that a list is written by whoever may write it: nobody asks for the right to take it
// back.
func TestListWithoutTheRightToDelete(t *testing.T) {
	t.Parallel()

	w := newWorld(t, "a")
	w.delegate()
	w.holds = []rbacv1.PolicyRule{
		ruleOf("get", "", "secrets"), ruleOf("create,patch,delete", rbacv1.GroupName, "roles,rolebindings"),
		ruleOf("create,patch", "", "configmaps"), ruleOf("patch", "apps", "deployments"),
	}

	if out := w.predict(); out.Refused() || len(out.Lists) != 1 || out.Lists[0].After != "a,ops" || len(out.Restarts) != 1 {
		t.Errorf("got %+v", out)
	}

	w.holds = slices.DeleteFunc(w.holds, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, "deployments") })

	if out := w.predict(); !out.Refused() || len(out.Restarts) != 1 || out.Restarts[0].Refusal == nil {
		t.Errorf("the operator is restarted by an account that may not: %+v", out.Restarts)
	}
}

// TestCopyThatShrinks holds that a copy which is to have less is taken away whole by an account that may delete it, and not write
// what is left of it.
func TestCopyThatShrinks(t *testing.T) {
	t.Parallel()

	w := newWorld(t, "a")
	w.delegate()
	w.add(&rbacv1.Role{ObjectMeta: at("ops", "wide"), Rules: []rbacv1.PolicyRule{
		ruleOf("get", "", "configmaps"), ruleOf("get", "", "pods"),
	}})
	w.add(bindingOf("ops", "wide", "wide"))

	in, cluster := w.begin()
	if out := predicted(w, in); out.Refused() || len(out.Changes) != 4 {
		t.Fatalf("there is nothing that could shrink: %+v", out.Changes)
	}

	less := &rbacv1.Role{ObjectMeta: at("ops", "wide"), Rules: []rbacv1.PolicyRule{ruleOf("get", "", "configmaps")}}
	less.UID = "wide"

	if err := cluster.Propose(less); err != nil {
		t.Fatal(err)
	}

	w.holds = []rbacv1.PolicyRule{ruleOf("delete", rbacv1.GroupName, "roles"), ruleOf("*", "", "configmaps")}
	w.holds[1].ResourceNames = []string{"list"}

	out := predicted(w, in)
	if len(out.Changes) == 0 || out.Changes[0].Action != plan.Delete || out.Changes[0].Refusal != nil {
		t.Errorf("got %+v", out.Changes)
	}
}

// TestInjection gets the list into a workload and out again when the scope goes, once each.
func TestInjection(t *testing.T) {
	t.Parallel()

	w := newWorld(t, "a")
	w.scope.Spec.WorkloadInjector = &operatorv1.WorkloadInjector{Variable: new("NAMESPACES")}
	in, _ := w.begin()

	injected := predicted(w, in)
	if len(injected.Injections) != 1 || injected.Injections[0].Action != plan.ApplyInjection || injected.Refused() ||
		!injected.Injections[0].Rolls {
		t.Fatalf("got %+v", injected.Injections)
	}

	if again := predicted(w, in); !again.Empty() {
		t.Fatalf("it does not come to rest: %+v", again)
	}

	w.scope.DeletionTimestamp = &metav1.Time{Time: w.now}
	w.declare(in, w.scope)

	back := predicted(w, in)
	if len(back.Injections) != 1 || back.Injections[0].Action != plan.ReleaseInjection ||
		len(back.Lists) != 1 || back.Lists[0].Exists {
		t.Errorf("got %+v, lists %+v", back.Injections, back.Lists)
	}
}

// TestBarePod holds that a pod of no workload is evicted by whoever may, and is gone then.
func TestBarePod(t *testing.T) {
	t.Parallel()

	w := newWorld(t, "a")
	w.delegate()

	w.runBarePod()

	out := w.predict()
	at := slices.IndexFunc(out.Restarts, func(r predict.Restart) bool { return r.Reader() == "Pod bare" })

	if at < 0 || out.Restarts[at].Refusal != nil || !out.Restarts[at].Changed {
		t.Errorf("got %+v", out.Restarts)
	}
}

// TestWhatComesAndGoes: the copies of an account come before its only pod is evicted, and go after that. What goes is called as
// what came: no object will ever have the name that it has in memory.
func TestWhatComesAndGoes(t *testing.T) {
	t.Parallel()

	w := newWorld(t, "a")
	w.delegate()

	w.objects = slices.DeleteFunc(w.objects, func(o client.Object) bool {
		_, is := o.(*appsv1.Deployment)

		return is || o.GetName() == "op-1"
	})
	w.runBarePod()

	made := map[string]int{}

	for _, c := range w.predict().Changes {
		switch c.Action {
		case plan.Create:
			made[c.ShownName()]++
		case plan.Delete:
			made[c.ShownName()]--
		default:
			t.Errorf("%s %s", c.Action, c.ShownName())
		}
	}

	if len(made) != 2 || made["r-*"] != 0 || made["b-*"] != 0 {
		t.Errorf("created less deleted: %v", made)
	}
}

// runBarePod adds a pod of no workload that reads the list.
func (w *world) runBarePod() {
	began := metav1.NewTime(w.now.Add(-30 * 60 * 1e9))
	pod := &corev1.Pod{ObjectMeta: at("ops", "bare"), Spec: corev1.PodSpec{ServiceAccountName: "op", Volumes: []corev1.Volume{{
		Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: "list"},
		}},
	}}}}
	pod.Labels, pod.CreationTimestamp = labels.Set{"intent": "projected"}, began
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "c", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: began}},
	}}
	w.add(pod)
}

// TestUnansweredQuestion holds that nothing is said where it cannot be asked who may do what.
func TestUnansweredQuestion(t *testing.T) {
	t.Parallel()

	w := newWorld(t, "a")
	w.delegate()

	in, _ := w.begin()
	broken := errors.New("the API server does not answer")

	in.Ask = func(string, string) ([]rbacv1.PolicyRule, bool, error) { return nil, false, broken }

	if out, err := predict.Of(t.Context(), in.Simulation, []predict.Setting{in.setting}, w.amend); !errors.Is(err, broken) {
		t.Errorf("got %+v, %v", out, err)
	}
}

// TestOneThatCannotBePredicted holds that what is unknown of one namespace keeps nothing else from being predicted, and that
// nothing is said of it.
func TestOneThatCannotBePredicted(t *testing.T) {
	t.Parallel()

	w := newWorld(t, "a")
	w.delegate()

	template := &operatorsv1alpha1.ScopeTemplate{ObjectMeta: at("", "t")}
	template.UID, template.Spec.ClusterRoles = "7", []operatorsv1alpha1.ClusterRoleTemplate{{
		GenerateName: "r-", Rules: []rbacv1.PolicyRule{ruleOf("get", "", "pods")},
		Subjects: []operatorsv1alpha1.Subject{{Kind: "ServiceAccount", Namespace: "ops", Name: "op"}},
	}}
	instance := &operatorsv1alpha1.ScopeInstance{ObjectMeta: at("", "i")}
	instance.UID, instance.Spec.ScopeTemplateName, instance.Spec.Namespaces = "8", "t", []string{"a"}
	w.declared = []client.Object{w.scope, template, instance}

	in, _ := w.begin()
	broken := errors.New("the API server does not answer")

	in.Ask = func(string, string) ([]rbacv1.PolicyRule, bool, error) { return nil, false, broken }

	settings := []predict.Setting{{Key: w.key}, {Key: scope.TemplatesKey()}}
	for _, s := range in.setting.Scopes {
		at := slices.IndexFunc(settings, func(of predict.Setting) bool { return of.Key == s.Key })
		settings[at].Scopes = append(settings[at].Scopes, s)
	}

	out, err := predict.Of(t.Context(), in.Simulation, settings, w.amend)
	if err != nil || len(out) != 2 {
		t.Fatalf("got %+v, %v", out, err)
	}

	if one := out[0]; !errors.Is(one.Unknown, broken) || len(one.Scopes) > 0 || !one.Empty() {
		t.Errorf("of the namespace that is unknown: %+v", one)
	}

	if other := out[1]; other.Unknown != nil || len(other.Scopes) != 2 || other.Empty() || other.Refused() {
		t.Errorf("of what is known: %+v", other)
	}
}

// TestBindingWithoutItsRole holds that a binding whose Role is refused is said to be refused for what it lacks itself.
func TestBindingWithoutItsRole(t *testing.T) {
	t.Parallel()

	w := newWorld(t, "a")
	w.delegate("a")

	out := w.predict()
	if len(out.Changes) != 2 || out.Changes[0].Refusal == nil || out.Changes[1].Refusal == nil ||
		out.Changes[0].Refusal.Message == out.Changes[1].Refusal.Message {
		t.Errorf("got %+v", out.Changes)
	}
}
