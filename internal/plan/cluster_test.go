package plan_test

import (
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/projected"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// cluster is a cluster that exists only as facts.
func cluster() *facts.Facts {
	return &facts.Facts{
		Key: scope.NamespaceScopes.In("ops"), Now: now, AmbitNamespace: "ambit-system", RestartInterval: 10 * time.Second,
		Namespaces:   map[string]facts.Namespace{"ops": {}},
		ClusterRoles: map[string]facts.ClusterRole{"view": {}},
		OperatorNamespace: facts.OperatorNamespace{
			Roles: map[string][]rbacv1.PolicyRule{}, Bindings: map[string]facts.Binding{},
			Accounts: map[string]struct{}{}, ConfigMaps: map[string]facts.ConfigMap{},
		},
		Projected: map[string]map[facts.ProjectedKey]*facts.Projected{},
	}
}

// newNames are the names of a manager, which nobody knows beforehand.
func newNames() *projected.Names {
	names, err := projected.NewNames(make([]byte, projected.KeySize), time.Now())
	if err != nil {
		panic(err)
	}

	return names
}

func namespaces(f *facts.Facts, names ...string) {
	for _, n := range names {
		f.Namespaces[n] = facts.Namespace{}
	}
}

func newScope(name string, members ...string) scope.Scope {
	return scope.Scope{
		Owner: scope.Owner{Group: "operator.ibm.com", Kind: "NamespaceScope", Namespace: "ops", Name: name},
		Key:   scope.NamespaceScopes.In("ops"), WatchList: "namespace-scope", Created: now.Add(-time.Hour),
		Members:  scope.Members{Named: members},
		Accounts: scope.Accounts{OfOperands: true},
		Operands: labels.SelectorFromSet(labels.Set{"intent": "projected"}),
	}
}

// carryOut does to the facts what applying the plan does to a cluster, with every write succeeding.
func carryOut(f *facts.Facts, p *plan.Plan) {
	for i := range p.Scopes {
		for _, changes := range [][]plan.Change{p.Scopes[i].Revoke, p.Scopes[i].Grant, p.Scopes[i].Prune, p.Scopes[i].Retire} {
			for j := range changes {
				carryOutChange(f, &changes[j])
			}
		}
	}

	for i := range p.Orphans {
		carryOutChange(f, &p.Orphans[i])
	}

	for i := range p.Lists {
		carryOutList(f, &p.Lists[i])
	}

	for i := range p.Restarts {
		carryOutRestart(f, &p.Restarts[i])
	}
}

func carryOutChange(f *facts.Facts, c *plan.Change) {
	switch c.Action {
	case plan.Hold:
		return
	case plan.Delete:
		delete(f.Projected[c.Namespace], c.Key)

		return
	case plan.Empty:
		emptied := *f.Projected[c.Namespace][c.Key]
		emptied.Empty, emptied.Held = true, false
		f.Projected[c.Namespace][c.Key] = &emptied

		if emptied.Terminating {
			delete(f.Projected[c.Namespace], c.Key) // Nothing holds it any more.
		}

		return
	case plan.Create, plan.Update:
	}

	if f.Projected[c.Namespace] == nil {
		f.Projected[c.Namespace] = map[facts.ProjectedKey]*facts.Projected{}
	}

	o := c.Object()
	now := live(&o)

	// No write brings back what is about to go.
	if was, existed := f.Projected[c.Namespace][c.Key]; existed {
		now.Terminating, now.Held = was.Terminating, was.Held
	}

	f.Projected[c.Namespace][c.Key] = &now
	f.Granted = f.Now
}

// live is the record of an object that Ambit made.
func live(o *projected.Object) facts.Projected {
	namespace := ""
	if len(o.OwnerRefs) > 0 {
		namespace = o.OwnerRefs[0].Namespace
	}

	record := read.RecordOf(o, o.In(namespace), true)
	record.Version = 1

	return record
}

func carryOutList(f *facts.Facts, l *plan.ListPlan) {
	w := plan.ResolveList(l, nil, nil)
	cm := f.OperatorNamespace.ConfigMaps[l.Name]

	switch w.Action {
	case plan.ApplyList:
		cm.HasList, cm.List, cm.ListHash = true, w.Value, scope.ListHash(w.Value, w.Generation)
		cm.Created, cm.Since, cm.Applied, cm.Generation, cm.Before = w.Created, w.Since, f.Now, w.Generation, w.Before
		f.OperatorNamespace.ConfigMaps[l.Name] = cm
	case plan.ReleaseList:
		f.OperatorNamespace.ConfigMaps[l.Name] = facts.ConfigMap{OtherKeys: cm.OtherKeys}
	case plan.DeleteList:
		delete(f.OperatorNamespace.ConfigMaps, l.Name)
	case plan.KeepList, plan.BlockedList:
	}
}

func carryOutRestart(f *facts.Facts, r *plan.Restart) {
	for i := range f.OperatorNamespace.Workloads {
		if w := &f.OperatorNamespace.Workloads[i]; w.Kind == r.Workload.Kind && w.Name == r.Workload.Name {
			hash := w.ListHash
			w.Restarted, w.RestartWait = r.At, r.Wait

			if !r.TemplateStays {
				hash = ""
			}

			if len(r.Evict) == 0 {
				w.ListHash = plan.ResolveHash(r.Reads, nil)
			}

			if r.Last {
				w.Restarted, w.RestartWait, w.ListHash = time.Time{}, 0, hash
			}
		}
	}

	// The controller replaces the pods, some time later.
	for i := range f.OperatorNamespace.Pods {
		p := &f.OperatorNamespace.Pods[i]
		if p.Controller == r.Workload && r.Workload.Kind != "" && !r.TemplateStays || len(r.Evict) > 0 && p.PodRef == r.Evict[0] {
			p.Created, p.Began = f.Now.Add(time.Minute), f.Now.Add(time.Minute)
		}
	}
}
