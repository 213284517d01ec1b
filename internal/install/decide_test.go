package install

import (
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	olm "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/facts"
)

// effects are what a Verdict has happen: h holds, i installs, r removes, d deletes.
func effects(v *Verdict) string {
	var out strings.Builder

	for _, e := range []struct {
		is   bool
		word string
	}{{v.KeepRBAC, "h"}, {v.ApplyObjects, "i"}, {v.RemoveDeployments, "u"}, {v.DeleteCSV, "d"}} {
		if e.is {
			out.WriteString(e.word)
		}
	}

	return out.String()
}

type decision struct {
	reason   string
	snapshot *Snapshot
	phase    olm.ClusterServiceVersionPhase
	because  olm.ConditionReason
	effects  string
	message  string
}

// check decides about the first CSV of each world.
func check(t *testing.T, table map[string]decision) {
	t.Helper()

	for name, tc := range table {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			got := tc.snapshot.Decide(tc.snapshot.CSVs[0])
			if got.Phase != tc.phase || got.Reason != tc.because || effects(&got) != tc.effects ||
				!strings.Contains(got.Message, tc.message) {
				t.Errorf("%s: got %s (%s) with %q: %s; want %s (%s) with %q: %s", tc.reason,
					got.Phase, got.Reason, effects(&got), got.Message, tc.phase, tc.because, tc.effects, tc.message)
			}
		})
	}
}

// deploying gives the Deployment of a CSV another name.
func deploying(name string) func(*olm.ClusterServiceVersion) {
	return func(c *olm.ClusterServiceVersion) { c.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name = name }
}

func edited(w *Snapshot, edit func(*Snapshot)) *Snapshot {
	edit(w)

	return w
}

func TestDecideMembership(t *testing.T) {
	t.Parallel()

	const own, single, multi, all = olm.InstallModeTypeOwnNamespace, olm.InstallModeTypeSingleNamespace,
		olm.InstallModeTypeMultiNamespace, olm.InstallModeTypeAllNamespaces

	of := func(targets []string, modes ...olm.InstallModeType) *Snapshot {
		return snapshotOf(targets, member("op.v1", supporting(modes...)))
	}
	unsupported := func(reason string, w *Snapshot, message string) decision {
		return decision{reason, w, olm.CSVPhaseFailed, olm.CSVReasonUnsupportedOperatorGroup, "", message}
	}
	supported := func(reason string, w *Snapshot) decision {
		return decision{reason, w, olm.CSVPhaseInstallReady, olm.CSVReasonRequirementsMet, "hi", ""}
	}

	check(t, map[string]decision{
		"Own":           supported("its own namespace alone", of([]string{ownNamespace}, own)),
		"Single":        supported("one other namespace", of([]string{"a"}, single)),
		"Multi":         supported("others do not need OwnNamespace", of([]string{"a", "b"}, multi)),
		"MultiWithOwn":  supported("its own among others", of([]string{"a", ownNamespace}, multi, own)),
		"All":           supported("all", of([]string{""}, all)),
		"OwnMissing":    unsupported("single is not own", of([]string{ownNamespace}, single, multi, all), "watch own namespace"),
		"SingleMissing": unsupported("own is not single", of([]string{"a"}, own, multi, all), "watch one namespace"),
		"MultiMissing":  unsupported("single is not multi", of([]string{"a", "b"}, own, single, all), "watch 2 namespaces"),
		"MultiNeedsOwn": unsupported("its own namespace is among them", of([]string{"a", ownNamespace}, multi), "watch own namespace"),
		"AllMissing":    unsupported("multi is not all", of([]string{""}, own, single, multi), "watch all namespaces"),
		"NoModes": unsupported(
			"a mode that is left out is not supported", of([]string{""}), "AllNamespaces InstallModeType not supported",
		),
		"DuplicateModes": {
			"which one holds is not known", of([]string{"a"}, own, own), olm.CSVPhaseFailed, olm.CSVReasonInvalidInstallModes, "",
			"duplicates",
		},
		"NoGroup": {
			"nobody says where it may act", edited(of(nil, own), func(w *Snapshot) { w.Groups, w.Group = nil, nil }),
			olm.CSVPhaseFailed, olm.CSVReasonNoOperatorGroup, "", "csv in namespace with no operatorgroups",
		},
		"TwoGroups": {
			"which group holds is not known",
			edited(of(nil, own), func(w *Snapshot) { w.Groups, w.Group = append(w.Groups, &Group{Name: "other"}), nil }),
			olm.CSVPhaseFailed, olm.CSVReasonTooManyOperatorGroups, "", "csv created in namespace with multiple operatorgroups",
		},
		"NoTargets": {
			"a list of nobody is not one of everybody", edited(of(nil, all), func(w *Snapshot) { w.Problem = "nobody has the labels" }),
			olm.CSVPhaseFailed, olm.CSVReasonNoTargetNamespaces, "", "operatorgroups namespace selection: nobody has the labels",
		},
		"Strategy": {
			"nothing else is known", snapshotOf([]string{"a"}, member("op.v1", func(c *olm.ClusterServiceVersion) {
				c.Spec.InstallStrategy.StrategyName = "helm"
			})), olm.CSVPhaseFailed, olm.CSVReasonInvalidStrategy, "", `"helm"`,
		},
	})
}

