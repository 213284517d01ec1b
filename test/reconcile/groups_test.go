package reconcile_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// grouped begins a case about OperatorGroups and ClusterServiceVersions in the namespace ops.
func grouped(t *testing.T) *world {
	t.Helper()

	return groupedWith(t, "cluster")
}

func groupedWith(t *testing.T, profile string) *world {
	t.Helper()

	w := beginWith(t, profile)
	w.namespaces("ops", "a:team=red>", "b:team=red>", "c:team=blue>")
	w.installsIn(ops)
	w.watched = w.ns(ops)

	return w
}

// installsIn begins to watch what is installed in a namespace, and waits until it is listed.
func (w *world) installsIn(short string) {
	w.Helper()

	key := scope.Installs.In(w.ns(short))
	w.groups.Watches.Watch(scope.Installs.In(w.ns(short)))
	w.Cleanup(func() { w.groups.Watches.Release(scope.Installs.In(w.ns(short))) })

	if err := until(w.Context(), func() bool {
		_, listed := w.groups.Store.Facts(key, time.Now())

		return listed
	}); err != nil {
		w.Fatalf("what is installed is not listed: %v", err)
	}
}

// reconcileGroup calls the reconciler until a call writes nothing, and returns what the others wrote.
func (w *world) reconcileGroup() []string {
	w.Helper()

	return w.reconcileGroupIn(ops)
}

func (w *world) reconcileGroupIn(short string) []string {
	w.Helper()

	var wrote []string

	for range most {
		c := w.answered(w.groups, scope.Installs.In(w.ns(short)), func() { w.catchUpGroup(short) })

		if len(c.writes) == 0 {
			return wrote
		}

		wrote = append(wrote, c.writes...)
	}

	w.Fatalf("it does not come to rest: %q", wrote)

	return nil
}

func (w *world) catchUpGroup(short string) {
	w.Helper()
	w.catchUp(w.groups.Cache, w.ns(short), &operatorsv1.OperatorGroupList{}, scope.NewOLMList(scope.KindCSV),
		listOf(olmv1alpha1.SubscriptionKind))
	w.catchUpDefinitions()
}

// groupOnce calls the reconciler once, whatever it returns.
func (w *world) groupOnce() call {
	w.Helper()
	w.catchUpGroup(ops)

	return w.call(w.groups, scope.Installs.In(w.ns(ops)))
}

// group makes an OperatorGroup from JSON.
func (w *world) group(name, spec string) {
	w.Helper()
	w.groupIn(ops, name, spec)
}

func (w *world) groupIn(short, name, spec string) *operatorsv1.OperatorGroup {
	w.Helper()

	g := &operatorsv1.OperatorGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(short), Name: name}, Spec: decoded[operatorsv1.OperatorGroupSpec](w, spec),
	}
	w.Make(g)

	return g
}

// operatorCSV is a ClusterServiceVersion of one operator.
func (w *world) operatorCSV(t corev1.PodTemplateSpec) *olmv1alpha1.ClusterServiceVersion {
	c := &olmv1alpha1.ClusterServiceVersion{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "op.v1"}}
	c.Spec.DisplayName = "op"
	c.Spec.InstallStrategy = olmv1alpha1.NamedInstallStrategy{
		StrategyName: olmv1alpha1.InstallStrategyNameDeployment,
		StrategySpec: olmv1alpha1.StrategyDetailsDeployment{DeploymentSpecs: []olmv1alpha1.StrategyDeploymentSpec{{
			Name: "op", Spec: appsv1.DeploymentSpec{Selector: selectorOf(&t), Template: t},
		}}},
	}

	return c
}

// csv makes a ClusterServiceVersion of one operator that may get Secrets, with the install modes that it supports, after edits.
func (w *world) csv(modes string, edits ...func(*olmv1alpha1.ClusterServiceVersion)) {
	w.Helper()
	w.csvIn(ops, modes, edits...)
}

func (w *world) csvIn(
	short, modes string, edits ...func(*olmv1alpha1.ClusterServiceVersion),
) *olmv1alpha1.ClusterServiceVersion {
	w.Helper()

	c := w.operatorCSV(podTemplate("op"))
	c.Namespace = w.ns(short)
	c.Spec.InstallStrategy.StrategySpec.Permissions = []olmv1alpha1.StrategyDeploymentPermissions{{
		ServiceAccountName: "op", Rules: []rbacv1.PolicyRule{testbed.Rule("get secrets")},
	}}

	for _, mode := range []string{"OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces"} {
		c.Spec.InstallModes = append(c.Spec.InstallModes, olmv1alpha1.InstallMode{
			Type: olmv1alpha1.InstallModeType(mode), Supported: strings.Contains(modes, mode) || modes == "*",
		})
	}

	for _, edit := range edits {
		edit(c)
	}

	w.Make(c)

	return c
}

// phase is that of the ClusterServiceVersion, with its reason.
func (w *world) phase() string {
	w.Helper()

	return w.phaseOf("op.v1")
}

