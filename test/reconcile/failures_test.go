package reconcile_test

import (
	"fmt"
	"strings"
	"testing"

	olmv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1 "github.com/ambit-k8s/ambit/api/operators/v1"
	"github.com/ambit-k8s/ambit/internal/authority"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/testbed"
)

// broken is a way in which a ClusterServiceVersion is no sound member of one group, and what heals it.
type broken struct {
	breaks, heals func(w *world)
	// brings says that the operator brings an API, where that matters.
	brings bool
	phase  string
	says   []string
	// keeps are where an operator that ran before holds its permissions, and tells what its pods are told; "-" when there are none.
	keeps []string
	told  string
	// condition is one that the group has meanwhile.
	condition string
}

func (w *world) groupNamed(short, name string) *operatorsv1.OperatorGroup {
	return &operatorsv1.OperatorGroup{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns(short), Name: name}}
}

// static has the group provide what it was told, and nothing more.
func static(apis string) func(*world) {
	return func(w *world) {
		g := w.groupNamed(ops, "group")
		w.Change(g, func() {
			g.Spec.StaticProvidedAPIs = true
			metav1.SetMetaDataAnnotation(&g.ObjectMeta, operatorsv1.ProvidedAPIsAnnotation, w.long(apis))
		})
	}
}

// edits are those by which the version brings what it should, of which the definition is made.
func (b *broken) edits(w *world) []func(*olmv1alpha1.ClusterServiceVersion) {
	w.Helper()

	if !b.brings {
		return nil
	}

	w.definition("things", "Thing")

	return []func(*olmv1alpha1.ClusterServiceVersion){w.owning("things", "Thing")}
}

// rival has an operator of another namespace serve the namespace c with what the operator brings, and the group come there.
func rival(w *world) {
	w.Helper()
	w.installsIn("b")
	w.groupIn("b", "rivals", `{"targetNamespaces":["c>"]}`)
	w.csvIn("b", "*", w.owning("things", "Thing"))
	w.reconcileGroupIn("b")
	w.regroup(`{"targetNamespaces":["a>","c>","ops>"]}`)
}

func failures() map[string]broken {
	healed := func(spec string) func(*world) { return func(w *world) { w.regroup(spec) } }

	return map[string]broken{
		"no group": {
			breaks: func(w *world) { w.Remove(w.groupNamed(ops, "group")) }, heals: func(w *world) { w.group("group", inA) },
			phase: "Failed NoOperatorGroup", says: []string{"csv in namespace with no operatorgroups"}, told: "a,ops",
		},
		"two groups": {
			breaks: func(w *world) { w.group("another", `{}`) }, heals: func(w *world) { w.Remove(w.groupNamed(ops, "another")) },
			phase: "Failed TooManyOperatorGroups", told: "a,ops",
			says:      []string{"csv created in namespace with multiple operatorgroups, can't pick one automatically"},
			condition: "MultipleOperatorGroup: True MultipleOperatorGroupsFound",
		},
		"a group for nobody": {
			breaks: healed(`{"selector":{"matchLabels":{"team":"green>"}}}`), heals: healed(inA), phase: "Failed NoTargetNamespaces",
			says: []string{"no namespace has the labels"}, told: "a,ops", condition: "TargetNamespacesFound: False NoTargetNamespaces",
		},
		"a group whose selector cannot be read": {
			breaks: healed(`{"selector":{"team":"red>","matchLabels":{"team":"red>"}}}`), heals: healed(inA),
			phase: "Failed NoTargetNamespaces", says: []string{"spec.selector selects nothing"}, told: "a,ops",
			condition: "TargetNamespacesFound: False NoTargetNamespaces",
		},
		"a group that is for too many": {
			breaks: healed(`{}`), heals: healed(inA), phase: "Failed UnsupportedOperatorGroup", says: []string{"AllNamespaces"},
			told: "a,ops",
		},
		"a version that is for fewer": {
			breaks: healed(`{}`), phase: "Failed UnsupportedOperatorGroup", says: []string{"AllNamespaces"}, told: "a,ops",
			heals: func(w *world) {
				w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) {
					c.Spec.InstallModes = []olmv1alpha1.InstallMode{{Type: olmv1alpha1.InstallModeTypeAllNamespaces, Supported: true}}
				})
			},
		},
		"an API that a static group does not list": {
			brings: true, breaks: static("Tea.v1." + apiGroup), heals: static("Tea.v1." + apiGroup + ",Thing.v1." + apiGroup),
			phase: "Failed CannotModifyStaticOperatorGroupProvidedAPIs", says: []string{"operatorgroup group", "Thing.v1.g.example.com"},
			told: "-",
		},
		"a static group that is none any more": {
			brings: true, breaks: static(""), phase: "Failed CannotModifyStaticOperatorGroupProvidedAPIs",
			says: []string{"Thing.v1.g.example.com"},
			told: "-", heals: healed(inA),
		},
		"an operator of another group that brings the same": {
			brings: true, breaks: rival, phase: "Failed InterOperatorGroupOwnerConflict", keeps: []string{"a", "ops"}, told: "a,ops",
			says: []string{"Thing.v1.g.example.com", "operatorgroup b/rivals"}, heals: healed(inA),
		},
		"and that goes": {
			brings: true, breaks: rival, phase: "Failed InterOperatorGroupOwnerConflict", keeps: []string{"a", "ops"}, told: "a,ops",
			says: []string{"operatorgroup b/rivals"}, heals: func(w *world) {
				w.regroup(inA)

				c := w.operatorCSV(podTemplate("op"))
				c.Namespace = w.ns("b")
				w.Remove(c)
				w.reconcileGroupIn("b")
			},
		},
	}
}

