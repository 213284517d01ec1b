package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	operatorv1 "github.com/ambit-k8s/ambit/api/operator/v1"
	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/cli"
	cliplan "github.com/ambit-k8s/ambit/internal/cli/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/testbed"
)

// seen is what an operator namespace's scopes made of the cluster.
type seen struct {
	// objects are the projected ones with their resource versions, restarts the list that each operator was last restarted for.
	objects, restarts map[string]string
	list              string
}

// TestPlanIsWhatHappens draws scopes, operators and rights, asks what applying them would do, applies them, and holds that just
// that happens: the same objects are created, changed and deleted, the same list is written, the same operators restart.
func TestPlanIsWhatHappens(t *testing.T) {
	steps := 12
	if testing.Short() {
		steps = 3
	}

	for _, kind := range []string{"delegate", "ambit", "template"} {
		t.Run(kind, func(t *testing.T) {
			w := &drawn{World: beds.Begin(t, "cluster", "--restart-interval=1s"), random: random(t)}
			w.prepare(kind)

			for step := range steps {
				w.step(kind, step)
			}
		})
	}
}

// random gives the same numbers in every run, unless AMBIT_SEED asks for others.
func random(t *testing.T) *rand.Rand {
	t.Helper()

	seed := uint64(1)

	if s := os.Getenv("AMBIT_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("AMBIT_SEED is %q; give a number", s)
		}

		seed = n
	}

	t.Logf("AMBIT_SEED=%d", seed)

	return rand.New(rand.NewPCG(seed, 0))
}

// drawn is a world that is drawn by chance.
type drawn struct {
	*testbed.World

	random  *rand.Rand
	ops     string
	members []string
}

var roleRules = []string{"get secrets", "get,list configmaps", "patch deployments", "create services", "watch pods"}

func (w *drawn) prepare(kind string) {
	w.ops = w.Namespace("ops")
	for i := range 5 {
		w.members = append(w.members, w.Namespace("m", fmt.Sprintf("%s=%d", w.ops, i%2)))
	}

	for i := range 3 {
		w.Operator(w.ops, fmt.Sprintf("op-%d", i), roleRules[i])
	}

	// A pod that starts while a plan is made is restarted or not, by which of the two is first.
	w.Running(w.ops)

	if kind == "delegate" {
		w.Delegate(w.ops, []string{"get secrets", "get,list configmaps"}, w.members[:3]...)
		// Most of what is needed, but not all.
		w.Grant(w.members[0], "more", w.ops, "delegate", "patch deployments", "create services", "watch pods")
	}
}

// some draws some of the names.
func (w *drawn) some(names []string) []string {
	var out []string

	for _, name := range names {
		if w.random.IntN(2) == 0 {
			out = append(out, name)
		}
	}

	return out
}

// draw returns what is applied next. That is one object, because kubectl writes one after the other, and the manager may act in
// between; it ends in the same state, unless a refusal keeps what it made of the first.
func (w *drawn) draw(kind string, step int) []client.Object {
	if kind == "template" {
		return w.drawTemplate()
	}

	nss := &operatorv1.NamespaceScope{}
	nss.APIVersion, nss.Kind = "operator.ibm.com/v1", "NamespaceScope"
	nss.Namespace, nss.Name = w.ops, "scope"
	nss.Spec.NamespaceMembers = w.some(append([]string{"nowhere-" + w.ops}, w.members...))
	nss.Spec.AllowSubsetProjection = w.random.IntN(3) == 0

	if kind == "delegate" {
		nss.Spec.ServiceAccountName = "delegate"
	}

	if w.random.IntN(3) == 0 {
		nss.Spec.NamespaceSelector = &operatorv1.NamespaceSelector{Raw: fmt.Appendf(nil, `{%q: "1"}`, w.ops)}
	}

	if w.random.IntN(3) == 0 {
		nss.Spec.ServiceAccountMembers = []string{"op-0", "nobody"}
	}

	if step > 0 && w.random.IntN(3) == 0 {
		role := testbed.Role(w.ops, fmt.Sprintf("op-%d-role", w.random.IntN(3)), w.some(roleRules)...)
		role.APIVersion, role.Kind = "rbac.authorization.k8s.io/v1", "Role"
		return []client.Object{role}
	}

	return []client.Object{nss}
}

func (w *drawn) drawTemplate() []client.Object {
	template := &operatorsv1alpha1.ScopeTemplate{}
	template.APIVersion, template.Kind, template.Name = "operators.coreos.com/v1alpha1", "ScopeTemplate", w.ops

	for i := range 1 + w.random.IntN(3) {
		template.Spec.ClusterRoles = append(template.Spec.ClusterRoles, operatorsv1alpha1.ClusterRoleTemplate{
			GenerateName: fmt.Sprintf("%s-%d-", w.ops, i),
			Rules:        []rbacv1.PolicyRule{testbed.Rule(roleRules[w.random.IntN(len(roleRules))])},
			Subjects: []operatorsv1alpha1.Subject{
				{Kind: "ServiceAccount", Name: fmt.Sprintf("op-%d", w.random.IntN(3)), Namespace: w.ops},
			},
		})
	}

	instance := &operatorsv1alpha1.ScopeInstance{}
	instance.APIVersion, instance.Kind, instance.Name = template.APIVersion, "ScopeInstance", w.ops
	instance.Spec.ScopeTemplateName = w.ops
	instance.Spec.Namespaces = append(w.some(w.members), w.members[0])

	return []client.Object{template, instance}
}