func TestDecideWhatIsLeftOut(t *testing.T) {
	t.Parallel()

	leftOut := func(l facts.LeftOut, holding ...string) *Snapshot {
		w := snapshotOf([]string{"a"}, member("op.v1"))
		w.LeftOut, w.Holding = l, map[string]map[string]struct{}{}

		for _, ns := range holding {
			w.Holding["op.v1"] = map[string]struct{}{ns: {}}
		}

		return w
	}
	name := member("op.v1").Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Name
	its := facts.LeftOut{Words: "1 Deployments", Deployments: map[string]struct{}{name: {}}}
	running := leftOut(facts.LeftOut{Words: "1001 Deployments", More: true}, "a")
	running.running(running.CSVs[0], 1)

	check(t, map[string]decision{
		"Config": {
			"its Subscription is left out", func() *Snapshot {
				w := leftOut(facts.LeftOut{}, "a")
				w.running(w.CSVs[0], 1)
				_, config := LeftOutConfig(subscription(t, "config: {}"))
				w.Configs = map[string]*Config{w.CSVs[0].Name: config}

				return w
			}(), olm.CSVPhaseFailed, ReasonLimit, "h", "stays as it is",
		},
		"New": {
			"its Deployment is left out and it holds nothing", leftOut(its), olm.CSVPhaseFailed, ReasonLimit, "", "deployment " + name,
		},
		"Runs": {
			"what runs keeps its permissions", leftOut(its, "a"), olm.CSVPhaseFailed, ReasonLimit, "h", "remembered",
		},
		"Unknown": {
			"there may be more than names are known", leftOut(facts.LeftOut{Words: "more", More: true}), olm.CSVPhaseFailed, ReasonLimit,
			"", "remembered",
		},
		"Others": {
			"a Deployment of another name is none of its business",
			leftOut(facts.LeftOut{Words: "1 Deployments", Deployments: map[string]struct{}{"other": {}}}),
			olm.CSVPhaseInstallReady, olm.CSVReasonRequirementsMet, "hi", "",
		},
		"Known": {
			"one that is remembered is not left out", running, olm.CSVPhaseInstallReady, olm.CSVReasonRequirementsMet, "hi", "",
		},
		"Conflict": {
			"what may run is not taken down for an API that another brings",
			edited(leftOut(its, "a"), func(w *Snapshot) {
				w.Others = []Operator{{
					Namespace: "theirs", Group: "g", UID: "u", Created: midnight, APIs: Provided(w.CSVs[0]), Serves: []string{"a"},
				}}
			}), olm.CSVPhaseFailed, ReasonLimit, "h", "remembered",
		},
	})
}