func (w *world) phaseOf(name string) string {
	w.Helper()

	c := w.versionCalled(name)

	return fmt.Sprintf("%s %s", c.Status.Phase, c.Status.Reason)
}

// versionCalled is a ClusterServiceVersion as it is now.
func (w *world) versionCalled(name string) *olmv1alpha1.ClusterServiceVersion {
	w.Helper()

	return w.versionIn(ops, name)
}

func (w *world) versionIn(short, name string) *olmv1alpha1.ClusterServiceVersion {
	w.Helper()

	c := &olmv1alpha1.ClusterServiceVersion{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(short), Name: name}, c); err != nil {
		w.Fatal(err)
	}

	return c
}

// told are the targets that the Deployment's pods are told; "-" when there is no Deployment.
func (w *world) told() string {
	w.Helper()

	d := &appsv1.Deployment{}

	err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "op"}, d)
	if client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}

	if err != nil {
		return "-"
	}

	return w.called(d.Spec.Template.Annotations["olm.targetNamespaces"])
}

// served are the namespaces in which the operator has its permissions; "*" where that is the whole cluster.
func (w *world) served() []string {
	w.Helper()

	var (
		bindings rbacv1.RoleBindingList
		whole    rbacv1.ClusterRoleBindingList
		out      = []string{}
	)

	for _, list := range []client.ObjectList{&bindings, &whole} {
		if err := w.client.List(w.Context(), list, client.HasLabels{scope.LabelScope}); err != nil {
			w.Fatal(err)
		}
	}

	for i := range bindings.Items {
		if b := &bindings.Items[i]; subjects(b.Subjects) == w.ns(ops)+"/op" {
			out = append(out, w.called(b.Namespace))
		}
	}

	for i := range whole.Items {
		if b := &whole.Items[i]; subjects(b.Subjects) == w.ns(ops)+"/op" {
			out = append(out, "*")
		}
	}

	slices.Sort(out)

	return slices.Compact(out)
}

// targets are those that the status of a group says.
func (w *world) targets(name string) string {
	w.Helper()

	g := &operatorsv1.OperatorGroup{}
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: name}, g); err != nil {
		w.Fatal(err)
	}

	return w.called(fmt.Sprintf("%q", g.Status.Namespaces))
}

// TestGroups: which targets a group has, whether an operator may be installed for them, and where it gets permissions.
func TestGroups(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		group, modes string
		given        func(w *world)
		// targets, phase, told and served are what is seen.
		targets, phase, told string
		served               []string
	}{
		"its own namespace": {
			group: `{"targetNamespaces":["ops>"]}`, modes: "OwnNamespace",
			targets: `["ops"]`, phase: installing, told: "ops", served: []string{"ops"},
		},
		"one other namespace": {
			group: `{"targetNamespaces":["a>"]}`, modes: "SingleNamespace",
			targets: `["a"]`, phase: installing, told: "a", served: []string{"a", "ops"},
		},
		"several namespaces": {
			group: `{"targetNamespaces":["b>","a>"]}`, modes: "MultiNamespace",
			targets: `["a" "b"]`, phase: installing, told: "a,b", served: []string{"a", "b", "ops"},
		},
		"all namespaces": {
			group: `{}`, modes: "AllNamespaces", targets: `[""]`, phase: installing, told: "", served: []string{"*"},
		},
		"a selector": {
			group: `{"selector":{"matchLabels":{"team":"red>"}}}`, modes: "MultiNamespace",
			targets: `["a" "b"]`, phase: installing, told: "a,b", served: []string{"a", "b", "ops"},
		},
		"names count where both are given": {
			group: `{"targetNamespaces":["c>"],"selector":{"matchLabels":{"team":"red>"}}}`, modes: "SingleNamespace",
			targets: `["c"]`, phase: installing, told: "c", served: []string{"c", "ops"},
		},
		"a selector that matches nothing is no target, and never all": {
			group: `{"selector":{"matchLabels":{"team":"green>"}}}`, modes: "*",
			targets: `[]`, phase: "Failed NoTargetNamespaces", told: "-",
		},
		"one mode does not do for another: OwnNamespace": {
			group: `{"targetNamespaces":["ops>"]}`, modes: "SingleNamespace MultiNamespace AllNamespaces",
			targets: `["ops"]`, phase: "Failed UnsupportedOperatorGroup", told: "-",
		},
		"one mode does not do for another: SingleNamespace": {
			group: `{"targetNamespaces":["a>"]}`, modes: "OwnNamespace MultiNamespace AllNamespaces",
			targets: `["a"]`, phase: "Failed UnsupportedOperatorGroup", told: "-",
		},
		"one mode does not do for another: MultiNamespace": {
			group: `{"targetNamespaces":["a>","b>"]}`, modes: "OwnNamespace SingleNamespace AllNamespaces",
			targets: `["a" "b"]`, phase: "Failed UnsupportedOperatorGroup", told: "-",
		},
		"one mode does not do for another: AllNamespaces": {
			group: `{}`, modes: "OwnNamespace SingleNamespace MultiNamespace",
			targets: `[""]`, phase: "Failed UnsupportedOperatorGroup", told: "-",
		},
		"without a group nothing is installed": {modes: "*", phase: "Failed NoOperatorGroup", told: "-"},
		"with two groups nothing is installed": {
			group: `{"targetNamespaces":["a>"]}`, modes: "*", given: func(w *world) { w.group("another", `{}`) },
			targets: `["a"]`, phase: "Failed TooManyOperatorGroups", told: "-",
		},
		"an account that is missing installs nothing": {
			group: `{"targetNamespaces":["ops>"],"serviceAccountName":"nobody"}`, modes: "*",
			targets: `["ops"]`, phase: "Failed InstallComponentFailed", told: "-",
		},
		"an account that may nothing installs nothing": {
			group: `{"targetNamespaces":["ops>"],"serviceAccountName":"weak"}`, modes: "*",
			given:   func(w *world) { w.Make(testbed.Account(w.ns(ops), "weak")) },
			targets: `["ops"]`, phase: "Failed InstallComponentFailed", told: "-",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)

			if tc.given != nil {
				tc.given(w)
			}

			if tc.group != "" {
				w.group("group", tc.group)
			}

			w.csv(tc.modes)
			w.reconcileGroup()

			if tc.group != "" {
				is(w, "status.namespaces", w.targets("group"), tc.targets)
			}

			is(w, "phase", w.phase(), tc.phase)
			is(w, "what the operator is told", w.told(), tc.told)
			is(w, "where it has permissions", w.served(), slices.Concat([]string{}, tc.served))
		})
	}
}