func (w *drawn) step(kind string, number int) {
	w.Helper()

	objects := w.draw(kind, number)

	var text strings.Builder

	for _, obj := range objects {
		raw, err := yaml.Marshal(obj)
		if err != nil {
			w.Fatal(err)
		}

		fmt.Fprintf(&text, "---\n%s", raw)
	}

	w.rested()

	path := file(w.World, "change.yaml", text.String())
	before := w.look()

	out, errOut, code := run(w.World, "plan", "-f", path, "-o", "json")

	var planned cliplan.Data
	if err := json.Unmarshal([]byte(out), &planned); err != nil {
		w.Fatalf("step %d: %v: %s%s", number, err, out, errOut)
	}

	if want := map[bool]int{false: cli.ExitDone, true: cli.ExitMissing}[planned.Refused]; code != want {
		w.Errorf("step %d: exit code %d, want %d", number, code, want)
	}

	if out, err := w.Cluster.Kubectl(w.Context(), "apply", "-f", path); err != nil {
		w.Fatal(out, err)
	}

	w.Eventually(fmt.Sprintf("step %d: what happens is what was planned for\n%s", number, text.String()), func() error {
		return w.compare(&planned, before, w.look(), kind)
	})
}

// rested takes from the operators how long their next restart waits. It doubles with each step that comes soon after the one
// before, so that on a fast machine it would outgrow every patience.
func (w *drawn) rested() {
	w.Helper()

	var deployments appsv1.DeploymentList
	if err := w.Client.List(w.Context(), &deployments, client.InNamespace(w.ops)); err != nil {
		w.Fatal(err)
	}

	forget := client.RawPatch(types.MergePatchType,
		fmt.Appendf(nil, `{"metadata": {"annotations": {%q: null}}}`, scope.AnnotationRestartWait))

	for i := range deployments.Items {
		if err := w.Client.Patch(w.Context(), &deployments.Items[i], forget); err != nil {
			w.Fatal(err)
		}
	}
}

// look reads what is there now.
func (w *drawn) look() *seen {
	w.Helper()

	s := &seen{objects: map[string]string{}, restarts: map[string]string{}}

	for _, list := range []client.ObjectList{
		&rbacv1.RoleList{}, &rbacv1.RoleBindingList{}, &rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
	} {
		if err := w.Client.List(w.Context(), list, client.HasLabels{scope.LabelScope}); err != nil {
			w.Fatal(err)
		}

		kind := strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%T", list), "*v1."), "List")

		for _, obj := range items(list) {
			if owner := obj.GetAnnotations()[scope.AnnotationOwner]; strings.Contains(owner, "/"+w.ops+"/") ||
				strings.HasSuffix(owner, "//"+w.ops) {
				s.objects[kind+" "+obj.GetNamespace()+"/"+obj.GetName()] = obj.GetResourceVersion()
			}
		}
	}

	cm := &corev1.ConfigMap{}

	err := w.Client.Get(w.Context(), client.ObjectKey{Namespace: w.ops, Name: "namespace-scope"}, cm)
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}

	s.list = cm.Data["namespaces"]

	var deployments appsv1.DeploymentList
	if err := w.Client.List(w.Context(), &deployments, client.InNamespace(w.ops)); err != nil {
		w.Fatal(err)
	}

	for i := range deployments.Items {
		d := &deployments.Items[i]
		s.restarts["Deployment "+d.Name] = d.Spec.Template.Annotations[scope.AnnotationListHash]
	}

	return s
}

func items(list client.ObjectList) []client.Object {
	var out []client.Object

	switch l := list.(type) {
	case *rbacv1.RoleList:
		for i := range l.Items {
			out = append(out, &l.Items[i])
		}
	case *rbacv1.RoleBindingList:
		for i := range l.Items {
			out = append(out, &l.Items[i])
		}
	case *rbacv1.ClusterRoleList:
		for i := range l.Items {
			out = append(out, &l.Items[i])
		}
	case *rbacv1.ClusterRoleBindingList:
		for i := range l.Items {
			out = append(out, &l.Items[i])
		}
	}

	return out
}

// compare holds what happened against the plan.
func (w *drawn) compare(planned *cliplan.Data, before, after *seen, kind string) error {
	happened, promised, refused := map[string]string{}, map[string]string{}, map[string]string{}

	for name, version := range after.objects {
		if old, existed := before.objects[name]; !existed {
			happened[name[:len(name)-16]+"*"] = "create" // How the name ends, no plan can tell.
		} else if old != version {
			happened[name] = "update"
		}
	}

	for name := range before.objects {
		if _, exists := after.objects[name]; !exists {
			happened[name] = "delete"
		}
	}

	for i := range planned.Objects {
		o := &planned.Objects[i]
		if o.Refused == nil {
			promised[o.Kind+" "+o.Namespace+"/"+o.Name] = string(o.Action)
		} else {
			refused[o.Kind+" "+o.Namespace+"/"+o.Name] = fmt.Sprintf("%s: %+v", o.Action, *o.Refused)
		}
	}

	if !maps.Equal(happened, promised) {
		return fmt.Errorf("objects: planned %v, refused %v, happened %v; not read: %v; notes: %v", promised, refused, happened,
			planned.NotRead, planned.Notes)
	}

	if kind == "template" {
		return nil
	}

	list := before.list

	var restarts, restarted []string

	for i := range planned.WatchLists {
		list = planned.WatchLists[i].After
	}

	for i := range planned.Restarts {
		restarts = append(restarts, planned.Restarts[i].Reader)
	}

	for name, hash := range after.restarts {
		if hash != before.restarts[name] {
			restarted = append(restarted, name)
		}
	}

	slices.Sort(restarted)

	if list != after.list || !slices.Equal(restarts, restarted) {
		return errors.Join(fmt.Errorf("list: planned %s, is %s", list, after.list),
			fmt.Errorf("restarts: planned %v, happened %v", restarts, restarted))
	}

	return nil
}
