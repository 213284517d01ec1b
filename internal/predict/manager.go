// Package predict says what the manager would do for scopes: its own reconcilers serve them in a cluster in memory, until nothing
// is left to do. What is said comes from what the applier returned.
package predict

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	operatorsv1alpha1 "github.com/ambit-k8s/ambit/api/operators/v1alpha1"
	"github.com/ambit-k8s/ambit/internal/collect"
	"github.com/ambit-k8s/ambit/internal/compile"
	"github.com/ambit-k8s/ambit/internal/controllers/namespacescope"
	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/read"
	"github.com/ambit-k8s/ambit/internal/scope"
	"github.com/ambit-k8s/ambit/internal/simulation"
	"github.com/ambit-k8s/ambit/internal/writer"
)

// Manager is how the manager of the cluster runs.
type Manager struct {
	// Namespace is its own; labels never select it.
	Namespace string
	// Account is the service account of that namespace that it runs as; empty when that is not known.
	Account string
	// DefaultDelegate is the service account of scopes that name none; NeedDelegate refuses those that have neither.
	DefaultDelegate string
	NeedDelegate    bool
	// Namespaces are the namespaces that it serves; empty means all.
	Namespaces []string
	// RestartInterval is the least time between two restarts of one workload.
	RestartInterval time.Duration
	// FinishGrace is how long a namespace that left keeps what it has while something waits there.
	FinishGrace time.Duration
	// FollowGrace is how long permissions stay in a namespace that left, for readers that follow the list.
	FollowGrace time.Duration
	// OperatorGroups says when OLM's kinds are served, and OLMNamespaces where OLM's own controllers would run, as flags do.
	OperatorGroups string
	OLMNamespaces  []string
}

// Scope is what a resource means to the manager, and the resource.
type Scope struct {
	scope.Scope

	Object client.Object
	// Problems say which parts of a template get nothing.
	Problems []string
	// Template is what an instance refers to, and NoTemplate says that there is none.
	Template   string
	NoTemplate bool
}

// Compile says what resources mean to the manager, in their order. All templates and instances have to be among them.
func (m *Manager) Compile(resources []client.Object) []Scope {
	var (
		all       []*operatorsv1alpha1.ScopeTemplate
		instances []*operatorsv1alpha1.ScopeInstance
	)

	for _, obj := range resources {
		switch obj := obj.(type) {
		case *operatorsv1alpha1.ScopeTemplate:
			all = append(all, obj)
		case *operatorsv1alpha1.ScopeInstance:
			instances = append(instances, obj)
		}
	}

	templates := compile.NewTemplates(all, instances)
	out := make([]Scope, 0, len(resources))

	for _, obj := range resources {
		switch obj := obj.(type) {
		case *operatorsv1alpha1.ScopeTemplate:
			if t := templates[obj.Name]; t != nil && obj.DeletionTimestamp == nil {
				out = append(out, Scope{Scope: t.Scope, Object: obj, Problems: t.Problems})
			}
		case *operatorsv1alpha1.ScopeInstance:
			if s, is := templates.Instance(obj); is {
				name := obj.Spec.ScopeTemplateName
				out = append(out, Scope{Scope: s, Object: obj, Template: name, NoTemplate: templates[name] == nil})
			}
		default:
			if s, is := compile.AnyNamespaceScope(obj); is {
				out = append(out, Scope{Scope: m.Writers().Here(s), Object: obj})
			}
		}
	}

	scope.MarkTwins(collect.Map(collect.Pointers(out), func(s *Scope) *scope.Scope { return &s.Scope }))

	return out
}

// Writers is the part of the manager's configuration that decides who writes.
func (m *Manager) Writers() *writer.Manager {
	return &writer.Manager{
		User: m.user(), DefaultDelegate: m.DefaultDelegate, NeedDelegate: m.NeedDelegate,
		Namespaces: m.Namespaces, Installs: m.OperatorGroups == string(read.ServeAlways),
	}
}

// Complete adds to facts what this manager's plans go by, as its reconciler does.
func (m *Manager) Complete(f *facts.Facts) {
	with := namespacescope.Settings{
		Manager: m.Writers(), RestartInterval: m.RestartInterval, FollowGrace: m.FollowGrace, FinishGrace: m.FinishGrace,
	}
	with.Complete(f)
}

// Simulation lets this manager's reconcilers run in a cluster in memory.
func (m *Manager) Simulation(in *simulation.Cluster) *simulation.Simulation {
	s := simulation.New(in)
	s.AmbitNamespace, s.Writers, s.Self = m.Namespace, m.Writers(), m.Self()
	s.RestartInterval, s.FollowGrace = m.RestartInterval, m.FollowGrace

	return s
}

// Self is the user that the manager runs as, where it may do no more than somebody granted to it; empty where it may do
// everything, or where nobody knows who it is.
func (m *Manager) Self() string {
	if len(m.Namespaces) == 0 {
		return ""
	}

	return m.user()
}

// user is the user that the manager runs as; empty where nobody knows.
func (m *Manager) user() string {
	if m.Account == "" {
		return ""
	}

	return scope.AccountUser(m.Namespace, m.Account)
}