// TestGroupsFollow: what changes is taken up by the next call, and failures heal.
func TestGroupsFollow(t *testing.T) {
	t.Parallel()

	change := func(spec string) func(*world) {
		return func(w *world) {
			g := w.groupNamed(ops, "group")
			w.Change(g, func() {
				g.Spec = operatorsv1.OperatorGroupSpec{}
				if err := json.Unmarshal([]byte(w.long(spec)), &g.Spec); err != nil {
					w.Fatal(err)
				}
			})
		}
	}

	for name, tc := range map[string]struct {
		group         string
		change        func(w *world)
		before, phase string
		told          string
		served        []string
	}{
		"a target that is added": {
			group: `{"targetNamespaces":["a>","ops>"]}`, change: change(`{"targetNamespaces":["a>","b>","ops>"]}`),
			before: installing, phase: installing, told: "a,b,ops", served: []string{"a", "b", "ops"},
		},
		"a target that is taken": {
			group: `{"targetNamespaces":["a>","b>","ops>"]}`, change: change(`{"targetNamespaces":["a>","ops>"]}`),
			before: installing, phase: installing, told: "a,ops", served: []string{"a", "ops"},
		},
		"a namespace that gets the label joins": {
			group:  `{"selector":{"matchLabels":{"team":"red>"}}}`,
			change: func(w *world) { c := w.object("c"); w.Change(c, func() { c.Labels["team"] = w.ns("red") }) },
			before: installing, phase: installing, told: "a,b,c", served: []string{"a", "b", "c", "ops"},
		},
		"a namespace that loses the label leaves": {
			group:  `{"selector":{"matchLabels":{"team":"red>"}}}`,
			change: func(w *world) { b := w.object("b"); w.Change(b, func() { delete(b.Labels, "team") }) },
			before: installing, phase: installing, told: "a", served: []string{"a", "ops"},
		},
		"a group that comes heals": {
			change: func(w *world) { w.group("group", `{"targetNamespaces":["ops>"]}`) },
			before: "Failed NoOperatorGroup", phase: installing, told: "ops", served: []string{"ops"},
		},
		"a Deployment that somebody deletes is made anew": {
			group: `{"targetNamespaces":["ops>"]}`,
			change: func(w *world) {
				w.Remove(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "op"}})
			},
			before: installing, phase: installing, told: "ops", served: []string{"ops"},
		},
		"an account that somebody deletes is made anew": {
			group:  `{"targetNamespaces":["ops>"]}`,
			change: func(w *world) { w.Remove(testbed.Account(w.ns(ops), "op")) },
			before: installing, phase: installing, told: "ops", served: []string{"ops"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)

			if tc.group != "" {
				w.group("group", tc.group)
			}

			w.csv("*")
			w.reconcileGroup()
			is(w, "phase before", w.phase(), tc.before)

			w.groupAsks(tc.change)
			w.reconcileGroup()

			is(w, "phase", w.phase(), tc.phase)
			is(w, "what the operator is told", w.told(), tc.told)
			is(w, "where it has permissions", w.served(), tc.served)

			account := &corev1.ServiceAccount{}
			if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "op"}, account); err != nil {
				t.Error(err)
			}
		})
	}
}
