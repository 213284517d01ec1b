package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/printable"
	"github.com/ambit-k8s/ambit/internal/scope"
)

// Unknown is what could not be played forward, and so is not in the plan.
type Unknown struct {
	// Kinds are what it is about, in Namespace if they have one.
	Kinds     []string `json:"kinds"`
	Namespace string   `json:"namespace,omitempty"`
	Why       string   `json:"why"`
}

// Words say it to people.
func (u *Unknown) Words() string {
	of := strings.Join(u.Kinds, " and ")
	if u.Namespace != "" {
		of += " of namespace " + u.Namespace
	}

	return fmt.Sprintf("what the %s would do is unknown, and the plan lacks it: %s", of, u.Why)
}

// unknown is what could not be played forward, in the order of its keys.
func (r *Planned) unknown() []Unknown {
	why := maps.Clone(r.unplayed)
	if why == nil {
		why = map[scope.Key]error{}
	}

	for _, f := range r.Predictions {
		if f.Unknown != nil {
			why[f.Key] = f.Unknown
		}
	}

	out := make([]Unknown, 0, len(why))

	for _, key := range slices.SortedFunc(maps.Keys(why), scope.Key.Compare) {
		u := Unknown{Kinds: kindsOf(key.Family), Namespace: key.Namespace, Why: printable.Text(command.OneLine(why[key]).Error())}
		if key.Family == scope.Templates {
			u.Namespace = ""
		}

		out = append(out, u)
	}

	return out
}

// kindsOf are the kinds of a family, in the plural.
func kindsOf(f scope.Family) []string {
	switch f {
	case scope.Templates:
		return []string{"ScopeTemplates", "ScopeInstances"}
	case scope.Installs:
		return []string{"OperatorGroups", "ClusterServiceVersions"}
	case scope.Catalogs:
		return []string{"CatalogSources", "Subscriptions"}
	case scope.NamespaceScopes:
	}

	return []string{"NamespaceScopes"}
}
