package reconcile_test

import (
	"encoding/json"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/ambit-k8s/ambit/internal/scope"
)

// configured makes a Subscription that says something about the Deployments of the operator, as JSON.
func (w *world) configured(name, config string) {
	w.Helper()

	s := &olmv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: name},
		Spec: &olmv1alpha1.SubscriptionSpec{
			Package: "op", CatalogSource: "source", CatalogSourceNamespace: w.ns(ops), Channel: "stable",
			Config: new(decoded[olmv1alpha1.SubscriptionConfig](w, config)),
		},
	}
	w.Make(s)

	s.Status.InstalledCSV, s.Status.LastUpdated = "op.v1", metav1.Now()
	if err := w.client.Status().Update(w.Context(), s); err != nil {
		w.Fatal(err)
	}

	w.touch(s)
}

// shows is a part of the Deployment's pods as JSON, with short names.
func (w *world) shows(part func(*corev1.PodTemplateSpec) any) string {
	w.Helper()

	text, err := json.Marshal(part(&w.live("op").Spec.Template))
	if err != nil {
		w.Fatal(err)
	}

	return w.called(string(text))
}

// own is what the operator of these cases says of itself, and the label of who installed it.
func own(c *olmv1alpha1.ClusterServiceVersion) {
	c.Labels = map[string]string{scope.PackageLabel("op", c.Namespace): ""}
	t := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template
	t.Annotations = map[string]string{"note": "own"}
	t.Spec.NodeSelector = map[string]string{"own": "yes"}
	t.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "A", Value: "own"}, {Name: "B", Value: "own"}}
	t.Spec.InitContainers = []corev1.Container{{Name: "before", Image: "registry.example.com/before:1"}}
}

func containerOf(t *corev1.PodTemplateSpec) *corev1.Container { return &t.Spec.Containers[0] }

// parts of a pod template that Subscriptions configure.
func envOf(t *corev1.PodTemplateSpec) any          { return containerOf(t).Env }
func envFromOf(t *corev1.PodTemplateSpec) any      { return containerOf(t).EnvFrom }
func mountsOf(t *corev1.PodTemplateSpec) any       { return containerOf(t).VolumeMounts }
func volumesOf(t *corev1.PodTemplateSpec) any      { return t.Spec.Volumes }
func resourcesOf(t *corev1.PodTemplateSpec) any    { return containerOf(t).Resources }
func nodeSelectorOf(t *corev1.PodTemplateSpec) any { return t.Spec.NodeSelector }
func tolerationsOf(t *corev1.PodTemplateSpec) any  { return t.Spec.Tolerations }
func affinityOf(t *corev1.PodTemplateSpec) any     { return t.Spec.Affinity }
func beforeOf(t *corev1.PodTemplateSpec) any       { return t.Spec.InitContainers[0].Env }
func noteOf(t *corev1.PodTemplateSpec) any {
	return []string{t.Annotations["note"], t.Annotations["team"], t.Annotations["olm.targetNamespaces"]}
}

const (
	condition  = `{"name":"OPERATOR_CONDITION_NAME","value":"op.v1"}`
	ownEnv     = `[{"name":"A","value":"own"},{"name":"B","value":"own"},` + condition + `]`
	replacedA  = `[{"name":"A","value":"mine"},{"name":"B","value":"own"},` + condition + `,{"name":"C","value":"new"}]`
	configEnv  = `{"env":[{"name":"A","value":"mine"},{"name":"C","value":"new"}]}`
	invalidCSV = "Failed InvalidInstallStrategy"
)

