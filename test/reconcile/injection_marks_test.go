package reconcile_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
	"github.com/ambit-k8s/ambit/test/younger"
)

// replaceable begins a case with the operator's Deployment, whose WATCH_NAMESPACE is somebody else's.
func replaceable(t *testing.T, profile string) (*world, *appsv1.Deployment) {
	t.Helper()

	w := beginWith(t, profile)
	w.namespaces("ops", "a")
	w.watch(w.ns(ops))
	w.Make(testbed.Account(w.ns(ops), "op"))

	return w, w.deployment("op", func(p *corev1.PodTemplateSpec) {
		p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "WATCH_NAMESPACE", Value: "mine"}}
		p.Spec.Containers[0].Args = []string{"--require-tls"}
	})
}

// TestReplacedForTheOlderOfTwoScopes: two scopes inject the same, over what somebody set. When the older one goes, nothing begins
// again, and least of all with what was there before.
func TestReplacedForTheOlderOfTwoScopes(t *testing.T) {
	t.Parallel()

	w, d := replaceable(t, "cluster")
	older := w.scopeCalled("older", replacing)
	w.settle()
	younger.Than(&w.World, older)
	w.scope(replacing)
	w.settle()

	w.Remove(older)

	_, wrote := w.settle()
	is(w, "how often it was written", strings.Count(strings.Join(wrote, ","), "patch deployments"), 1)
	w.refresh(d)
	is(w, "WATCH_NAMESPACE", w.variable(), "from namespace-scope")
	is(w, "for whom", d.Annotations[scope.AnnotationInjectedFor], "NamespaceScope/"+w.ns(ops)+"/scope")

	w.respec(inert)
	w.settle()
	is(w, "WATCH_NAMESPACE", w.variable(), "mine")
}

func (w *world) refresh(obj client.Object) {
	w.Helper()

	if err := w.client.Get(w.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
		w.Fatal(err)
	}
}

// recorded says whether the API server knows that Ambit's injector wrote an object.
func (w *world) recorded(obj client.Object) bool {
	w.Helper()
	w.refresh(obj)

	return slices.ContainsFunc(obj.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == scope.InjectionManager
	})
}

// TestRecordOfAnInjectionGoesWithIt: what was injected was restored, and then Kubernetes wrote the status of the operator each
// time that the record of it was to go. The scope stays until it has, since nobody comes back for it.
func TestRecordOfAnInjectionGoesWithIt(t *testing.T) {
	t.Parallel()

	w, d := replaceable(t, "cluster")
	nss := w.scope(replacing)
	w.settle()
	is(w, "WATCH_NAMESPACE", w.variable(), "from namespace-scope")

	patched := 0
	w.refuses = func(what string) int {
		if what != "patch deployments ops/op" {
			return 0
		}

		if patched++; patched > 1 && patched < 8 {
			return http.StatusConflict
		}

		return 0
	}

	w.Remove(nss)

	for range 10 {
		w.settle()
	}

	is(w, "WATCH_NAMESPACE", w.variable(), "mine")
	is(w, "recorded", w.recorded(d), false)

	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(nss), nss); !apierrors.IsNotFound(err) {
		t.Errorf("the scope is there: %v", err)
	}
}

// TestRecordOfAnInjectionIsNobodys: who wrote an object is what anybody says who may write it. A scope that injects nothing, and
// whose account may write no workload, is told nothing of that, and goes when it is deleted; another one's account takes it off.
func TestRecordOfAnInjectionIsNobodys(t *testing.T) {
	t.Parallel()

	w, d := replaceable(t, "delegated")

	for _, account := range []string{"poor", "rich"} {
		w.Make(testbed.Account(w.ns(ops), account))
		w.grant("ops", "lists-"+account, account, "create configmaps", "patch configmaps", "delete configmaps")
	}

	w.grant("ops", "workloads", "rich", "patch deployments")
	w.May(w.ns(ops), "rich", w.ns(ops), "patch deployments")

	forge := func() {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"some":"thing"}}}`))
		if err := w.client.Patch(t.Context(), d, patch, client.FieldOwner(scope.InjectionManager)); err != nil {
			t.Fatal(err)
		}

		w.touch(d)
	}
	poor := w.scopeCalled("poor", `{"serviceAccountName":"poor"}`)
	forge()
	w.reconcile()
	w.reconcile()
	is(w, "Ready", w.condition("poor", "Ready"), "True Reconciled")

	rich := w.scopeCalled("rich", `{"serviceAccountName":"rich"}`)
	w.settle()
	is(w, "recorded", w.recorded(d), false)

	w.Remove(rich)
	w.settle()
	w.Remove(poor)
	forge()
	w.settle()

	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(poor), poor); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the scope is still there: %v", err)
	}
}

// TestStatusOfAWorkloadSaysNothingOfAnInjection: the API server lets whoever may write the status of a workload write its
// annotations, too. What Ambit restores is not theirs to choose.
func TestStatusOfAWorkloadSaysNothingOfAnInjection(t *testing.T) {
	t.Parallel()

	w, d := replaceable(t, "cluster")
	w.scope(replacing)
	w.settle()
	is(w, "WATCH_NAMESPACE", w.variable(), "from namespace-scope")

	role := testbed.Role(w.ns(ops), "status", "get,patch deployments")
	role.Rules[0].Resources = []string{"deployments/status"}
	w.Make(testbed.Account(w.ns(ops), "mallory"), role, testbed.Bind(w.ns(ops), "Role", "status", w.ns(ops), "mallory"))

	mallory := w.As(scope.AccountUser(w.ns(ops), "mallory"))
	memory := `{\"template\":{\"containers\":{\"operator\":{\"variable\":\"WATCH_NAMESPACE\",\"configMap\":\"namespace-scope\",` +
		`\"was\":{\"name\":\"LD_PRELOAD\",\"value\":\"/tmp/evil.so\"},\"arguments\":[\"--require-tls\"]}}}}`
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil,
		`{"metadata":{"annotations":{%q:"x",%q:"%s"}}}`, scope.AnnotationInjected, scope.AnnotationReplaced, memory))

	w.refresh(d)

	w.Eventually("who may write the status writes annotations", func() error {
		return mallory.Status().Patch(t.Context(), d, patch, client.FieldOwner(scope.InjectionManager))
	})

	w.touch(d)
	w.settle()
	w.respec(inert)
	w.settle()
	w.refresh(d)

	c := &d.Spec.Template.Spec.Containers[0]
	if !slices.Equal(c.Args, []string{"--require-tls"}) ||
		slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "LD_PRELOAD" }) {
		t.Errorf("the container runs with %q and %+v", c.Args, c.Env)
	}
}