// TestFailuresHeal: why a ClusterServiceVersion is no sound member of one group, that nothing is installed then, what becomes of
// one that runs, and that both heal when the cause goes.
func TestFailuresHeal(t *testing.T) {
	t.Parallel()

	for name, tc := range failures() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.group("group", inA)

			edits := tc.edits(w)

			tc.breaks(w)
			w.csv("OwnNamespace SingleNamespace MultiNamespace", edits...)
			w.reconcileGroup()

			is(w, "phase", w.phase(), tc.phase)
			w.names("the message", w.message(), tc.says...)
			is(w, "where it has permissions", w.served(), []string{})
			is(w, "what the operator is told", w.told(), "-")
			w.saysOfGroup(tc.condition)

			w.groupAsks(tc.heals)
			w.reconcileGroup()
			is(w, "phase after", w.phase(), installing)

			if w.told() == "-" || len(w.served()) == 0 {
				t.Errorf("it is told %q and has permissions in %q", w.told(), w.served())
			}
		})

		t.Run(name+", of an operator that runs", func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.group("group", inA)
			w.csv("OwnNamespace SingleNamespace MultiNamespace", tc.edits(w)...)
			w.installed()
			is(w, "where it has permissions before", w.served(), []string{"a", "ops"})

			was := w.live("op")

			w.groupAsks(tc.breaks)
			w.reconcileGroup()

			is(w, "phase", w.phase(), tc.phase)
			w.names("the message", w.message(), tc.says...)
			is(w, "where it has permissions", strings.Join(w.served(), ","), strings.Join(tc.keeps, ","))
			is(w, "what the operator is told", w.told(), tc.told)
			w.saysOfGroup(tc.condition)

			w.groupAsks(tc.heals)
			w.reconcileGroup()

			if w.phase() != succeeded {
				is(w, "phase after", w.phase(), installing)
				w.rollOut()
				w.reconcileGroup()
			}

			is(w, "phase in the end", w.phase(), succeeded)
			is(w, "the Deployment is the one that it was", w.live("op").UID == was.UID, tc.told != "-")

			if len(w.served()) == 0 {
				t.Error("it has no permissions")
			}
		})
	}
}

// saysOfGroup fails the case unless the group has a condition, which is shown as "Type: True Reason".
func (w *world) saysOfGroup(want string) {
	w.Helper()

	kind, condition, found := strings.Cut(want, ": ")
	if !found {
		return
	}

	got, message := w.groupCondition(kind)
	is(w, kind, got, condition)

	if kind == operatorsv1.MultipleOperatorGroup {
		is(w, "what it says", message, "Multiple OperatorGroup found in the same namespace")

		other := meta.FindStatusCondition(w.statusOf(w.groupNamed(ops, "another")).Conditions, kind)
		is(w, "what the other group says", other != nil && other.Status == metav1.ConditionTrue, true)
	}
}