func TestDecideRequirements(t *testing.T) {
	t.Parallel()

	with := func(edit func(*olm.ClusterServiceVersion)) *Snapshot {
		return snapshotOf([]string{"a"}, member("op.v1", edit))
	}
	pending := func(reason string, w *Snapshot, message string) decision {
		return decision{reason, w, olm.CSVPhasePending, olm.CSVReasonRequirementsNotMet, "", message}
	}
	needing := func(crd, version string) func(*olm.ClusterServiceVersion) {
		return func(c *olm.ClusterServiceVersion) {
			c.Spec.CustomResourceDefinitions = olm.CustomResourceDefinitions{
				Required: []olm.CRDDescription{{Name: crd, Version: version, Kind: "X"}},
			}
		}
	}
	kubernetes := func(least string) *Snapshot {
		return with(func(c *olm.ClusterServiceVersion) { c.Spec.MinKubeVersion = least })
	}
	met := func(reason string, w *Snapshot) decision {
		return decision{reason, w, olm.CSVPhaseInstallReady, olm.CSVReasonRequirementsMet, "hi", ""}
	}
	server := olm.APIServiceDescription{Name: "x", Group: "api.example.com", Version: "v1", Kind: "X"}
	running := snapshotOf([]string{"a"}, member("op.v1", needing("absents.example.com", "v1")))
	running.running(running.CSVs[0], 1)

	check(t, map[string]decision{
		"CRD": pending(
			"the definition is missing", with(needing("absents.example.com", "v1")), "CustomResourceDefinition absents.example.com (v1)",
		),
		"Version":    pending("its version is not served", with(needing(widgets, "v2")), widgets+" (v2)"),
		"Present":    met("a required definition is there", with(needing(widgets, "v1"))),
		"Newer":      pending("the server is older", kubernetes("1.37.0"), "minKubeVersion is 1.37.0, and the server is v1.36.2"),
		"Older":      met("the server is newer", kubernetes("1.20.0")),
		"Unreadable": pending("what cannot be read is not met", kubernetes("new"), `minKubeVersion "new" cannot be read`),
		"Native": pending("an API that nobody serves", with(func(c *olm.ClusterServiceVersion) {
			c.Spec.NativeAPIs = []metav1.GroupVersionKind{{Group: "x.example.com", Version: "v1", Kind: "X"}}
		}), "API x.example.com/v1 X"),
		"NativeServed": met("an API that the server has", with(func(c *olm.ClusterServiceVersion) {
			c.Spec.NativeAPIs = []metav1.GroupVersionKind{{Group: "served.example.com", Version: "v1", Kind: "X"}}
		})),
		"OwnAPIService": pending("nobody sets it up", with(func(c *olm.ClusterServiceVersion) {
			c.Spec.APIServiceDefinitions.Owned = []olm.APIServiceDescription{server}
		}), "APIService v1.api.example.com (Ambit sets up no APIServices, and waits until the API server serves it)"),
		"APIService": pending("nobody serves it", with(func(c *olm.ClusterServiceVersion) {
			c.Spec.APIServiceDefinitions.Required = []olm.APIServiceDescription{server}
		}), "APIService v1.api.example.com (the API server does not serve it)"),
		"RegisteredByHand": met("one that is served is used, whoever set it up", with(func(c *olm.ClusterServiceVersion) {
			served := server
			served.Group = "served.example.com"
			c.Spec.APIServiceDefinitions.Owned = []olm.APIServiceDescription{served}
		})),
		"LostLater": {
			"one that runs keeps what it holds", running, olm.CSVPhasePending, olm.CSVReasonRequirementsNotMet, "h", "absents.example.com",
		},
	})
}

func TestRequirementStatusNamesEverything(t *testing.T) {
	t.Parallel()

	csv := member("op.v1", func(c *olm.ClusterServiceVersion) {
		c.Spec.MinKubeVersion = "1.20.0"
		c.Spec.CustomResourceDefinitions.Required = []olm.CRDDescription{{Name: "absents.example.com", Version: "v1", Kind: "Absent"}}
	})
	want := map[string]olm.StatusReason{
		"op.v1": olm.RequirementStatusReasonPresent, widgets: olm.RequirementStatusReasonPresent,
		"absents.example.com": olm.RequirementStatusReasonNotPresent,
	}
	got := snapshotOf([]string{"a"}, csv).Decide(csv).Requirements

	for _, s := range got {
		if s.Status != want[s.Name] {
			t.Errorf("%s is %s, want %s", s.Name, s.Status, want[s.Name])
		}
	}

	if len(got) != len(want) {
		t.Errorf("%d requirements, want %d: %+v", len(got), len(want), got)
	}
}