// TestSubscriptionConfig: what of a Subscription reaches the operator's pods.
func TestSubscriptionConfig(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		config string
		part   func(*corev1.PodTemplateSpec) any
		want   string
	}{
		"a variable takes the place of the operator's": {config: configEnv, part: envOf, want: replacedA},
		"not in containers that come before":           {config: configEnv, part: beforeOf, want: `null`},
		"variables from elsewhere": {
			config: `{"envFrom":[{"configMapRef":{"name":"proxy"}}]}`, part: envFromOf, want: `[{"configMapRef":{"name":"proxy"}}]`,
		},
		"resources": {
			config: `{"resources":{"limits":{"memory":"1Gi"},"requests":{"cpu":"10m"}}}`, part: resourcesOf,
			want: `{"limits":{"memory":"1Gi"},"requests":{"cpu":"10m"}}`,
		},
		"the node selector takes the place of the operator's": {
			config: `{"nodeSelector":{"disk":"fast"}}`, part: nodeSelectorOf, want: `{"disk":"fast"}`,
		},
		"none leaves it": {config: configEnv, part: nodeSelectorOf, want: `{"own":"yes"}`},
		"tolerations": {
			config: `{"tolerations":[{"key":"gpu","operator":"Exists"}]}`, part: tolerationsOf,
			want: `[{"key":"gpu","operator":"Exists"}]`,
		},
		"affinity": {
			config: `{"affinity":{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"host"}]}}}`,
			part:   affinityOf, want: `{"podAntiAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":[{"topologyKey":"host"}]}}`,
		},
		"volumes": {
			config: `{"volumes":[{"name":"ca","emptyDir":{}}],"volumeMounts":[{"name":"ca","mountPath":"/ca"}]}`,
			part:   volumesOf, want: `[{"name":"ca","emptyDir":{}}]`,
		},
		"where they are mounted": {
			config: `{"volumes":[{"name":"ca","emptyDir":{}}],"volumeMounts":[{"name":"ca","mountPath":"/ca"}]}`,
			part:   mountsOf, want: `[{"name":"ca","mountPath":"/ca"}]`,
		},
		"annotations, but not over the operator's, nor over the group's": {
			config: `{"annotations":{"note":"mine","team":"red","olm.targetNamespaces":"b>"}}`,
			part:   noteOf, want: `["own","red","a,ops"]`,
		},
		"pods that it is about": {
			config: strings.Replace(configEnv, "{", `{"selector":{"matchLabels":{"name":"op"}},`, 1), part: envOf, want: replacedA,
		},
		"pods that it is not about": {
			config: strings.Replace(configEnv, "{", `{"selector":{"matchLabels":{"name":"other"}},`, 1), part: envOf, want: ownEnv,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.group("group", inA)
			w.configured("sub", tc.config)
			w.csv("*", own)
			w.installed()
			is(w, "the pods", w.shows(tc.part), tc.want)
		})
	}
}

// TestSubscriptionConfigFollows: what a Subscription says is taken up by the next call, also of an operator that runs, which has
// not succeeded until it is rolled out; and who says it.
func TestSubscriptionConfigFollows(t *testing.T) {
	t.Parallel()

	unreadable := strings.Replace(configEnv, "{", `{"selector":{"matchExpressions":[{"key":"a","operator":"Like"}]},`, 1)
	changes := func(config string) func(*world) {
		return func(w *world) {
			s := &olmv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "sub"}}
			w.Change(s, func() { s.Spec.Config = new(decoded[olmv1alpha1.SubscriptionConfig](w, config)) })
		}
	}

	for name, tc := range map[string]struct {
		before string
		change func(*world)
		env    string
		phase  string
		says   []string
	}{
		"what is added": {before: `{}`, change: changes(configEnv), env: replacedA, phase: installing},
		"a variable that is given twice counts as the last": {
			before: `{}`, env: replacedA, phase: installing,
			change: changes(`{"env":[{"name":"C","value":"old"},{"name":"A","value":"mine"},{"name":"C","value":"new"}]}`),
		},
		"what is taken": {before: configEnv, change: changes(`{}`), env: ownEnv, phase: installing},
		"a Subscription that goes": {
			before: configEnv, env: ownEnv, phase: installing, change: func(w *world) {
				w.Remove(&olmv1alpha1.Subscription{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "sub"}})
			},
		},
		"of two the first by name counts": {
			before: configEnv, env: ownEnv, phase: installing, change: func(w *world) { w.configured("a-sub", `{}`) },
		},
		"and not the second": {
			before: configEnv, env: replacedA, phase: succeeded, change: func(w *world) { w.configured("z-sub", `{}`) },
		},
		"one that is about another version": {
			before: configEnv, env: ownEnv, phase: installing, change: func(w *world) {
				s := &olmv1alpha1.Subscription{}
				if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "sub"}, s); err != nil {
					w.Fatal(err)
				}

				s.Status.InstalledCSV = "op.v2"
				if err := w.client.Status().Update(w.Context(), s); err != nil {
					w.Fatal(err)
				}
			},
		},
		"what cannot be read changes nothing, and is told": {
			before: configEnv, change: changes(unreadable), env: replacedA, phase: invalidCSV,
			says: []string{"spec.config of Subscription sub cannot be read", "Like"},
		},
		"what somebody takes from the Deployment comes back": {
			before: configEnv, env: replacedA, phase: installing, change: func(w *world) {
				d := w.live("op")
				w.Change(d, func() { d.Spec.Template.Spec.Containers[0].Env = nil })
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.group("group", inA)
			w.configured("sub", tc.before)
			w.csv("*", own)
			w.installed()

			tc.change(w)
			w.reconcileGroup()

			is(w, "the variables", w.shows(envOf), tc.env)
			is(w, "phase", w.phase(), tc.phase)
			w.names("the message", w.message(), tc.says...)
			is(w, "where it has permissions", w.served(), []string{"a", "ops"})
		})
	}
}

