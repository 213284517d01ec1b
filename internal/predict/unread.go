package predict

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/plan"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// unread are members of which nothing could be read, because whoever asks may not look there; the manager may. They are taken to
// stay members as they were: they remain in the lists, and nothing is written in them.
type unread map[string]struct{}

// unreadOf finds them. It is known that they were members from the lists and from what the scopes report. Explicit scopes have
// neither, so that for them every namespace counts that could not be read.
func unreadOf(scopes []scope.Scope, f *facts.Facts) unread {
	served, out := sets.Set[string]{}, unread{}
	untold := slices.ContainsFunc(scopes, func(s scope.Scope) bool { return s.Explicit() })

	for i := range scopes {
		list := strings.Split(f.OperatorNamespace.ConfigMaps[scopes[i].WatchList].List, ",")
		served.Insert(list...).Insert(scopes[i].Reported...)
	}

	for name, ns := range f.Namespaces {
		if (untold || served.Has(name)) && ns.Closed != "" {
			out[name] = struct{}{}
		}
	}

	return out
}

func (u unread) has(namespace string) bool {
	_, is := u[namespace]

	return is
}

// keep has plans take these namespaces for accessible, so that they stay members.
func (u unread) keep(f *facts.Facts) {
	f.Namespaces = maps.Clone(f.Namespaces)

	for name := range u {
		if ns, exists := f.Namespaces[name]; exists {
			f.Namespaces[name] = facts.Namespace{Labels: ns.Labels, Overlabelled: ns.Overlabelled, Terminating: ns.Terminating}
		}
	}
}

// leave takes out of a plan what it would write in them.
func (u unread) leave(p *plan.Plan) {
	if len(u) == 0 {
		return
	}

	for i := range p.Scopes {
		for _, changes := range p.Scopes[i].Changes() {
			*changes = slices.DeleteFunc(*changes, func(c plan.Change) bool { return u.has(c.Namespace) })
		}
	}
}
