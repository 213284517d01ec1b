package plan_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/test/harness/plantest"
)

// reader is a Deployment with one pod that began well before the list was written.
func reader(f *facts.Facts) (*facts.Workload, *facts.Pod) {
	template := facts.Template{
		Labels: labels.Set{"intent": "projected"}, Account: "default", Reads: []string{"namespace-scope"},
	}
	long := facts.Birth{Created: now.Add(-time.Hour)}
	f.OperatorNamespace.Workloads = []facts.Workload{{Kind: facts.Deployment, Name: "w", Template: template, Birth: long}}
	f.OperatorNamespace.Pods = []facts.Pod{{
		PodRef: facts.PodRef{Name: "p", UID: "u"}, Template: template, Birth: long, Began: now.Add(-time.Hour),
		Controller: facts.WorkloadRef{Kind: facts.Deployment, Name: "w"},
	}}

	return &f.OperatorNamespace.Workloads[0], &f.OperatorNamespace.Pods[0]
}

const listVersion = 100

func TestRestart(t *testing.T) {
	t.Parallel()

	current := scope.ListHash("ops", 0)

	for name, tc := range map[string]struct {
		reason string
		change func(*facts.Facts, *facts.Workload, *facts.Pod)
		want   string
		again  time.Duration
	}{
		"old reader": {"it read a list that is gone", func(*facts.Facts, *facts.Workload, *facts.Pod) {}, "Deployment w", 0},
		"restarted already": {
			"its template bears the hash of the list",
			func(_ *facts.Facts, w *facts.Workload, _ *facts.Pod) { w.ListHash = scope.ListHash("ops", 0) }, "", 0,
		},
		"list changed and changed back": {
			"its pod may have begun with the list in between",
			func(_ *facts.Facts, w *facts.Workload, _ *facts.Pod) {
				w.ListHash = scope.ListHash("ops", 5)
			}, "Deployment w", 0,
		},
		"changed and changed back in one second": {
			"the generation of the list tells",
			func(f *facts.Facts, w *facts.Workload, _ *facts.Pod) {
				w.ListHash = scope.ListHash("ops", 0)
				cm := f.OperatorNamespace.ConfigMaps["namespace-scope"]
				cm.Generation, cm.ListHash = 2, scope.ListHash("ops", 2)
				f.OperatorNamespace.ConfigMaps["namespace-scope"] = cm
			}, "Deployment w", 0,
		},
		"restarted for another list": {
			"the list has changed again",
			func(_ *facts.Facts, w *facts.Workload, _ *facts.Pod) { w.ListHash = "other" }, "Deployment w", 0,
		},
		"reads something else": {
			"it does not read this ConfigMap",
			func(_ *facts.Facts, w *facts.Workload, p *facts.Pod) {
				w.Template.Reads, p.Reads = []string{"x"}, []string{"x"}
			}, "", 0,
		},
		"no operand": {
			"it does not carry restartLabels",
			func(_ *facts.Facts, w *facts.Workload, p *facts.Pod) { w.Template.Labels, p.Labels = nil, nil }, "", 0,
		},
		"opted out": {"its owner said so", func(_ *facts.Facts, w *facts.Workload, _ *facts.Pod) { w.RestartDisabled = true }, "", 0},
		"job":       {"Jobs are not restarted", func(_ *facts.Facts, w *facts.Workload, _ *facts.Pod) { w.Kind = facts.Job }, "", 0},
		"began later": {
			"its pod was made after the list was written",
			func(_ *facts.Facts, _ *facts.Workload, p *facts.Pod) { p.Created = now.Add(time.Second) }, "", 0,
		},
		"began in the same second, later": {
			"the resource versions tell the order",
			func(_ *facts.Facts, _ *facts.Workload, p *facts.Pod) { p.Created, p.BornAt = now, listVersion+1 }, "", 0,
		},
		"began in the same second, earlier": {
			"the resource versions tell the order",
			func(_ *facts.Facts, _ *facts.Workload, p *facts.Pod) {
				p.Created, p.BornAt, p.Began = now, listVersion-1, now
			},
			"Deployment w", 0,
		},
		"began in the same second, unseen": {
			"a restart too many is better than one too few",
			func(_ *facts.Facts, _ *facts.Workload, p *facts.Pod) { p.Created, p.Began = now, now }, "Deployment w", 0,
		},
		"began in the same second, long ago, unseen": {
			"a manager that begins anew restarts nothing that it finds at peace",
			func(f *facts.Facts, _ *facts.Workload, p *facts.Pod) {
				p.Created, p.Began, f.Now = now, now, now.Add(time.Hour)
			}, "", 0,
		},
		"began in the same second, list repaired": {
			"a repair restarts nobody who may have begun with the list",
			func(f *facts.Facts, _ *facts.Workload, p *facts.Pod) {
				p.Created, p.Began, p.BornAt = now, now, listVersion-1
				cm := f.OperatorNamespace.ConfigMaps["namespace-scope"]
				cm.Since = now
				f.OperatorNamespace.ConfigMaps["namespace-scope"] = cm
			}, "", 0,
		},
		"began later, and the list is of a time to come": {
			"whoever may edit the ConfigMap can write any time into it; pods would be evicted as soon as they begin, until then",
			func(f *facts.Facts, w *facts.Workload, p *facts.Pod) {
				w.OwnedByOLM, f.Now = true, now.Add(time.Minute)
				p.Created, p.Began = now.Add(3*time.Second), now.Add(4*time.Second)
				cm := f.OperatorNamespace.ConfigMaps["namespace-scope"]
				cm.Since = now.AddDate(73, 0, 0)
				f.OperatorNamespace.ConfigMaps["namespace-scope"] = cm
			}, "", 0,
		},
		"waited for the ConfigMap": {
			"its container has not begun and will read the new list",
			func(_ *facts.Facts, _ *facts.Workload, p *facts.Pod) { p.Began = time.Time{} }, "", 0,
		},
		"container began later": {
			"an old pod whose container began well after the list read the new list",
			func(_ *facts.Facts, _ *facts.Workload, p *facts.Pod) { p.Began = now.Add(3 * time.Second) }, "", 0,
		},
		"container began a moment later": {
			"clocks of nodes differ from the API server's",
			func(_ *facts.Facts, _ *facts.Workload, p *facts.Pod) { p.Began = now.Add(time.Second) }, "Deployment w", 0,
		},
		"finished": {"it reads nothing any more", func(_ *facts.Facts, _ *facts.Workload, p *facts.Pod) { p.Ending = true }, "", 0},
		"scaled to zero": {
			"there is nothing to restart",
			func(f *facts.Facts, w *facts.Workload, _ *facts.Pod) { w.Idle, f.OperatorNamespace.Pods = true, nil }, "", 0,
		},
		"no pod seen": {
			"a workload that is older than the list and whose pods are not seen is annotated",
			func(f *facts.Facts, _ *facts.Workload, _ *facts.Pod) { f.OperatorNamespace.Pods = nil }, "Deployment w", 0,
		},
		"no pod yet": {
			"a new workload gets a moment to show its first pod",
			func(f *facts.Facts, w *facts.Workload, _ *facts.Pod) { f.OperatorNamespace.Pods, w.Created = nil, now }, "", time.Second,
		},
		"restarted lately": {
			"at most one restart falls into an interval",
			func(_ *facts.Facts, w *facts.Workload, _ *facts.Pod) { w.Restarted = now.Add(-4 * time.Second) }, "", 6 * time.Second,
		},
		"interval is over": {
			"the restart that was put off happens",
			func(_ *facts.Facts, w *facts.Workload, _ *facts.Pod) { w.Restarted = now.Add(-10 * time.Second) }, "Deployment w", 0,
		},
		"OLM's": {
			"OLM would undo a change of the template; its pods are evicted",
			func(_ *facts.Facts, w *facts.Workload, _ *facts.Pod) { w.OwnedByOLM = true }, "Deployment w evicting p/u", 0,
		},
		"pods that nobody replaces": {
			"a change of its template would replace no pod, and its mark says nothing about them",
			func(_ *facts.Facts, w *facts.Workload, _ *facts.Pod) {
				w.KeepsPods, w.ListHash = true, scope.ListHash("ops", 0)
			}, "Deployment w evicting p/u", 0,
		},
		"OLM's pod": {
			"the mark on the pod is enough",
			func(_ *facts.Facts, _ *facts.Workload, p *facts.Pod) { p.OwnedByOLM = true }, "Deployment w evicting p/u", 0,
		},
		"ReplicaSet": {
			"a change of its template would replace no pod",
			func(_ *facts.Facts, w *facts.Workload, p *facts.Pod) {
				w.Kind, p.Controller.Kind = facts.ReplicaSet, facts.ReplicaSet
			},
			"ReplicaSet w evicting p/u", 0,
		},
		"ReplicaSet without pods": {
			"nobody could be evicted, and what comes reads the list",
			func(f *facts.Facts, w *facts.Workload, _ *facts.Pod) {
				w.Kind, f.OperatorNamespace.Pods = facts.ReplicaSet, nil
			}, "", 0,
		},
		"ReplicaSet that began lately": {
			"its youngest pod tells when it last began",
			func(f *facts.Facts, w *facts.Workload, p *facts.Pod) {
				w.Kind, p.Controller.Kind = facts.ReplicaSet, facts.ReplicaSet
				young := *p
				young.PodRef, young.Created = facts.PodRef{Name: "young"}, now.Add(-4*time.Second)
				f.OperatorNamespace.Pods = append(f.OperatorNamespace.Pods, young)
			}, "", 6 * time.Second,
		},
		"ReplicaSet that its Deployment left behind": {
			"its pods still look like those of the Deployment",
			func(_ *facts.Facts, w *facts.Workload, p *facts.Pod) {
				w.Kind, w.Name = facts.ReplicaSet, "w-1"
				w.Template.Labels = labels.Set{"intent": "projected", "pod-template-hash": "1"}
				p.Labels = w.Template.Labels
			}, "ReplicaSet w-1 evicting p/u", 0,
		},
		"bare pod": {
			"a pod without a controller is evicted",
			func(f *facts.Facts, _ *facts.Workload, p *facts.Pod) {
				f.OperatorNamespace.Workloads, p.Controller = nil, facts.WorkloadRef{}
			},
			"Pod p evicting p/u", 0,
		},
		"somebody else's pod": {
			"pods of other controllers are theirs",
			func(f *facts.Facts, _ *facts.Workload, p *facts.Pod) {
				f.OperatorNamespace.Workloads, p.Controller.Kind = nil, "Rollout"
			}, "", 0,
		},
		"operator namespace is going": {
			"nothing is restarted in a namespace that is being deleted",
			func(f *facts.Facts, _ *facts.Workload, _ *facts.Pod) { f.OperatorNamespace.Terminating = true }, "", 0,
		},
		"restarted by a clock that is ahead": {
			"it waits for its turn",
			func(_ *facts.Facts, w *facts.Workload, _ *facts.Pod) { w.Restarted = now.Add(time.Minute) }, "", 70 * time.Second,
		},
		"restarted in the far future": {
			"whoever may edit a workload can write any time into it, and nobody waits for that",
			func(_ *facts.Facts, w *facts.Workload, _ *facts.Pod) {
				w.Restarted, w.RestartWait = now.AddDate(73, 0, 0), time.Hour
			}, "Deployment w", 0,
		},
		"list not settled": {
			"a list that has to be written first is not worth a restart",
			func(f *facts.Facts, _ *facts.Workload, _ *facts.Pod) {
				f.OperatorNamespace.ConfigMaps["namespace-scope"] = facts.ConfigMap{HasList: true, List: "x", ListHash: "x", Applied: now}
			}, "", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := cluster()
			f.OperatorNamespace.ConfigMaps["namespace-scope"] = facts.ConfigMap{
				HasList: true, List: "ops", ListHash: current, Applied: now, ListVersion: listVersion,
			}
			w, p := reader(f)
			tc.change(f, w, p)

			got := plan.New([]scope.Scope{newScope("s")}, f)
			if s := restarts(&got); s != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, s, tc.want)
			}

			if tc.again == 0 && !got.Again.IsZero() || tc.again != 0 && !got.Again.Equal(now.Add(tc.again)) {
				t.Errorf("%s: plans again at %s", tc.reason, got.Again)
			}
		})
	}
}