// TestRequirements: an operator that needs what is not there is not installed, names it, and is installed once it is there. One
// that runs never says Succeeded while something of it is left out, and keeps what it holds.
func TestRequirements(t *testing.T) {
	t.Parallel()

	needs := func(w *world) func(*olmv1alpha1.ClusterServiceVersion) {
		return func(c *olmv1alpha1.ClusterServiceVersion) {
			c.Spec.CustomResourceDefinitions.Required = []olmv1alpha1.CRDDescription{{
				Name: "things." + w.long(apiGroup), Version: "v1", Kind: "Thing",
			}}
		}
	}
	serves := func(c *olmv1alpha1.ClusterServiceVersion) {
		c.Spec.APIServiceDefinitions.Owned = []olmv1alpha1.APIServiceDescription{{
			Name: "v1.kettles.example.com", Group: "kettles.example.com", Version: "v1", Kind: "Kettle", DeploymentName: "op",
			ContainerPort: 443,
		}}
	}

	for name, tc := range map[string]struct {
		needs func(w *world) func(*olmv1alpha1.ClusterServiceVersion)
		says  []string
		heal  func(w *world)
	}{
		"a definition that somebody else brings": {
			needs: needs, says: []string{"CustomResourceDefinition things.g.example.com (v1)"},
			heal: func(w *world) { w.definition("things", "Thing") },
		},
		"a definition that it should bring itself": {
			needs: func(w *world) func(*olmv1alpha1.ClusterServiceVersion) { return w.owning("things", "Thing") },
			says:  []string{"CustomResourceDefinition things.g.example.com (v1)"},
			heal:  func(w *world) { w.definition("things", "Thing") },
		},
		"a version that is not served": {
			needs: func(w *world) func(*olmv1alpha1.ClusterServiceVersion) {
				w.definition("things", "Thing")

				return func(c *olmv1alpha1.ClusterServiceVersion) {
					needs(w)(c)
					c.Spec.CustomResourceDefinitions.Required[0].Version = "v2"
				}
			},
			says: []string{"CustomResourceDefinition things.g.example.com (v2)"},
		},
		"an API that the API server does not serve": {
			needs: func(*world) func(*olmv1alpha1.ClusterServiceVersion) {
				return func(c *olmv1alpha1.ClusterServiceVersion) {
					c.Spec.NativeAPIs = []metav1.GroupVersionKind{{Group: "tea.example.com", Version: "v1", Kind: "Pot"}}
				}
			},
			says: []string{"API tea.example.com/v1 Pot"},
		},
		"an API that it would have to serve itself, which nobody sets up": {
			needs: func(*world) func(*olmv1alpha1.ClusterServiceVersion) { return serves },
			says:  []string{"APIService v1.kettles.example.com", "sets up no APIServices"},
		},
		"a newer Kubernetes": {
			needs: func(*world) func(*olmv1alpha1.ClusterServiceVersion) {
				return func(c *olmv1alpha1.ClusterServiceVersion) { c.Spec.MinKubeVersion = "1.999.0" }
			},
			says: []string{"minKubeVersion is 1.999.0", "the server is v1."},
		},
		"a version that is none": {
			needs: func(*world) func(*olmv1alpha1.ClusterServiceVersion) {
				return func(c *olmv1alpha1.ClusterServiceVersion) { c.Spec.MinKubeVersion = "new" }
			},
			says: []string{`minKubeVersion "new" cannot be read`},
		},
	} {
		for _, runs := range []bool{false, true} {
			if runs {
				name += ", of an operator that runs"
			}

			t.Run(name, func(t *testing.T) {
				t.Parallel()

				w := grouped(t)
				w.group("group", inA)

				needed, served, told := tc.needs(w), []string{}, "-"

				if runs {
					w.csv("*")
					w.installed()
					w.recsv(needed)

					served, told = []string{"a", "ops"}, "a,ops"
				} else {
					w.csv("*", needed)
				}

				w.reconcileGroup()
				is(w, "phase", w.phase(), pending)
				w.names("the message", w.message(), tc.says...)
				is(w, "where it has permissions", w.served(), served)
				is(w, "what the operator is told", w.told(), told)

				if tc.heal == nil {
					return
				}

				tc.heal(w)
				w.reconcileGroup()

				if !runs {
					is(w, "phase after", w.phase(), installing)
					w.rollOut()
					w.reconcileGroup()
				}

				is(w, "phase in the end", w.phase(), succeeded)
			})
		}
	}
}