func TestDecideReplacement(t *testing.T) {
	t.Parallel()

	older := func(edits ...func(*olm.ClusterServiceVersion)) *Snapshot {
		newer := member("op.v2", edits...)
		newer.Spec.Replaces = "op.v1"

		return snapshotOf([]string{"a"}, member("op.v1"), newer)
	}
	running := older()
	running.running(running.CSVs[0], 1)
	ran := func(c *olm.ClusterServiceVersion) { c.Status.Phase = olm.CSVPhaseSucceeded }
	taken := func(holding map[string]map[string]struct{}, edits ...func(*olm.ClusterServiceVersion)) *Snapshot {
		w := older(edits...)
		w.running(w.CSVs[1], 1)
		w.Holding = holding

		return w
	}
	held := map[string]map[string]struct{}{"op.v1": {"a": {}}}
	unready := taken(held, ran)
	unready.running(unready.CSVs[1], 0)
	answering := taken(nil)
	answering.Webhooks = map[string]facts.InstalledWebhooks{"hook": {
		Name: "hook", Owner: compile.CSVOwner(ownNamespace, "op.v1").Hash(),
	}}
	newest := snapshotOf([]string{"a"}, member("op.v2"), member("op.v1"))
	newest.CSVs[0].Spec.Replaces = "op.v1"

	check(t, map[string]decision{
		"Waits": {"the newer one does not run yet", older(), olm.CSVPhaseReplacing, olm.CSVReasonBeingReplaced, "", "op.v2"},
		"KeepsIts": {
			"what runs goes on", running, olm.CSVPhaseReplacing, olm.CSVReasonBeingReplaced, "h", "being replaced by csv: op.v2",
		},
		"KeepsThemWhileTaken": {
			"its pods run until those of the newer one do", taken(held), olm.CSVPhaseReplacing, olm.CSVReasonBeingReplaced, "h", "",
		},
		"KeepsWebhooksWhileTaken": {
			"its pods answer until those of the newer one do", answering, olm.CSVPhaseReplacing, olm.CSVReasonBeingReplaced, "h", "",
		},
		"NeverRan": {
			"it has no pods, and the Deployment is the newer one's", taken(nil), olm.CSVPhaseReplacing, olm.CSVReasonBeingReplaced, "",
			"",
		},
		"Goes": {"the newer one runs", taken(held, ran), olm.CSVPhaseDeleting, olm.CSVReasonReplaced, "hd", "has been replaced"},
		"OnlySaysSo": {
			"nothing of the newer one is there, whatever its status says", older(ran), olm.CSVPhaseReplacing,
			olm.CSVReasonBeingReplaced, "", "op.v2",
		},
		"StaysUntilReady": {
			"the newer one's Deployment is not ready, whatever its status says", unready, olm.CSVPhaseReplacing,
			olm.CSVReasonBeingReplaced, "h", "",
		},
		"GoesUnbegun": {"it never had anything", taken(nil, ran), olm.CSVPhaseDeleting, olm.CSVReasonReplaced, "d", ""},
		"TakesOver":   {"the newer one may own the same", newest, olm.CSVPhaseInstallReady, olm.CSVReasonRequirementsMet, "hi", ""},
		"ReplacesItself": {
			"nonsense replaces nothing", snapshotOf([]string{"a"}, member("op.v1", func(c *olm.ClusterServiceVersion) {
				c.Spec.Replaces = "op.v1"
			})), olm.CSVPhaseInstallReady, olm.CSVReasonRequirementsMet, "hi", "",
		},
	})
}