func restarts(p *plan.Plan) string {
	var s strings.Builder

	for i := range p.Restarts {
		s.WriteString(p.Restarts[i].Reader())

		for _, pod := range p.Restarts[i].Evict {
			s.WriteString(" evicting " + pod.Name + "/" + string(pod.UID))
		}
	}

	return s.String()
}

func TestLastScopeRestartsTheReadersOfItsList(t *testing.T) {
	t.Parallel()

	f := cluster()
	w, pod := reader(f)
	w.ListHash, w.Restarted, pod.ListHash = "earlier", now.Add(-time.Hour), "earlier"
	s := newScope("s")
	s.Deleted = now

	// The ConfigMap is gone already; the scope is held by its finalizer.
	p := plan.New([]scope.Scope{s}, f)
	if restarts(&p) != "Deployment w" || !p.Restarts[0].Last || p.Restarts[0].TemplateStays {
		t.Errorf("a reader of a list that is gone restarts: got %+v", p.Restarts)
	}

	// The write took all marks off. The pod is not replaced yet.
	w.ListHash, w.Restarted = "", time.Time{}

	if p := plan.New([]scope.Scope{s}, f); !plantest.IsEmpty(&p) {
		t.Errorf("it restarts once: got %q", restarts(&p))
	}
}

// TestMarksOfRestartsGoWithTheLastScope holds that they cost no restart of their own, and that none comes to stay.
func TestMarksOfRestartsGoWithTheLastScope(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		reason string
		change func(*facts.Facts, *facts.Workload, *facts.Pod)
		want   string
		quiet  bool
		stays  bool
		again  time.Time
	}{
		"no mark yet": {
			"a mark on the template would stay", func(*facts.Facts, *facts.Workload, *facts.Pod) {},
			"Deployment w evicting p/u", false, true, time.Time{},
		},
		"a moment ago": {
			"it waits for its turn, and no longer than the interval",
			func(_ *facts.Facts, w *facts.Workload, _ *facts.Pod) {
				w.ListHash, w.Restarted, w.RestartWait = "x", now.Add(-time.Second), time.Hour
			}, "", false, false, now.Add(9 * time.Second),
		},
		"in the far future": {
			"nobody waits for that, and no deleted scope does",
			func(_ *facts.Facts, w *facts.Workload, _ *facts.Pod) {
				w.ListHash, w.Restarted = "x", now.AddDate(73, 0, 0)
			},
			"Deployment w", false, false, time.Time{},
		},
		"began anew by itself": {
			"what is left goes where that restarts nobody",
			func(_ *facts.Facts, w *facts.Workload, p *facts.Pod) {
				w.ListHash, w.Restarted, p.Created = "x", now.Add(-time.Hour), now.Add(time.Second)
			}, "Deployment w", true, true, time.Time{},
		},
		"nothing left but the mark of a template whose pods began anew": {
			"it stays, and nobody waits for it to go",
			func(_ *facts.Facts, w *facts.Workload, p *facts.Pod) {
				w.ListHash, p.Created = "x", now.Add(time.Second)
			}, "", false, false, time.Time{},
		},
		"nothing left but the mark of a template whose pods have not begun": {
			"they will not read the list that is gone",
			func(_ *facts.Facts, w *facts.Workload, p *facts.Pod) {
				w.ListHash, p.Began = "x", time.Time{}
			}, "", false, false, time.Time{},
		},
		"scaled to zero": {
			"a template without pods can be written",
			func(f *facts.Facts, w *facts.Workload, _ *facts.Pod) {
				w.ListHash, w.Idle, f.OperatorNamespace.Pods = "x", true, nil
			}, "Deployment w", true, false, time.Time{},
		},
		"OLM's": {
			"OLM would undo a change of the template",
			func(_ *facts.Facts, w *facts.Workload, _ *facts.Pod) {
				w.OwnedByOLM, w.Restarted = true, now.Add(-time.Hour)
			}, "Deployment w evicting p/u", false, true, time.Time{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := cluster()
			w, pod := reader(f)
			tc.change(f, w, pod)

			s := newScope("s")
			s.Deleted = now
			p := plan.New([]scope.Scope{s}, f)

			if got := restarts(&p); got != tc.want {
				t.Fatalf("%s: got %q, want %q", tc.reason, got, tc.want)
			}

			if !p.Again.Equal(tc.again) {
				t.Errorf("%s: again at %s, want %s", tc.reason, p.Again, tc.again)
			}

			if tc.want == "" {
				return
			}

			if r := p.Restarts[0]; !r.Last || r.Quiet != tc.quiet || r.TemplateStays != tc.stays {
				t.Errorf("%s: got %+v", tc.reason, r)
			}
		})
	}
}