// TestWhatIsWrongIsToldAtAnyLength: what is quoted may be longer than the API server takes in a condition, or with the object in
// etcd. It is cut, so that the status is written.
func TestWhatIsWrongIsToldAtAnyLength(t *testing.T) {
	t.Parallel()

	long := strings.Repeat("x", 40_000)

	for name, tc := range map[string]struct {
		group   string
		then    func(w *world)
		says    string
		phase   string
		targets string
	}{
		"an account that the group names": {
			group: `{"targetNamespaces":["a>"],"serviceAccountName":"` + long + `"}`,
			says:  "OperatorGroupServiceAccount: True ServiceAccountNotFound", phase: "Failed InstallComponentFailed", targets: `["a"]`,
		},
		"a selector that cannot be read": {
			group: `{"selector":{"matchLabels":{"team":"red"},"` + long + `":"b"}}`,
			says:  "TargetNamespacesFound: False NoTargetNamespaces", phase: "Failed NoTargetNamespaces", targets: `[]`,
		},
		"a version that is none": {
			group: inA, then: func(w *world) { w.unreadable(strings.Repeat(long, 20) + ".0.0") },
			phase: "Failed InvalidSpec", targets: `["a" "ops"]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.group("group", tc.group)
			w.csv("*")

			if tc.then != nil {
				tc.then(w)
			}

			w.reconcileGroup()
			w.saysOfGroup(tc.says)

			csv := scope.NewOLM(scope.KindCSV)
			if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.ns(ops), Name: "op.v1"}, csv); err != nil {
				w.Fatal(err)
			}

			status, _, _ := unstructured.NestedMap(csv.Object, "status")
			is(w, "phase", fmt.Sprintf("%s %s", status["phase"], status["reason"]), tc.phase)
			is(w, "targets", w.targets("group"), tc.targets)
		})
	}
}

// TestRivals: who brings an API that somebody else brings already, where that keeps them out, and where it does not.
func TestRivals(t *testing.T) {
	t.Parallel()

	claimed := func(annotation bool, spec string) func(*world) {
		return func(w *world) {
			g := w.groupNamed("b", "rivals")
			g.Spec = decoded[operatorsv1.OperatorGroupSpec](w, spec)

			if annotation {
				g.Annotations = map[string]string{operatorsv1.ProvidedAPIsAnnotation: w.long("Thing.v1." + apiGroup)}
			}

			w.installsIn("b")
			w.Make(g)
		}
	}
	theirs := func(modes, spec string) func(*world) {
		return func(w *world) {
			claimed(false, spec)(w)
			w.csvIn("b", modes, w.owning("things", "Thing"))
		}
	}

	for name, tc := range map[string]struct {
		theirs       func(w *world)
		group, phase string
		// runs says that the operator of the others runs.
		runs bool
	}{
		"one that serves the same namespace": {
			theirs: theirs("*", `{"targetNamespaces":["a>"]}`), group: inA, phase: "Failed InterOperatorGroupOwnerConflict",
		},
		"one that serves the operator's own namespace": {
			theirs: theirs("*", `{"targetNamespaces":["ops>"]}`), group: inA, phase: "Failed InterOperatorGroupOwnerConflict",
		},
		"one that serves others": {theirs: theirs("*", `{"targetNamespaces":["c>"]}`), group: inA, phase: installing},
		"one in whose namespace the operator would work": {
			theirs: theirs("*", `{"targetNamespaces":["c>"]}`), group: `{"targetNamespaces":["b>","ops>"]}`,
			phase: "Failed InterOperatorGroupOwnerConflict",
		},
		"for all namespaces nobody else may bring it": {
			theirs: theirs("*", `{"targetNamespaces":["c>"]}`), group: `{}`, phase: "Failed InterOperatorGroupOwnerConflict",
		},
		"one that could not be installed keeps nobody out": {
			theirs: theirs("AllNamespaces", `{"targetNamespaces":["a>"]}`), group: inA, phase: installing,
		},
		"a group that only says so keeps nobody out": {
			theirs: claimed(true, `{"targetNamespaces":["a>"],"staticProvidedAPIs":true}`), group: inA, phase: installing,
		},
		"a group for all that only says so keeps nobody out": {
			theirs: claimed(true, `{"staticProvidedAPIs":true}`), group: inA, phase: installing,
		},
		"one whose account may not install it keeps nobody out": {
			theirs: func(w *world) {
				w.Make(testbed.Account(w.ns("b"), "scoped"))
				theirs("*", `{"targetNamespaces":["a>"],"serviceAccountName":"scoped"}`)(w)
			},
			group: inA, phase: installing,
		},
		"one that runs in its own namespace and was let into no other keeps nobody out": {
			theirs: runsAlone(`{"targetNamespaces":["a>"],"serviceAccountName":"scoped"}`), group: inA, phase: installing, runs: true,
		},
		"one that holds something else in the cluster, and was let into no other namespace, keeps nobody out": {
			theirs: runsAlone(`{"targetNamespaces":["a>"],"serviceAccountName":"scoped"}`, inCluster("get nodes")), group: inA,
			phase: installing, runs: true,
		},
		"one of all namespaces that holds something else in the cluster keeps nobody out": {
			theirs: runsAlone(`{"serviceAccountName":"scoped"}`, inCluster("get nodes")), group: inA, phase: installing, runs: true,
		},
		"one of all namespaces": {theirs: theirs("*", `{}`), group: inA, phase: "Failed InterOperatorGroupOwnerConflict"},
		"one of all namespaces that works by clusterPermissions": {
			theirs: func(w *world) {
				claimed(false, `{}`)(w)
				w.csvIn("b", "*", w.owning("things", "Thing"), func(c *olmv1alpha1.ClusterServiceVersion) {
					strategy := &c.Spec.InstallStrategy.StrategySpec
					strategy.Permissions = nil
					strategy.ClusterPermissions = []olmv1alpha1.StrategyDeploymentPermissions{{
						ServiceAccountName: "op", Rules: []rbacv1.PolicyRule{{
							APIGroups: []string{w.long(apiGroup)}, Resources: []string{"*"}, Verbs: []string{"get", "update"},
						}},
					}}
				})
			},
			group: inA, phase: "Failed InterOperatorGroupOwnerConflict",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.definition("things", "Thing")
			tc.theirs(w)
			w.reconcileGroupIn("b")
			is(w, "the group of the others has targets", len(w.statusOf(w.groupNamed("b", "rivals")).Namespaces) > 0, true)

			if tc.runs {
				key := client.ObjectKey{Namespace: w.ns("b"), Name: "op"}
				if err := w.client.Get(t.Context(), key, &appsv1.Deployment{}); err != nil {
					t.Fatalf("the operator of the others does not run: %v", err)
				}
			}

			w.group("group", tc.group)
			w.csv("*", w.owning("things", "Thing"))
			w.reconcileGroup()

			is(w, "phase", w.phase(), tc.phase)

			if tc.phase != installing {
				w.names("the message", w.message(), "Thing.v1.g.example.com", "operatorgroup b/rivals")
				is(w, "where it has permissions", w.served(), []string{})
				is(w, "writes of the others", w.reconcileGroupIn("b"), []string(nil))
			}
		})

		if tc.phase != installing {
			continue
		}

		t.Run(name+", nor takes down who runs", func(t *testing.T) {
			t.Parallel()

			w := grouped(t)
			w.definition("things", "Thing")
			w.group("group", tc.group)
			w.csv("*", w.owning("things", "Thing"))
			w.installed()

			tc.theirs(w)
			w.reconcileGroupIn("b")

			// Whatever the claim does to an operator, it does when that is looked at.
			w.recsv(func(c *olmv1alpha1.ClusterServiceVersion) { c.Spec.Description = "looked at" })
			is(w, "deletions", deletions(w.reconcileGroup()), []string{})
			is(w, "phase", w.phase(), succeeded)
			is(w, "where it has permissions", w.served(), []string{"a", "ops"})
		})
	}
}

// runsAlone has somebody claim the API elsewhere, whose account may install in its own namespace, and in the cluster what gets
// nodes, what needs no permissions in others.
func runsAlone(group string, edits ...func(*olmv1alpha1.ClusterServiceVersion)) func(*world) {
	return func(w *world) {
		w.installsIn("b")
		w.Make(testbed.Account(w.ns("b"), "scoped"))
		w.givesTo("b", "everything-b", w.everythingIn("b"))
		w.givesTo("b", "cluster-b", authority.Place{
			Rules: authority.Installing(everywhere), Handed: []rbacv1.PolicyRule{testbed.Rule("get nodes")},
		})

		g := w.groupNamed("b", "rivals")
		g.Spec = decoded[operatorsv1.OperatorGroupSpec](w, group)
		g.Annotations = map[string]string{operatorsv1.ProvidedAPIsAnnotation: w.long("Thing.v1." + apiGroup)}
		w.Make(g)
		w.csvIn("b", "*", append(edits, w.owning("things", "Thing"), func(c *olmv1alpha1.ClusterServiceVersion) {
			c.Spec.InstallStrategy.StrategySpec.Permissions = nil
			c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.ServiceAccountName = "default"
		})...)
	}
}

func (w *world) statusOf(g *operatorsv1.OperatorGroup) *operatorsv1.OperatorGroupStatus {
	w.Helper()

	if err := w.client.Get(w.Context(), client.ObjectKeyFromObject(g), g); err != nil {
		w.Fatal(err)
	}

	return &g.Status
}

// groupCondition shows a condition of the group, and its message.
func (w *world) groupCondition(kind string) (condition, message string) {
	w.Helper()

	c := meta.FindStatusCondition(w.statusOf(w.groupNamed(ops, "group")).Conditions, kind)
	if c == nil {
		return "-", ""
	}

	return shown(c), w.called(c.Message)
}