func TestDecideRival(t *testing.T) {
	t.Parallel()

	at := func(age time.Duration) func(*olm.ClusterServiceVersion) {
		return func(c *olm.ClusterServiceVersion) { c.CreationTimestamp = metav1.NewTime(midnight.Add(age)) }
	}
	loses := func(reason string, w *Snapshot) decision {
		return decision{reason, w, olm.CSVPhaseFailed, olm.CSVReasonOwnerConflict, "", "clusterserviceversion "}
	}
	wins := func(reason string, w *Snapshot) decision {
		return decision{reason, w, olm.CSVPhaseInstallReady, olm.CSVReasonRequirementsMet, "hi", ""}
	}
	own := []string{"a"}
	other := func(c *olm.ClusterServiceVersion) {
		c.Spec.CustomResourceDefinitions.Owned[0].Name = "gadgets.example.com"
	}

	check(t, map[string]decision{
		"Later":       loses("who comes later loses", snapshotOf(own, member("a", at(time.Second)), member("b"))),
		"Earlier":     wins("who was there first keeps it", snapshotOf(own, member("b"), member("a", at(time.Second)))),
		"SameTime":    loses("of two at once, the name decides", snapshotOf(own, member("b"), member("a"))),
		"SameTimeWin": wins("and for the other one, too", snapshotOf(own, member("a"), member("b"))),
		"Others":      wins("different definitions are no matter", snapshotOf(own, member("b"), member("a", other, deploying("a")))),
		"Runs": wins("who runs keeps it from who was there first", edited(
			snapshotOf(own, member("b", at(time.Second)), member("a")), func(w *Snapshot) { w.running(w.CSVs[0], 1) },
		)),
		"NoneReplaced": wins("who is being replaced keeps nothing", edited(
			snapshotOf(own, member("b", at(time.Second)), member("a"), member("c", other, deploying("c"))),
			func(w *Snapshot) { w.CSVs[2].Spec.Replaces = "a" },
		)),
		"Deployment": loses("a Deployment is of one version", snapshotOf(own, member("b", other), member("a"))),
		"DeploymentOwned": wins("of the one that has it", edited(
			snapshotOf(own, member("b", at(time.Second)), member("a", other)), func(w *Snapshot) { w.running(w.CSVs[0], 1) },
		)),
		"Service": {
			"a Service is of one version, too", snapshotOf(own, member("b", deploying("x.y"), answering("x.y")),
				member("a", other, deploying("x-y"), answering("x-y"))),
			olm.CSVPhaseFailed, olm.CSVReasonOwnerConflict, "", "clusterserviceversion a of this namespace has service x-y-service",
		},
		"ServiceOwned": wins("of the one that has it", edited(
			snapshotOf(own, member("b", deploying("x.y"), answering("x.y")), member("a", other, deploying("x-y"), answering("x-y"))),
			func(w *Snapshot) {
				w.Services = map[string]facts.Service{"x-y-service": {Made: true, Owners: "gone," + string(w.CSVs[0].UID)}}
			},
		)),
		"NoService": wins("who answers for nothing has no Service",
			snapshotOf(own, member("b", deploying("x.y")), member("a", other, deploying("x-y"), answering("x-y")))),
		"BothRun": {
			"of two that run, the later one goes on as it is", edited(
				snapshotOf(own, member("b", at(time.Second), deploying("b")), member("a")), func(w *Snapshot) {
					w.running(w.CSVs[0], 1)
					w.running(w.CSVs[1], 1)
				},
			), olm.CSVPhaseFailed, olm.CSVReasonOwnerConflict, "h", "clusterserviceversion a ",
		},
	})
}