// TestNotYetSucceeded: what a Deployment has to be until its operator has succeeded.
func TestNotYetSucceeded(t *testing.T) {
	t.Parallel()

	second := func(c *olmv1alpha1.ClusterServiceVersion) {
		specs := &c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
		*specs = append(*specs, *(*specs)[0].DeepCopy())
		(*specs)[1].Name = "second"
	}

	for name, tc := range map[string]struct {
		edit   func(*olmv1alpha1.ClusterServiceVersion)
		change func(w *world)
		phase  string
		says   []string
	}{
		"all of them":          {edit: second, phase: installing, says: []string{"deployment second"}},
		"as it is asked to be": {edit: func(*olmv1alpha1.ClusterServiceVersion) {}, phase: succeeded},
		"not one that goes on as it was": {
			edit: func(*olmv1alpha1.ClusterServiceVersion) {}, phase: installing, says: []string{"waiting for deployment op"},
			change: func(w *world) {
				w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) {
					c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers[0].Image = "example.com/operator:2"
				})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.group("group", inA)
			w.csv("*", tc.edit)
			w.reconcileGroup()
			w.rollOut()
			w.reconcileGroup()

			if tc.change != nil {
				is(w, "phase before", w.phase(), succeeded)
				tc.change(w)
				w.reconcileGroup()
			}

			is(w, "phase", w.phase(), tc.phase)
			w.names("the message", w.message(), tc.says...)
		})
	}
}

// TestSubscriptionConfigFromTheStart: which version a Subscription configures is known by its status. That names a version before
// it is there, so that no operator begins without what its Subscription says.
func TestSubscriptionConfigFromTheStart(t *testing.T) {
	t.Parallel()

	w := subscribable(t)
	w.Make(w.configMap("catalog", kettles(kettle1, kettle2)))
	w.catalogCalled("source")

	s := &olmv1alpha1.Subscription{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(ops), Name: "kettle"},
		Spec: &olmv1alpha1.SubscriptionSpec{
			Package: "kettle", CatalogSource: "source", CatalogSourceNamespace: w.ns(ops), StartingCSV: "kettle.v1",
			Config: new(decoded[olmv1alpha1.SubscriptionConfig](w, configEnv)),
		},
	}
	w.Make(s)

	var named []string

	w.refuses = func(what string) int {
		if strings.HasPrefix(what, "create clusterserviceversions") {
			if err := w.Client.Get(w.Context(), client.ObjectKeyFromObject(s), s); err != nil {
				w.Error(err)
			}

			named = append(named, s.Status.CurrentCSV)
		}

		return 0
	}

	w.reconcileCatalogs(true)
	w.becomes("kettle.v1", olmv1alpha1.CSVPhaseSucceeded)
	is(w, "the versions that are named when they come", named, []string{"kettle.v1", "kettle.v2"})
}