// TestReaderOfTwoLists: it restarts once for both, and none of them restarts it because of the other.
func TestReaderOfTwoLists(t *testing.T) {
	t.Parallel()

	f := cluster()
	w, pod := reader(f)
	w.Template.Reads = []string{"namespace-scope", "second"}
	pod.Template = w.Template

	second := newScope("second")
	second.WatchList = "second"
	scopes := []scope.Scope{newScope("s"), second}

	for _, name := range w.Template.Reads {
		f.OperatorNamespace.ConfigMaps[name] = facts.ConfigMap{
			HasList: true, List: "ops", ListHash: scope.ListHash("ops", 0), Applied: now, ListVersion: listVersion,
		}
	}

	p := plan.New(scopes, f)
	if restarts(&p) != "Deployment w" || len(p.Restarts[0].Scopes) != 2 {
		t.Fatalf("got %q for %v", restarts(&p), p.Restarts)
	}

	// A DaemonSet without nodes has no pod that could tell when it began.
	w.ListHash, f.OperatorNamespace.Pods = plan.ResolveHash(p.Restarts[0].Reads, nil), nil

	if p := plan.New(scopes, f); !plantest.IsEmpty(&p) {
		t.Errorf("it restarts once: got %q", restarts(&p))
	}

	f.OperatorNamespace.Pods = []facts.Pod{*pod}

	for name, change := range map[string]func(*facts.Workload, *facts.Pod){
		"OLM's Deployment":  func(w *facts.Workload, _ *facts.Pod) { w.OwnedByOLM = true },
		"OLM's mark on it":  func(_ *facts.Workload, p *facts.Pod) { p.OwnedByOLM = true },
		"a pod of no other": func(_ *facts.Workload, p *facts.Pod) { p.Controller = facts.WorkloadRef{} },
	} {
		f := *f
		w, pod := *w, *pod
		w.ListHash = ""
		change(&w, &pod)
		f.OperatorNamespace.Workloads, f.OperatorNamespace.Pods = []facts.Workload{w}, []facts.Pod{pod}

		if pod.Controller.Kind == "" {
			f.OperatorNamespace.Workloads = nil
		}

		if p := plan.New(scopes, &f); len(p.Restarts) != 1 || len(p.Restarts[0].Evict) != 1 {
			t.Errorf("%s: got %+v", name, p.Restarts)
		}
	}
}

// TestScopeWaitsForItsOwnReaders holds that a deleted scope stays for restarts of the readers of its own list, and for no others.
func TestScopeWaitsForItsOwnReaders(t *testing.T) {
	t.Parallel()

	for name, tc := range map[string]struct {
		list string
		want bool
	}{
		"its own list":        {"namespace-scope", true},
		"the list of another": {"other", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			f := cluster()
			f.OperatorNamespace.ConfigMaps["namespace-scope"] = facts.ConfigMap{
				HasList: true, List: "ops", ListHash: scope.ListHash("ops", 0), Applied: now, ListVersion: listVersion,
			}
			w, _ := reader(f)
			w.Restarted = now.Add(-time.Second)

			stays, goes := newScope("s"), newScope("t")
			goes.Deleted, goes.WatchList = now, tc.list

			p := plan.New([]scope.Scope{stays, goes}, f)
			if left, gone := &p.Scopes[0], &p.Scopes[1]; p.Again.IsZero() || !left.Waits || gone.Waits != tc.want {
				t.Errorf("again %s, waits %t and %t, want %t for the deleted one", p.Again, left.Waits, gone.Waits, tc.want)
			}
		})
	}
}