// TestDecideConflict: an operator of another group that runs keeps a newcomer out of the namespaces that it serves, and nothing
// else does. An operator that runs goes on where it serves, whoever comes.
func TestDecideConflict(t *testing.T) {
	t.Parallel()

	const api = "Widget.v1.example.com"

	// other is an operator of the namespace theirs, whose group is as old as that of ops.
	other := func(serves []string, edits ...func(*Operator)) func(*Snapshot) {
		o := Operator{
			Namespace: "theirs", Group: "their-group", UID: "uid-theirs", Created: midnight, APIs: []string{api},
			Serves: slices.Sorted(slices.Values(append(serves, "theirs"))),
		}
		for _, edit := range edits {
			edit(&o)
		}

		return func(w *Snapshot) {
			// Of what it serves, the reader keeps what matters here.
			o.Serves = slices.DeleteFunc(o.Serves, func(name string) bool {
				return name != w.Namespace && !slices.Contains(w.Group.Targets, name) && !slices.Contains(w.Group.Targets, "")
			})
			w.Others = append(w.Others, o)
		}
	}
	everywhere := func(o *Operator) { o.Everywhere = true }
	of := func(targets []string, edits ...func(*Snapshot)) *Snapshot {
		w := snapshotOf(targets, member("op.v1"))
		for _, edit := range edits {
			edit(w)
		}

		return w
	}
	runs := func(held ...string) func(*Snapshot) {
		return func(w *Snapshot) {
			w.running(w.CSVs[0], 1)
			w.Holding = map[string]map[string]struct{}{"op.v1": {}}

			for _, name := range append(held, ownNamespace) {
				w.Holding["op.v1"][name] = struct{}{}
			}
		}
	}
	created := func(age time.Duration) func(*Snapshot) {
		return func(w *Snapshot) { w.Group.Created = midnight.Add(age) }
	}
	static := func(apis ...string) func(*Snapshot) {
		return func(w *Snapshot) { w.Group.Static, w.Group.Provided = true, apis }
	}
	told := func(reason, effects string, w *Snapshot) decision {
		return decision{
			reason, w, olm.CSVPhaseFailed, olm.CSVReasonInterOperatorGroupOwnerConflict, effects,
			"intersecting operatorgroups provide the same apis: " + api + " by operatorgroup theirs/their-group",
		}
	}
	sound := func(reason string, w *Snapshot) decision {
		return decision{reason, w, olm.CSVPhaseInstallReady, olm.CSVReasonRequirementsMet, "hi", ""}
	}
	a, b, all := []string{"a"}, []string{"b"}, []string{""}

	check(t, map[string]decision{
		"SameTarget": told("both serve a", "", of(a, other(a))),
		"Apart":      sound("they have no namespace in common", of(a, other(b))),
		"OtherAPI": sound(
			"they bring different APIs", of(a, other(a, func(o *Operator) { o.APIs = []string{"Gadget.v1.example.com"} })),
		),
		"IAmAll":        told("all namespaces are in common with every operator", "", of(all, other(a))),
		"OtherIsAll":    told("the same from the other side", "", of(a, other(nil, everywhere))),
		"MyOwn":         told("the other serves my namespace", "", of(a, other([]string{ownNamespace}))),
		"TheirOwn":      told("I serve theirs", "", of([]string{"theirs"}, other(b))),
		"Older":         told("age is no claim for who comes later", "", of(a, created(-time.Hour), other(a))),
		"RunsThere":     sound("who runs there goes on; the older of two is not told", of(a, created(-time.Hour), runs("a"), other(a))),
		"RunsYounger":   told("who runs goes on; the younger of two is told", "hi", of(a, created(time.Hour), runs("a"), other(a))),
		"RunsElsewhere": told("who runs elsewhere goes on there", "hi", of([]string{"a", "b"}, runs("b"), other(a))),
		"RunsAll":       told("for all of a sudden, it goes on where it was", "hi", of(all, runs("b"), other(a))),
		"Static": {
			"its list must not grow", of(a, static("Gadget.v1.example.com")),
			olm.CSVPhaseFailed, olm.CSVReasonCannotModifyStaticOperatorGroupProvidedAPIs, "u", "do not name all of " + api,
		},
		"StaticNamesIt": sound("the list names it", of(a, static(api))),
		"NoAPIs": sound("who brings nothing takes nothing from anybody", of(a, static(), other(a), func(w *Snapshot) {
			w.CSVs[0].Spec.CustomResourceDefinitions.Owned = nil
		})),
	})

	for reason, tc := range map[string]struct {
		snapshot          *Snapshot
		targets, withheld []string
	}{
		"it gets all of its targets":                      {of(a, runs("a", "b"), created(time.Hour), other(a)), nil, nil},
		"it gets the others":                              {of([]string{"a", "b"}, runs("b"), other(a)), b, a},
		"it gets none, which is not all":                  {of(a, runs("b"), other(a)), []string{}, a},
		"it keeps where it was, for a group that grew":    {of(all, runs("b"), other(a)), []string{"b", ownNamespace}, all},
		"it gets none of theirs, which is for everything": {of(a, runs(), other(nil, everywhere)), []string{}, a},
	} {
		got := tc.snapshot.Decide(tc.snapshot.CSVs[0])
		if !slices.Equal(got.Targets, tc.targets) || (got.Targets == nil) != (tc.targets == nil) ||
			!slices.Equal(got.Withheld, tc.withheld) {
			t.Errorf("%s: got %q without %q, want %q without %q", reason, got.Targets, got.Withheld, tc.targets, tc.withheld)
		}
	}
}

// TestConflictOfVersions: a version that replaces one that runs takes its place, wherever others have come meanwhile.
func TestConflictOfVersions(t *testing.T) {
	t.Parallel()

	w := snapshotOf([]string{"a"}, member("op.v2"), member("op.v1"))
	w.CSVs[0].Spec.Replaces = "op.v1"
	w.running(w.CSVs[1], 1)
	w.Holding = map[string]map[string]struct{}{"op.v1": {"a": {}}}
	w.Group.Created = midnight.Add(-time.Hour)
	w.Others = []Operator{{
		Namespace: "theirs", Group: "g", UID: "u", Created: midnight, APIs: Provided(w.CSVs[0]), Serves: []string{"a"},
	}}

	if v := w.Decide(w.CSVs[0]); v.Phase != olm.CSVPhaseInstallReady || !v.ApplyObjects {
		t.Errorf("it is kept out: %+v", v)
	}
}

