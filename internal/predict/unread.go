package predict

import (
	"maps"
	"slices"
	"strings"

	"github.com/ambit-k8s/ambit/internal/facts"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// keepUnread takes members of which nothing could be read for what they were: whoever asks may not look there, and the manager
// may. They stay in the lists, and nothing is planned in them. It is known that they were members from the lists and from what
// the scopes report. Scopes that belong to no namespace have neither, so of them it is unknown.
func (g *simulated) keepUnread(scopes []scope.Scope) {
	served := map[string]struct{}{}
	untold := slices.ContainsFunc(scopes, func(s scope.Scope) bool { return s.Explicit() })

	for i := range scopes {
		list := strings.Split(g.facts.OperatorNamespace.ConfigMaps[scopes[i].WatchList].List, ",")
		for _, name := range slices.Concat(list, scopes[i].Reported) {
			served[name] = struct{}{}
		}
	}

	g.facts.Namespaces = maps.Clone(g.facts.Namespaces)

	for name, ns := range g.facts.Namespaces {
		if _, was := served[name]; !was && !untold || ns.Closed == "" {
			continue
		}

		g.unread[name] = struct{}{}
		g.facts.Namespaces[name] = facts.Namespace{Labels: ns.Labels, Terminating: ns.Terminating}
	}
}

func (g *simulated) isUnread(namespace string) bool {
	_, is := g.unread[namespace]

	return is
}
