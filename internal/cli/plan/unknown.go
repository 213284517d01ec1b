package plan

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ambit-k8s/ambit/internal/cli/command"
	"github.com/ambit-k8s/ambit/internal/cli/reading"
	"github.com/ambit-k8s/ambit/internal/predict"
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

// leaveUnread leaves out the scopes of operator namespaces of which the caller may not read enough to plan, and says so: as what
// the plan lacks where the files are about them, and otherwise in a note, since others' scopes reach into many namespaces. Where
// no scope of a namespace of the files may be seen, there may be one all the same.
func (r *Planned) leaveUnread(v *reading.Cluster) {
	r.unplayed = map[scope.Key]error{}
	denied := v.Denied()
	named, all, templates := operatorNamespacesOf(r.proposals)
	reached := map[scope.Key]struct{}{}

	// Their facts are not asked for yet: what the files hold is still to be written.
	v.Scopes = slices.DeleteFunc(v.Scopes, func(s predict.Scope) bool {
		why := reading.UnreadFor(denied, s.Key)

		switch {
		case why == "":
			return false
		case all || templates && s.Explicit() || slices.Contains(named, s.Key.Namespace):
			r.unplayed[s.Key] = errors.New(why)
		default:
			reached[s.Key] = struct{}{}
		}

		return true
	})

	for _, key := range slices.SortedFunc(maps.Keys(reached), scope.Key.Compare) {
		v.Notes = append(v.Notes, reading.UnknownFor(denied, key).Error())
	}

	for _, name := range named {
		key := scope.NamespaceScopes.In(name)
		if why := reading.Unread(denied, name, reading.ScopeResources); why != "" && r.unplayed[key] == nil {
			r.unplayed[key] = errors.New(why)
		}
	}
}

// nothing fails where no scope can be planned, and none that the files could be about is known not to be there.
func (r *Planned) nothing(v *reading.Cluster) error {
	named, _, _ := operatorNamespacesOf(r.proposals)
	isKnown := func(name string) bool { return r.unplayed[scope.NamespaceScopes.In(name)] == nil }

	if len(r.unplayed) == 0 || len(v.Scopes) > 0 || slices.ContainsFunc(named, isKnown) {
		return nil
	}

	first := slices.MinFunc(slices.Collect(maps.Keys(r.unplayed)), scope.Key.Compare)

	return reading.UnknownFor(v.Denied(), first)
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