func TestFinish(t *testing.T) {
	t.Parallel()

	status := func(edit func(*appsv1.Deployment)) *Snapshot {
		w := snapshotOf([]string{"a"}, member("op.v1"))
		edit(w.running(w.CSVs[0], 1))

		return w
	}

	for name, tc := range map[string]struct {
		reason   string
		snapshot *Snapshot
		refusal  string
		phase    olm.ClusterServiceVersionPhase
		because  olm.ConditionReason
		message  string
	}{
		"Runs": {
			"everything runs", status(func(*appsv1.Deployment) {}), "", olm.CSVPhaseSucceeded, olm.CSVReasonInstallSuccessful,
			"install strategy completed with no errors",
		},
		"Refused": {
			"something was refused", status(func(*appsv1.Deployment) {}), "no", olm.CSVPhaseFailed, olm.CSVReasonComponentFailed,
			"install strategy failed: no",
		},
		"Absent": {
			"it was not written yet", snapshotOf([]string{"a"}, member("op.v1")), "", olm.CSVPhaseInstalling, olm.CSVReasonWaiting,
			"it does not exist",
		},
		"Unseen": {
			"nobody looked at it yet", status(func(d *appsv1.Deployment) { d.Generation = 2 }), "", olm.CSVPhaseInstalling,
			olm.CSVReasonWaiting, "observed",
		},
		"Updating": {
			"a pod is of the old kind", status(func(d *appsv1.Deployment) { d.Status.UpdatedReplicas = 0 }), "", olm.CSVPhaseInstalling,
			olm.CSVReasonWaiting, "0 of 1 updated",
		},
		"Ending": {
			"the pod that is available is of the old kind", status(func(d *appsv1.Deployment) { d.Status.Replicas = 2 }), "",
			olm.CSVPhaseInstalling, olm.CSVReasonWaiting, "1 replicas of before have yet to end",
		},
		"Starting": {
			"no pod is ready", status(func(d *appsv1.Deployment) { d.Status.AvailableReplicas = 0 }), "", olm.CSVPhaseInstalling,
			olm.CSVReasonWaiting, "0 of 1 replicas",
		},
		"None": {
			"none are asked for",
			status(func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)); d.Status = appsv1.DeploymentStatus{} }), "",
			olm.CSVPhaseSucceeded, olm.CSVReasonInstallSuccessful, "",
		},
		"Late": {"it took too long", status(func(d *appsv1.Deployment) {
			d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Reason: "ProgressDeadlineExceeded"}}
		}), "", olm.CSVPhaseFailed, olm.CSVReasonComponentFailed, "not ready before timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			csv := tc.snapshot.CSVs[0]
			if v := tc.snapshot.Finish(csv, tc.snapshot.Decide(csv), tc.refusal); v.Phase != tc.phase || v.Reason != tc.because ||
				!strings.Contains(v.Message, tc.message) {
				t.Errorf("%s: got %s (%s): %s", tc.reason, v.Phase, v.Reason, v.Message)
			}
		})
	}

	w := snapshotOf(nil, member("op.v1"))
	if before := w.Decide(w.CSVs[0]); w.Finish(w.CSVs[0], before, "refused").Reason != before.Reason {
		t.Error("what was not to be installed is told of its refusal")
	}
}

// TestMayChange: who acts on an API holds more than to look at it, and in its group.
func TestMayChange(t *testing.T) {
	t.Parallel()

	rule := func(group, verb string) []rbacv1.PolicyRule {
		return []rbacv1.PolicyRule{{APIGroups: []string{group}, Resources: []string{"things"}, Verbs: []string{"get", verb}}}
	}

	for name, tc := range map[string]struct {
		rules []rbacv1.PolicyRule
		want  bool
	}{
		"its group":           {rule("example.com", "update"), true},
		"all groups":          {rule("*", "patch"), true},
		"all verbs":           {rule("example.com", "*"), true},
		"only to look at it":  {rule("example.com", "list"), false},
		"another group":       {rule("com", "update"), false},
		"the core group":      {rule("", "update"), false},
		"no rule":             {nil, false},
		"no object of an API": {[]rbacv1.PolicyRule{{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}}}, false},
	} {
		if got := MayChange(tc.rules, []string{"Thing.v1.example.com"}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
